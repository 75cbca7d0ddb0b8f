#include "tests/bench/papers/all_reduce_scaling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/model/simulation_options.h"
#include "core/predict/throughput.h"
#include "core/zoo/model_zoo.h"
#include "tests/bench/papers/cluster.h"
#include "tests/bench/papers/pattern_search.h"
#include "tests/bench/papers/valid.h"

namespace stepcast::bench {

namespace {

// Of the zoo's step: forward, backward, and the instants at which the default buckets are full. The
// optimizer's part, which a batch of any size makes small, counts as neither.
BucketedNetwork NetworkOfZoo(std::string_view model) {
  const Profile profile =
      Valid(BuildZooProfile(model, {.batch_size = 1,
                                    .platform = {.bandwidth_bytes_per_second = 1e9},
                                    .device_flops_per_second = 1e9,
                                    .variation = {.own = 0},
                                    .communication = ZooCommunication::kAllReduce}));
  const RecordedStep& step = profile.steps().front();
  int64_t forward_end = 0;
  int64_t backward_end = 0;
  std::vector<int64_t> ready_ns;
  BucketedNetwork network;
  int64_t filled = 0;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    const Operation& operation = profile.operations()[i];
    if (operation.name.rfind("forward/", 0) == 0) forward_end = step.end_ns[i];
    if (operation.name.rfind("backward/", 0) == 0) backward_end = step.end_ns[i];
    if (operation.collective != Collective::kAllReduce) continue;
    filled += operation.size_bytes;
    const bool last = i + 2 == profile.operations().size();  // before the optimizer
    if (!last && filled < (network.bucket_bytes.empty() ? kFirstBucketBytes : kBucketCapBytes))
      continue;
    network.bucket_bytes.push_back(std::exchange(filled, 0));
    ready_ns.push_back(step.end_ns[i]);
  }
  const auto backward = static_cast<double>(backward_end - forward_end);
  for (const int64_t ready : ready_ns)
    network.ready.push_back(static_cast<double>(ready - forward_end) / backward);
  network.backward_share = backward / static_cast<double>(backward_end);
  return network;
}

// torch's word_language_model: two LSTM layers of 200 and a decoder of 33,278 words, untied. Of an
// embedded word, multiply-adds: the decoder's 200 x 33,278 and a layer's 4 x 200 x 400.
BucketedNetwork WordLstm() {
  constexpr int64_t kWords = 33'278;
  constexpr int64_t kHidden = 200;
  constexpr int64_t kLayers = 2;
  constexpr int64_t kDecoder = kHidden * kWords + kWords;
  constexpr int64_t kLstm = kLayers * (4 * kHidden * 2 * kHidden + 8 * kHidden);
  constexpr double kDecoderWork = kHidden * kWords;
  constexpr double kLstmWork = kLayers * 4 * kHidden * 2 * kHidden;
  return {.bucket_bytes = {4 * kDecoder, 4 * (kLstm + kHidden * kWords)},
          .ready = {kDecoderWork / (kDecoderWork + kLstmWork), 1},
          .backward_share = 2.0 / 3};
}

}  // namespace

const BucketedNetwork& NetworkOf(std::string_view model) {
  static const BucketedNetwork kResNet50{
      .bucket_bytes = {8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160},
      .ready = {.007, .075, .154, .408, 1},
      .backward_share = .56};
  static const BucketedNetwork kResNet18 = NetworkOfZoo("resnet18_cifar");
  static const BucketedNetwork kWordLstm = WordLstm();
  if (model == "resnet50") return kResNet50;
  if (model == "resnet18_cifar") return kResNet18;
  if (model == "word_lstm") return kWordLstm;
  throw std::runtime_error(absl::StrCat("no buckets are known of ", std::string(model)));
}

