#include "core/communication/collective_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace stepcast {

namespace {

constexpr double kMaxGlooMessageBytes = 1 << 20;
constexpr double kMinGlooMessagesPerChunk = 2;
constexpr double kMostGlooMessages = 1 << 14;  // of a ring's half

double SlowestBandwidth(const Scenario& scenario) {
  double slowest = scenario.bandwidth_bytes_per_second;
  if (!scenario.worker_groups.empty()) slowest = std::numeric_limits<double>::infinity();
  for (const WorkerGroup& group : scenario.worker_groups) {
    slowest = std::min(
        slowest, group.bandwidth_bytes_per_second.value_or(scenario.bandwidth_bytes_per_second));
  }
  return slowest;
}

// The parts of a collective in a ring of so many workers.
struct RingShape {
  double rounds = 0;  // each of a share of the buffer
  bool adds = false;
};
RingShape ShapeOf(Collective kind, double workers) {
  switch (kind) {
    case Collective::kAllReduce:
      return {.rounds = 2 * (workers - 1), .adds = true};
    case Collective::kReduceScatter:
      return {.rounds = workers - 1, .adds = true};
    default:
      return {.rounds = workers - 1, .adds = false};
  }
}

// gloo's messages of a ring, all of one size.
struct GlooShape {
  double message_bytes = 0;
  int32_t reducing = 0;
  int32_t gathering = 0;
  double hops = 1;  // of a message, one after the other
};
GlooShape GlooShapeOf(Collective kind, int64_t bytes, int32_t workers) {
  const bool broadcasts = kind == Collective::kBroadcast;
  const double chunk =
      std::ceil(static_cast<double>(bytes) / (broadcasts ? 1.0 : static_cast<double>(workers)));
  const double per_chunk =
      std::max(kMinGlooMessagesPerChunk, std::ceil(chunk / kMaxGlooMessageBytes));
  // The time does not depend on how many there are beyond so many, but what it takes to add them up
  // does.
  const double most = std::max(kMinGlooMessagesPerChunk, kMostGlooMessages / workers);
  const auto messages = static_cast<int32_t>(std::min(per_chunk, most) *
                                             (broadcasts ? 1 : static_cast<double>(workers - 1)));
  return {.message_bytes = chunk / std::min(per_chunk, most),
          .reducing = ShapeOf(kind, workers).adds ? messages : 0,
          .gathering = kind == Collective::kReduceScatter ? 0 : messages,
          .hops = broadcasts ? static_cast<double>(workers - 1) : 1};
}

int32_t CeilLog2(int32_t workers) {
  int32_t log = 0;
  while ((int64_t{1} << log) < workers) ++log;
  return log;
}

}  // namespace

CollectiveParts RingParts(Collective kind, double bytes, double workers) {
  const RingShape shape = ShapeOf(kind, workers);
  if (kind == Collective::kBroadcast) return {.latencies = shape.rounds, .sent_bytes = bytes};
  return {.latencies = shape.rounds,
          .sent_bytes = shape.rounds * bytes / workers,
          .added_bytes = shape.adds ? (workers - 1) / workers * bytes : 0};
}

CollectiveParts GlooParts(Collective kind, int64_t bytes, int32_t workers, double latency,
                          double seconds_per_byte, double addition) {
  const GlooShape shape = GlooShapeOf(kind, bytes, workers);
  const RingMessages messages = {
      .reducing = shape.reducing,
      .gathering = shape.gathering,
      .transmission = std::max(SpanOf(shape.message_bytes * seconds_per_byte), Span{1}),
      .latency = SpanOf(latency * shape.hops),
      .addition = SpanOf(shape.message_bytes * addition)};
  const RingMessages::Path path = messages.AlonePath();
  return {.latencies = static_cast<double>(path.latencies) * shape.hops,
          .sent_bytes = static_cast<double>(path.transmissions) * shape.message_bytes,
          .added_bytes = static_cast<double>(path.additions) * shape.message_bytes};
}

Span SpanOf(double seconds) {
  const double ticks = seconds * 1e9 * static_cast<double>(kTicksPerNanosecond);
  return {ticks >= static_cast<double>(kEndOfTime.ticks) ? kEndOfTime.ticks : std::llround(ticks)};
}