Profile ProfileOf(const PublishedRow& row) {
  const BucketedNetwork& network = NetworkOf(row.model);
  const auto ns = [](double seconds) { return std::llround(seconds * 1e9); };
  ProfileDraft draft{.model = row.model,
                     .batch_size = row.batch_size,
                     .platform = {.bandwidth_bytes_per_second = 1e9}};
  RecordedStep& step = draft.steps.emplace_back();
  const auto add = [&](Operation operation, int64_t start_ns, int64_t end_ns) {
    draft.operations.push_back(std::move(operation));
    step.start_ns.push_back(start_ns);
    step.end_ns.push_back(end_ns);
    return static_cast<int32_t>(draft.operations.size() - 1);
  };
  const double forward = (1 - network.backward_share) * row.one_worker_seconds;
  int64_t now = ns(forward);
  int32_t before = add({.name = "forward", .resource = Resource::kWorker}, 0, now);
  for (size_t i = 0; i < network.ready.size(); ++i) {
    const int64_t ready =
        ns(forward + network.ready[i] * network.backward_share * row.one_worker_seconds);
    before = add({.name = absl::StrCat("backward/", i),
                  .resource = Resource::kWorker,
                  .waiting_for = {before}},
                 now, ready);
    add({.name = absl::StrCat("bucket/", i),
         .resource = Resource::kCollective,
         .size_bytes = network.bucket_bytes[i],
         .waiting_for = {before},
         .collective = Collective::kAllReduce},
        ready, ready);
    now = ready;
  }
  return Valid(Profile::Create(std::move(draft)));
}

ScenarioDraft ScenarioOf(const PublishedRow& row, const RingCluster& cluster) {
  return {
      .workers = row.workers(),
      .bandwidth_bytes_per_second = cluster.bandwidth_bytes_per_second,
      .communication = AllReduceDraft{
          .algorithm = CollectiveAlgorithm::kRing,
          .latency_seconds = cluster.latency_seconds,
          .workers_per_node = row.workers_per_node,
          .intra_node_bandwidth_bytes_per_second = cluster.intra_node_bandwidth_bytes_per_second,
          .intra_node_latency_seconds = cluster.intra_node_latency_seconds,
          .overlap_slowdown = cluster.overlap_slowdown}};
}

double RingSeconds(const PublishedRow& row, const RingCluster& cluster, int64_t bytes) {
  const double share = static_cast<double>(bytes) / row.workers();
  const double inside =
      cluster.intra_node_latency_seconds + share / cluster.intra_node_bandwidth_bytes_per_second;
  const double between = cluster.latency_seconds + share / cluster.bandwidth_bytes_per_second;
  const double round = row.nodes == 1              ? inside
                       : row.workers_per_node == 1 ? between
                                                   : std::max(inside, between);
  return 2 * (row.workers() - 1) * round;
}

double TimelineSeconds(const PublishedRow& row, const RingCluster& cluster) {
  const BucketedNetwork& network = NetworkOf(row.model);
  const double backward = network.backward_share * row.one_worker_seconds;
  double computed = 0;  // of backward, seconds at full speed
  double now = row.one_worker_seconds - backward;
  double sent_until = now;  // the end of the last collective that began
  // Goes on until so much of backward is computed, slowly while something is sent.
  const auto compute_until = [&](double work) {
    const double slow = std::max(0.0, sent_until - now);
    const double done = std::min(work - computed, slow / cluster.overlap_slowdown);
    now += done * cluster.overlap_slowdown + (work - computed - done);
    computed = work;
  };
  for (size_t i = 0; i < network.ready.size(); ++i) {
    compute_until(network.ready[i] * backward);
    sent_until = std::max(sent_until, now) + RingSeconds(row, cluster, network.bucket_bytes[i]);
  }
  return std::max(now, sent_until);
}

double PredictedSeconds(const PublishedRow& row, const RingCluster& cluster) {
  const Profile profile = ProfileOf(row);
  ThroughputDraft draft{.scenarios = {ScenarioOf(row, cluster)},
                        .options = {.steps_per_worker = 8, .warmup_steps = 2, .replications = 1}};
  draft.options.start = Start::kSimultaneous;  // nothing varies, and all meet in every step
  const ThroughputAnswer answer =
      Valid(PredictThroughput(profile, Valid(ResolveThroughput(profile, draft)), NeverStop));
  return row.workers() / answer.predictions.front().steps_per_second;
}

double NoOverlapSeconds(const PublishedRow& row, const RingCluster& cluster) {
  double seconds = row.one_worker_seconds;
  for (const int64_t bytes : NetworkOf(row.model).bucket_bytes)
    seconds += RingSeconds(row, cluster, bytes);
  return seconds;
}

double PolluxSeconds(const PublishedRow& row, const PolluxFormula& formula, double scale) {
  const int32_t more = std::max(row.workers() - 2, 0);
  const double network = row.nodes == 1
                             ? formula.one_node_seconds + formula.one_node_seconds_per_worker * more
                             : formula.nodes_seconds + formula.nodes_seconds_per_worker * more;
  const double y = formula.exponent;
  return std::pow(std::pow(row.one_worker_seconds, y) + std::pow(network * scale, y), 1 / y);
}

namespace {

using StepSeconds = std::function<double(const PublishedRow&)>;

double MeanAbsoluteLog(const std::vector<PublishedRow>& rows, const StepSeconds& predict) {
  double sum = 0;
  for (const PublishedRow& row : rows) sum += std::abs(std::log(predict(row) / row.step_seconds));
  return sum / static_cast<double>(rows.size());
}

constexpr double kLeastSlowdown = 1e-6;  // above 1

RingCluster ClusterOf(const std::vector<double>& numbers) {
  return {.bandwidth_bytes_per_second = numbers[0],
          .latency_seconds = numbers[1],
          .intra_node_bandwidth_bytes_per_second = numbers[2],
          .intra_node_latency_seconds = numbers[3],
          .overlap_slowdown = numbers.size() > 4 ? 1 + numbers[4] : 1};
}

RingCluster Calibrate(const std::vector<PublishedRow>& rows, bool with_slowdown,
                      double (*seconds)(const PublishedRow&, const RingCluster&)) {
  std::vector<SearchBounds> bounds{{1e7, 1e12}, {1e-8, 1e-1}, {1e7, 1e12}, {1e-8, 1e-1}};
  std::vector<std::vector<double>> starts{
      {5e8, 1e-4, 2e9, 1e-5}, {2e9, 1e-5, 2e9, 1e-4}, {1e10, 1e-5, 1e11, 1e-5}};
  if (with_slowdown) {
    bounds.push_back({kLeastSlowdown, 9});
    for (std::vector<double>& start : starts) start.push_back(0.1);
  }
  const auto loss = [&](const std::vector<double>& at) {
    const RingCluster cluster = ClusterOf(at);
    return MeanAbsoluteLog(rows, [&](const PublishedRow& row) { return seconds(row, cluster); });
  };
  return ClusterOf(Minimize(loss, bounds, starts).at);
}

}  // namespace

RingCluster CalibrateRing(const std::vector<PublishedRow>& rows, bool with_slowdown) {
  return Calibrate(rows, with_slowdown, TimelineSeconds);
}

RingCluster CalibrateNoOverlap(const std::vector<PublishedRow>& rows) {
  return Calibrate(rows, /*with_slowdown=*/false, NoOverlapSeconds);
}