FittedRing FitRing(const std::vector<MeasuredCollective>& points) {
  // Relative errors of latencies x latency + sent bytes / bandwidth.
  double aa = 0;
  double ab = 0;
  double bb = 0;
  double a1 = 0;
  double b1 = 0;
  for (const MeasuredCollective& point : points) {
    const CollectiveParts parts =
        RingParts(point.kind, static_cast<double>(point.size_bytes), point.workers);
    const double a = parts.latencies / point.seconds;
    const double b = parts.sent_bytes / point.seconds;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    a1 += a;
    b1 += b;
  }
  const double determinant = aa * bb - ab * ab;
  double latency = determinant > 1e-12 * aa * bb ? (a1 * bb - b1 * ab) / determinant : 0;
  latency = std::max(latency, 0.0);
  double per_byte = (b1 - latency * ab) / bb;
  if (!(per_byte > 0)) {
    // Nothing but latency.
    latency = a1 / aa;
    per_byte = 1e-15;
  }
  return {.latency_seconds = latency, .bandwidth_bytes_per_second = 1 / per_byte};
}

CollectiveTimes::CollectiveTimes(const Scenario& scenario)
    : scenario_(scenario),
      job_(scenario_.all_reduce()),
      workers_(scenario.workers),
      on_one_node_(job_.workers_per_node > 1 && workers_ <= job_.workers_per_node),
      latency_(on_one_node_ ? job_.intra_node_latency_seconds : job_.latency_seconds),
      racks_(scenario),
      bandwidth_(on_one_node_ ? job_.intra_node_bandwidth_bytes_per_second
                              : racks_.OfRing(SlowestBandwidth(scenario))),
      launch_(SpanOf(job_.launch_seconds)) {
  if (job_.algorithm == CollectiveAlgorithm::kHalvingDoubling && racks_.are_several()) {
    for (int32_t distance = 1; distance < workers_; distance *= 2)
      by_distance_.push_back(racks_.OfPairs(SlowestBandwidth(scenario), distance));
  }
  tree_bandwidth_ = on_one_node_ ? bandwidth_ : racks_.OfDoubleTree(SlowestBandwidth(scenario));
  if (job_.algorithm == CollectiveAlgorithm::kMeasured) fitted_ = FitRing(job_.measured);
}

Span CollectiveTimes::TimeOf(Collective kind, int64_t bytes, int32_t threads) const {
  if (job_.contention.has_value()) return ContendingTimesOf(kind, bytes, threads).least();
  if (workers_ == 1) return launch_;
  if (job_.algorithm == CollectiveAlgorithm::kGloo)
    return launch_ + MessagesOf(kind, bytes).AloneTime();
  return launch_ + SpanOf(SecondsOf(kind, bytes));
}

ContendingTimes CollectiveTimes::ContendingTimesOf(Collective kind, int64_t bytes,
                                                   int32_t threads) const {
  const Contention& contention = *job_.contention;
  const auto at = [&](const TransferRate& rate) {
    const double bandwidth = BytesPerSecond(rate, contention.gamma4,
                                            ThreadsOf(job_, static_cast<double>(bytes), threads));
    return launch_ +
           SpanOf(RingSeconds(kind, static_cast<double>(bytes), workers_, latency_, bandwidth));
  };
  return {.overlapped = at(contention.overlapped), .alone = at(contention.alone)};
}

double CollectiveTimes::SecondsOf(Collective kind, int64_t bytes) const {
  if (workers_ == 1) return 0;
  const auto size = static_cast<double>(bytes);
  switch (job_.algorithm) {
    case CollectiveAlgorithm::kRing:
      return FlatRing(kind, size);
    case CollectiveAlgorithm::kHierarchical:
      return Hierarchical(kind, size);
    case CollectiveAlgorithm::kHalvingDoubling:
      return HalvingDoubling(kind, size);
    case CollectiveAlgorithm::kTree:
      return Tree(kind, size);
    case CollectiveAlgorithm::kMeasured:
      return Measured(kind, bytes);
    case CollectiveAlgorithm::kGloo:
      return ToSeconds(MessagesOf(kind, bytes).AloneTime());
    case CollectiveAlgorithm::kNccl:
      return NcclBest(scenario_, kind, bytes).seconds;
  }
  return 0;
}

double CollectiveTimes::RingSeconds(Collective kind, double bytes, double workers, double latency,
                                    double bandwidth) const {
  if (workers <= 1) return 0;
  return RingParts(kind, bytes, workers)
      .Seconds(latency, 1 / bandwidth, job_.reduction_seconds_per_byte);
}