PolluxFormula FitPollux(const std::vector<PublishedRow>& rows) {
  const auto formula_of = [](const std::vector<double>& at) {
    return PolluxFormula{.one_node_seconds = at[0],
                         .one_node_seconds_per_worker = at[1],
                         .nodes_seconds = at[2],
                         .nodes_seconds_per_worker = at[3],
                         .exponent = at[4]};
  };
  const auto loss = [&](const std::vector<double>& at) {
    const PolluxFormula formula = formula_of(at);
    return MeanAbsoluteLog(rows,
                           [&](const PublishedRow& row) { return PolluxSeconds(row, formula); });
  };
  std::vector<std::vector<double>> starts;
  for (const double exponent : {1.0, 1.5, 2.0, 4.0})
    starts.push_back({0.01, 0.001, 0.1, 0.003, exponent});
  return formula_of(
      Minimize(loss, {{1e-7, 1e3}, {1e-9, 1e3}, {1e-7, 1e3}, {1e-9, 1e3}, {1, 10}}, starts).at);
}

namespace {

// Rows to calibrate on, and rows that are scored apart.
std::string NameOfRow(const PublishedRow& row) {
  return row.job.empty() ? row.model : absl::StrCat(row.model, ", ", row.job);
}

// In the order in which they first stand.
std::vector<std::pair<std::string, std::vector<PublishedRow>>> ByName(
    const std::vector<PublishedRow>& rows) {
  std::vector<std::pair<std::string, std::vector<PublishedRow>>> groups;
  for (const PublishedRow& row : rows) {
    const std::string name = NameOfRow(row);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& one) { return one.first == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}});
    group->second.push_back(row);
  }
  return groups;
}

double BytesOf(std::string_view model) {
  double bytes = 0;
  for (const int64_t bucket : NetworkOf(model).bucket_bytes) bytes += static_cast<double>(bucket);
  return bytes;
}

void Score(const std::string& calibrated_model, const std::vector<PublishedRow>& rows,
           ScalingScore& score) {
  const PolluxFormula fitted = FitPollux(rows);
  for (const PublishedRow& row : rows) {
    const double scale = BytesOf(row.model) / BytesOf(calibrated_model);
    score.rows.push_back({.row = row,
                          .predicted = PredictedSeconds(row, score.cluster),
                          .no_overlap = NoOverlapSeconds(row, score.no_overlap),
                          .pollux = PolluxSeconds(row, score.pollux, scale),
                          .pollux_fitted = PolluxSeconds(row, fitted)});
  }
}

}  // namespace

std::vector<ScalingScore> ScoreSet(const PublishedSet& set) {
  const auto groups = ByName(set.rows);
  std::vector<ScalingScore> scores;
  for (const auto& [name, rows] : groups) {
    ScalingScore& score = scores.emplace_back();
    score = {.set = set.name,
             .calibrated_on = name,
             .cluster = CalibrateRing(rows, /*with_slowdown=*/true),
             .no_overlap = CalibrateNoOverlap(rows),
             .pollux = FitPollux(rows),
             .rows = {}};
    for (const auto& [other, others] : groups) {
      if (other != name) Score(rows.front().model, others, score);
    }
    // Jobs of one network are calibrated on once.
    if (!rows.front().job.empty()) break;
  }
  return scores;
}

namespace {

// Relative error of throughput.
double ErrorOf(const PublishedRow& row, double seconds) { return row.step_seconds / seconds - 1; }

// Mean absolute errors of some rows, %.
struct MeanErrors {
  int rows = 0;
  double predicted = 0;
  double no_overlap = 0;
  double pollux = 0;
  double pollux_fitted = 0;
  double perfect = 0;  // if workers did not need to meet

  void Add(const ScoredRow& scored) {
    ++rows;
    const auto add = [&](double& sum, double seconds) {
      sum += 100 * std::abs(ErrorOf(scored.row, seconds));
    };
    add(predicted, scored.predicted);
    add(no_overlap, scored.no_overlap);
    add(pollux, scored.pollux);
    add(pollux_fitted, scored.pollux_fitted);
    add(perfect, scored.row.one_worker_seconds);
  }
};

// The mean over placements of the absolute mean of their batches' errors, %: measurements of one
// placement scatter.
double ByPlacement(const std::vector<const ScoredRow*>& rows) {
  std::map<std::pair<int32_t, int32_t>, std::vector<double>> errors;
  for (const ScoredRow* scored : rows) {
    errors[{scored->row.nodes, scored->row.workers_per_node}].push_back(
        ErrorOf(scored->row, scored->predicted));
  }
  double sum = 0;
  for (const auto& [placement, of_batches] : errors) {
    double mean = 0;
    for (const double error : of_batches) mean += error;
    sum += std::abs(mean / static_cast<double>(of_batches.size()));
  }
  return 100 * sum / static_cast<double>(errors.size());
}

}  // namespace

std::string ClusterTable(const std::vector<ScalingScore>& scores) {
  std::string table = TableHead({"measured by", "calibrated on", "between nodes, GB/s", "us",
                                 "inside, GB/s", "us", "overlap slows by", "Pollux: y"});
  for (const ScalingScore& score : scores) {
    const RingCluster& cluster = score.cluster;
    const auto text = [](double number) { return absl::StrFormat("%.3g", number); };
    table +=
        TableRow({score.set, score.calibrated_on, text(cluster.bandwidth_bytes_per_second / 1e9),
                  text(cluster.latency_seconds * 1e6),
                  text(cluster.intra_node_bandwidth_bytes_per_second / 1e9),
                  text(cluster.intra_node_latency_seconds * 1e6), text(cluster.overlap_slowdown),
                  text(score.pollux.exponent)});
  }
  return table;
}

std::string ErrorTable(const std::vector<ScalingScore>& scores) {
  std::string table =
      TableHead({"measured by", "calibrated on", "predicted", "workers", "rows", "simulated",
                 "mean of a placement", "no overlap", "Pollux, by bytes",
                 "Pollux, fitted to these rows", "perfect scaling"});
  for (const ScalingScore& score : scores) {
    std::vector<PublishedRow> rows;
    for (const ScoredRow& scored : score.rows) rows.push_back(scored.row);
    for (const auto& [name, unused] : ByName(rows)) {
      for (const bool pair : {false, true}) {
        MeanErrors sums;
        std::vector<const ScoredRow*> of_name;
        for (const ScoredRow& scored : score.rows) {
          if (NameOfRow(scored.row) != name || (scored.row.workers() == 2) != pair) continue;
          sums.Add(scored);
          of_name.push_back(&scored);
        }
        if (sums.rows == 0) continue;
        const auto mean = [&](double sum) { return absl::StrFormat("%.1f %%", sum / sums.rows); };
        table += TableRow({score.set, score.calibrated_on, name, pair ? "2" : "3 or more",
                           absl::StrCat(sums.rows), mean(sums.predicted),
                           absl::StrFormat("%.1f %%", ByPlacement(of_name)), mean(sums.no_overlap),
                           mean(sums.pollux), mean(sums.pollux_fitted), mean(sums.perfect)});
      }
    }
  }
  return table;
}

std::string RowTable(const std::vector<ScalingScore>& scores) {
  std::string table =
      TableHead({"measured by", "predicted", "nodes x workers", "batch", "examples/s measured",
                 "simulated", "no overlap", "Pollux, by bytes", "Pollux, fitted"});
  for (const ScalingScore& score : scores) {
    for (const ScoredRow& scored : score.rows) {
      const auto error = [&](double seconds) {
        return absl::StrFormat("%+.1f %%", 100 * ErrorOf(scored.row, seconds));
      };
      table += TableRow({score.set, NameOfRow(scored.row),
                         absl::StrCat(scored.row.nodes, " x ", scored.row.workers_per_node),
                         absl::StrCat(scored.row.batch_size),
                         absl::StrFormat("%.0f", scored.row.examples_per_second()),
                         error(scored.predicted), error(scored.no_overlap), error(scored.pollux),
                         error(scored.pollux_fitted)});
    }
  }
  return table;
}

}  // namespace stepcast::bench