double CollectiveTimes::FlatRing(Collective kind, double bytes) const {
  const auto workers = static_cast<double>(workers_);
  if (on_one_node_ || job_.workers_per_node == 1)
    return RingSeconds(kind, bytes, workers, latency_, bandwidth_);
  const RingShape shape = ShapeOf(kind, workers);
  const double share = bytes / workers;
  const double slowest =
      std::max(job_.intra_node_latency_seconds + share / job_.intra_node_bandwidth_bytes_per_second,
               latency_ + share / bandwidth_);
  const double added =
      shape.adds ? (workers - 1) / workers * bytes * job_.reduction_seconds_per_byte : 0;
  return shape.rounds * slowest + added;
}

double CollectiveTimes::Hierarchical(Collective kind, double bytes) const {
  if (on_one_node_ || job_.workers_per_node == 1) return FlatRing(kind, bytes);
  const auto inside = static_cast<double>(job_.workers_per_node);
  const double nodes = static_cast<double>(workers_) / inside;
  const auto within = [&](Collective part) {
    return RingSeconds(part, bytes, inside, job_.intra_node_latency_seconds,
                       job_.intra_node_bandwidth_bytes_per_second);
  };
  // Rings share a node's link, as many as it has workers.
  const auto between = [&](Collective part, double size, double rings) {
    return RingSeconds(part, size, nodes, latency_, bandwidth_ / rings);
  };
  switch (kind) {
    case Collective::kAllReduce:
      return within(Collective::kReduceScatter) + between(kind, bytes / inside, inside) +
             within(Collective::kAllGather);
    case Collective::kReduceScatter:
    case Collective::kAllGather:
      return within(kind) + between(kind, bytes / inside, inside);
    default:
      return within(kind) + between(kind, bytes, 1);
  }
}

double CollectiveTimes::HalvingDoubling(Collective kind, double bytes) const {
  const auto workers = static_cast<double>(workers_);
  const double log = std::log2(workers);
  if (kind == Collective::kBroadcast) return log * latency_ + bytes / bandwidth_;
  const double halves = kind == Collective::kAllReduce ? 2 : 1;
  const double moved = (workers - 1) / workers * bytes;
  const double added = ShapeOf(kind, workers).adds ? moved * job_.reduction_seconds_per_byte : 0;
  double sent = moved / bandwidth_;
  if (!by_distance_.empty()) {
    // Most bytes go to the nearest in an all-reduce, else to the farthest.
    sent = 0;
    double size = kind == Collective::kAllReduce ? bytes / 2 : bytes / workers;
    for (const double bandwidth : by_distance_) {
      sent += size / bandwidth;
      size *= kind == Collective::kAllReduce ? 0.5 : 2;
    }
  }
  return halves * (log * latency_ + sent) + added;
}

double CollectiveTimes::Tree(Collective kind, double bytes) const {
  const double halves = kind == Collective::kAllReduce ? 2 : 1;
  const double added = ShapeOf(kind, workers_).adds ? bytes * job_.reduction_seconds_per_byte : 0;
  return halves * (CeilLog2(workers_) * latency_ + bytes / tree_bandwidth_) + added;
}

double CollectiveTimes::Measured(Collective kind, int64_t bytes) const {
  const auto ring = [&](Collective part, double size, int32_t workers) {
    return RingParts(part, size, workers)
        .Seconds(fitted_->latency_seconds, 1 / fitted_->bandwidth_bytes_per_second, 0);
  };
  // The points of the kind, else of all-reduces.
  const int32_t of_kind = NearestMeasured(job_.measured, kind, workers_);
  const Collective measured = of_kind > 0 ? kind : Collective::kAllReduce;
  const int32_t nearest =
      of_kind > 0 ? of_kind : NearestMeasured(job_.measured, measured, workers_);
  std::vector<std::pair<double, double>> line;  // logarithms of bytes and seconds
  for (const MeasuredCollective& point : job_.measured) {
    if (point.kind == measured && point.workers == nearest)
      line.emplace_back(std::log(static_cast<double>(point.size_bytes)), std::log(point.seconds));
  }
  const auto size = static_cast<double>(bytes);
  const double ratio = ring(kind, size, workers_) / ring(measured, size, nearest);
  if (line.size() == 1) {
    const double there = std::exp(line.front().first);
    return std::exp(line.front().second) * ring(kind, size, workers_) /
           ring(measured, there, nearest);
  }
  const double at = std::log(size);
  auto upper = std::lower_bound(line.begin() + 1, line.end() - 1, std::pair(at, 0.0),
                                [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto lower = upper - 1;
  const double slope = (upper->second - lower->second) / (upper->first - lower->first);
  // Beyond what was measured no more bytes take less time.
  if (slope < 0 && at < lower->first) return std::exp(lower->second) * ratio;
  if (slope < 0 && at > upper->first) return std::exp(upper->second) * ratio;
  return std::exp(lower->second + slope * (at - lower->first)) * ratio;
}

RingMessages CollectiveTimes::MessagesOf(Collective kind, int64_t bytes) const {
  if (workers_ == 1) return {};
  const GlooShape shape = GlooShapeOf(kind, bytes, workers_);
  double latency = latency_;
  double transmission = shape.message_bytes / bandwidth_;
  if (!on_one_node_ && job_.workers_per_node > 1) {
    const double inside = shape.message_bytes / job_.intra_node_bandwidth_bytes_per_second;
    if (job_.intra_node_latency_seconds + inside > latency + transmission) {
      latency = job_.intra_node_latency_seconds;
      transmission = inside;
    }
  }
  return {.reducing = shape.reducing,
          .gathering = shape.gathering,
          .transmission = std::max(SpanOf(transmission), Span{1}),
          .latency = SpanOf(latency * shape.hops),
          .addition = SpanOf(shape.message_bytes * job_.reduction_seconds_per_byte)};
}

namespace {

constexpr size_t kProtocols = 3;
using ByProtocol = std::array<double, kProtocols>;

// NCCL's constants, microseconds and 1e9 bytes per second.
struct NcclConstants {
  ByProtocol tree_base{6.8, 14.0, 8.4};
  ByProtocol ring_base{6.6, 14.0, 8.4};
  ByProtocol tree_nvlink{0.6, 1.25, 4.0};
  ByProtocol ring_nvlink{0.6, 1.9, 3.4};
  ByProtocol tree_pci{1.0, 1.9, 4.0};
  ByProtocol ring_pci{1.0, 2.5, 5.7};
  ByProtocol tree_net{5.0, 8.5, 14.0};
  ByProtocol ring_net{2.7, 4.0, 14.0};
};
constexpr NcclConstants kNccl;

// By architecture, then one node, two nodes, more.
constexpr double kLlMax[3][3] = {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}};
constexpr double kTreeMax[3][3] = {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}};
constexpr double kTreeLl128Max[3][3] = {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}};
constexpr double kRingLl128Max[3] = {20.0, 20.0, 36.7};
constexpr int kTreeCorrections = 23;
constexpr double kTreeCorrection[kProtocols][kTreeCorrections] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

// The machines as NCCL's model sees them.
struct NcclView {
  explicit NcclView(const Scenario& scenario)
      : job(scenario.all_reduce()),
        architecture(static_cast<size_t>(job.nccl.architecture)),
        workers(scenario.workers),
        per_node(std::min(workers, job.workers_per_node)),
        nodes(workers / per_node),
        intra(job.nccl.intra_node_path == Nccl::Path::kNvlink),
        channels(job.nccl.channels) {
    const double link =
        nodes > 1 ? SlowestBandwidth(scenario) : job.intra_node_bandwidth_bytes_per_second;
    const double channel = job.nccl.channel_bandwidth_bytes_per_second;
    const double all = channel > 0 ? channel * channels : link;
    const RackLinks racks(nodes, job.workers_per_rack / job.workers_per_node,
                          job.rack_bandwidth_bytes_per_second);
    bus = racks.OfRing(all) / 1e9;
    tree_bus = racks.OfDoubleTree(all) / 1e9;
    net_latency_us = job.latency_seconds * 1e6;
  }

  size_t column() const { return nodes <= 1 ? 0 : nodes == 2 ? 1 : 2; }
  // Across nodes, the first row is of Intel's processors, the second of AMD's.
  double LlMax() const {
    return nodes > 1 ? kLlMax[job.nccl.amd ? 1 : 0][column()] : kLlMax[architecture][0];
  }

  const AllReduce& job;
  size_t architecture;
  int32_t workers;
  int32_t per_node;
  int32_t nodes;
  bool intra;
  int32_t channels;
  double bus = 0;       // all channels of a ring, 1e9 bytes per second
  double tree_bus = 0;  // those of a tree
  double net_latency_us = 0;
};

double RingMicroseconds(const NcclView& view, Collective kind, double bytes, size_t protocol) {
  const bool all = kind == Collective::kAllReduce;
  const bool simple = protocol == 2;
  double bus = view.bus;
  if (protocol == 0) bus = std::min(view.LlMax(), 0.5 * bus);
  if (protocol == 1) bus = std::min(0.92 * bus, view.channels * kRingLl128Max[view.architecture]);
  const double workers = view.workers;
  const double steps = (all ? 2 : 1) * (workers - 1);
  const double inter = view.nodes > 1 ? (all ? 2 : 1) * (view.nodes - 1) : 0;
  const double hop = (view.intra ? kNccl.ring_nvlink : kNccl.ring_pci)[protocol];
  const double overhead = view.nodes > 1 ? (view.job.nccl.amd ? 2.0 : 1.0) * (simple ? 3 : 1) : 0;
  const double net = (view.per_node == 1 ? kNccl.tree_net : kNccl.ring_net)[protocol] +
                     view.net_latency_us * (simple ? 2 : 1);
  double latency =
      kNccl.ring_base[protocol] + (steps - inter) * std::max(hop, overhead) + inter * net;
  const bool large = bytes / (view.channels * workers) >= 64;
  if (all && simple && view.nodes > 1 && large) latency *= view.architecture == 0 ? 1.9 : 1.4;
  const double algorithm = bus * workers / steps;
  return latency + bytes / (1000 * algorithm);
}

double TreeMicroseconds(const NcclView& view, double bytes, size_t protocol) {
  const size_t a = view.architecture;
  double bus = std::min(0.92 * view.tree_bus, view.channels * kTreeMax[a][view.column()]);
  if (protocol == 0) bus = std::min(bus / 3.8, view.LlMax());
  if (protocol == 1) {
    bus = std::min(bus * (view.nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                   view.channels * kTreeLl128Max[a][view.column()]);
  }
  double algorithm = bus / 2;
  const double hop = (view.intra ? kNccl.tree_nvlink : kNccl.tree_pci)[protocol];
  const double net = kNccl.tree_net[protocol] + view.net_latency_us * (protocol == 2 ? 2 : 1);
  const double latency = kNccl.tree_base[protocol] +
                         2 * ((view.per_node - 1) * hop + std::floor(std::log2(view.nodes)) * net);
  const double size = bytes / 64;
  const int index = size >= 1 ? static_cast<int>(std::floor(std::log2(size))) : 0;
  if (index < kTreeCorrections) algorithm *= kTreeCorrection[protocol][index];
  return latency + bytes / (1000 * algorithm);
}

// LL128 needs NVLink.
bool IsOn(const NcclView& view, size_t protocol) { return protocol != 1 || view.intra; }

}  // namespace

double NcclSeconds(const Scenario& scenario, int64_t bytes, NcclChoice::Algorithm algorithm,
                   NcclChoice::Protocol protocol) {
  const NcclView view(scenario);
  const auto index = static_cast<size_t>(protocol);
  const auto size = static_cast<double>(bytes);
  if (!IsOn(view, index)) return std::numeric_limits<double>::infinity();
  return (algorithm == NcclChoice::Algorithm::kRing
              ? RingMicroseconds(view, Collective::kAllReduce, size, index)
              : TreeMicroseconds(view, size, index)) *
         1e-6;
}

NcclChoice NcclBest(const Scenario& scenario, Collective kind, int64_t bytes) {
  const NcclView view(scenario);
  const auto size = static_cast<double>(bytes);
  NcclChoice best{.seconds = std::numeric_limits<double>::infinity()};
  for (size_t protocol = 0; protocol < kProtocols; ++protocol) {
    if (!IsOn(view, protocol)) continue;
    const auto consider = [&](NcclChoice::Algorithm algorithm, double microseconds) {
      if (microseconds * 1e-6 >= best.seconds) return;
      best = {.algorithm = algorithm,
              .protocol = static_cast<NcclChoice::Protocol>(protocol),
              .seconds = microseconds * 1e-6};
    };
    consider(NcclChoice::Algorithm::kRing, RingMicroseconds(view, kind, size, protocol));
    if (kind == Collective::kAllReduce)
      consider(NcclChoice::Algorithm::kTree, TreeMicroseconds(view, size, protocol));
  }
  return best;
}

}  // namespace stepcast
