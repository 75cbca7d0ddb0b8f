#include "core/predict/pipeline_job.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/index.h"
#include "core/communication/all_reduce.h"
#include "core/communication/full_sharding.h"
#include "core/model/stage_map.h"

namespace stepcast {
namespace {

// Times of PyTorch's host, measured with version 1.13 over gloo (tests/data/pp): what a stage's
// forward and backward take beyond their layers, what adding a micro-batch's gradients takes of the
// stage's first layer (others hide it), and what copying gradients into buckets, or out, does.
constexpr Span kForwardOfStage = Microseconds(250);
constexpr Span kBackwardOfStage = Microseconds(350);
constexpr double kAddSecondsPerByte = 0.09e-9;
constexpr double kCopySecondsPerByte = 0.1e-9;

// The parts of a stage that are simulated apart.
enum class Section : uint8_t { kForward, kBackward, kBackwardWeight };
constexpr size_t kSections = 3;

// The operations in an order in which none is before what it waits for, those of graph order first.
std::vector<int32_t> TopologicalOrder(const std::vector<Operation>& operations) {
  std::vector<int32_t> waits(operations.size());
  std::vector<std::vector<int32_t>> after(operations.size());
  for (size_t i = 0; i < operations.size(); ++i) {
    waits[i] = static_cast<int32_t>(operations[i].waiting_for.size());
    for (const int32_t before : operations[i].waiting_for)
      after[Index(before)].push_back(static_cast<int32_t>(i));
  }
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (size_t i = 0; i < operations.size(); ++i)
    if (waits[i] == 0) ready.push(static_cast<int32_t>(i));
  std::vector<int32_t> order;
  order.reserve(operations.size());
  while (!ready.empty()) {
    const int32_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const int32_t other : after[Index(next)])
      if (--waits[Index(other)] == 0) ready.push(other);
  }
  return order;
}

class PipelinePlanner {
 public:
  PipelinePlanner(const Profile& profile, const Pipeline& pipeline)
      : operations_(profile.operations()),
        profile_(profile),
        pipeline_(pipeline),
        layout_(pipeline.layout),
        map_(MapStages(profile, "pipeline", faults_)),
        first_(FirstLinksOf(profile, map_, pipeline)),
        order_(TopologicalOrder(operations_)),
        section_of_(operations_.size(), -1),
        lane_of_(operations_.size()) {}

  PipelinePlan Make() && {
    const size_t stages = first_.size();
    plan_.recorded_ranks = map_.recorded_ranks;
    plan_.recorded_buckets = profile_.content().buckets;
    plan_.sent_share = SentShareOf(profile_);
    plan_.gradients.resize(stages);
    plan_.kept_bytes.resize(stages);
    plan_.gradient_bytes.resize(Index(layout_.devices));
    plan_.tails.resize(Index(layout_.devices));
    plan_.updates.resize(Index(layout_.devices));
    for (size_t stage = 1; stage < stages; ++stage)
      plan_.output_bytes.push_back(BytesAtCut(profile_, map_, first_[stage]));
    plan_.output_bytes.push_back(0);
    PlaceOperations();
    ends_.resize(operations_.size());
    ready_.resize(operations_.size());
    for (const RecordedStep& step : profile_.steps()) AddStep(step);
    AddGradients();
    AddStepEnd();
    if (pipeline_.transport == PipelineTransport::kGloo) AddHost();
    plan_.first_by_device.resize(Index(layout_.devices));
    for (int32_t device = 0; device < layout_.devices; ++device)
      for (int32_t chunk = 0; chunk < layout_.chunks; ++chunk)
        plan_.first_by_device[Index(device)].push_back(
            operations_[Index(map_.chain[Index(first_[Index(layout_.StageOf(device, chunk))])])]
                .name);
    return std::move(plan_);
  }

 private:
  int32_t StageOf(size_t operation) const {
    return StageMap::StageOf(first_, map_.link_of[operation]);
  }

  // Gives each computation its section, stage x kSections + part.
  void PlaceOperations() {
    const bool split = SplitsBackward(layout_.schedule);
    for (size_t i = 0; i < operations_.size(); ++i) {
      const StageRole role = map_.role_of[i];
      plan_.knows_memory = plan_.knows_memory || operations_[i].kept_bytes > 0;
      if (role == StageRole::kGradient || role == StageRole::kEndOfStep) continue;
      const Section part = role == StageRole::kForward                   ? Section::kForward
                           : split && role == StageRole::kBackwardWeight ? Section::kBackwardWeight
                                                                         : Section::kBackward;
      const auto stage = static_cast<size_t>(StageOf(i));
      section_of_[i] = static_cast<int32_t>(stage * kSections + static_cast<size_t>(part));
      plan_.kept_bytes[stage] += operations_[i].kept_bytes;
      lane_of_[i] = LaneOf(i);
    }
  }

  // A stream's, or that of a group inside a replica, in the operation's section.
  int32_t LaneOf(size_t i) {
    const Operation& operation = operations_[i];
    const bool is_inner = operation.resource == Resource::kCollective;
    const auto lane = std::make_tuple(section_of_[i], is_inner ? -1 : operation.stream,
                                      is_inner ? std::string_view(operation.group) : "");
    return lanes_.try_emplace(lane, static_cast<int32_t>(lanes_.size())).first->second;
  }

  // Every section by itself, from 0.
  void AddStep(const RecordedStep& step) {
    std::vector<int64_t> length(first_.size() * kSections);
    std::vector<int64_t> free(lanes_.size());
    for (const int32_t op : order_) {
      const size_t i = Index(op);
      if (section_of_[i] < 0) continue;
      const Operation& operation = operations_[i];
      int64_t begin = free[Index(lane_of_[i])];
      for (const int32_t before : operation.waiting_for)
        if (section_of_[Index(before)] == section_of_[i])
          begin = std::max(begin, ends_[Index(before)]);
      ends_[i] = begin + step.end_ns[i] - step.start_ns[i];
      free[Index(lane_of_[i])] = ends_[i];
      int64_t& longest = length[Index(section_of_[i])];
      longest = std::max(longest, ends_[i]);
    }
    for (size_t i = 0; i < operations_.size(); ++i)
      if (section_of_[i] >= 0) ready_[i] += length[Index(section_of_[i])] - ends_[i];
    std::vector<StageTimes>& times = plan_.times.emplace_back();
    for (size_t stage = 0; stage < first_.size(); ++stage)
      times.push_back({.forward = Nanoseconds(length[stage * kSections]),
                       .backward = Nanoseconds(length[stage * kSections + 1]),
                       .backward_weight = Nanoseconds(length[stage * kSections + 2]),
                       .last_backward_extra = {}});
  }

  void AddGradients() {
    const auto steps = static_cast<int64_t>(profile_.steps().size());
    const std::vector<int32_t> bucket = RecordedBucketOf();
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (map_.role_of[i] != StageRole::kGradient) continue;
      const int32_t stage = StageOf(i);
      int64_t before_end = -1;
      for (const int32_t before : operations_[i].waiting_for) {
        if (section_of_[Index(before)] < 0) continue;
        const int64_t left = ready_[Index(before)] / steps;
        before_end = before_end < 0 ? left : std::min(before_end, left);
      }
      plan_.gradients[Index(stage)].push_back(
          {.bytes = operations_[i].size_bytes,
           .before_end = Nanoseconds(std::max<int64_t>(0, before_end)),
           .bucket = bucket[i]});
      plan_.gradient_bytes[Index(layout_.DeviceOf(stage))] += operations_[i].size_bytes;
    }
  }

  // By operation, the number of its gradient's bucket, of those whose sizes were recorded.
  std::vector<int32_t> RecordedBucketOf() const {
    std::vector<int32_t> bucket(operations_.size());
    if (!plan_.recorded_buckets || plan_.recorded_buckets->sizes_bytes.empty()) return bucket;
    std::vector<int64_t> bytes;
    for (size_t i = 0; i < operations_.size(); ++i)
      if (map_.role_of[i] == StageRole::kGradient) bytes.push_back(operations_[i].size_bytes);
    std::vector<int32_t> of_gradient;
    for (const int32_t count : GradientsByBucket(bytes, *plan_.recorded_buckets))
      of_gradient.insert(of_gradient.end(), Index(count),
                         of_gradient.empty() ? 0 : of_gradient.back() + 1);
    auto next = of_gradient.begin();
    for (size_t i = 0; i < operations_.size(); ++i)
      if (map_.role_of[i] == StageRole::kGradient) bucket[i] = *next++;
    return bucket;
  }

  // The devices that an operation of the step's end waits for; null: none that is known.
  using Devices = std::shared_ptr<const std::vector<int32_t>>;

  Devices DevicesOf(const Operation& operation, const std::vector<Devices>& known) const {
    std::vector<int32_t> own;
    for (const bool gradients : {true, false}) {
      for (const int32_t before : operation.waiting_for) {
        const bool is_gradient = map_.role_of[Index(before)] == StageRole::kGradient;
        if (map_.link_of[Index(before)] >= 0 && is_gradient == gradients)
          own.push_back(layout_.DeviceOf(StageOf(Index(before))));
      }
      if (!own.empty()) break;
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    if (!own.empty()) return std::make_shared<const std::vector<int32_t>>(std::move(own));
    Devices inherited;
    for (const int32_t before : operation.waiting_for) {
      const Devices& other = known[Index(before)];
      if (other == nullptr || other == inherited) continue;
      if (inherited != nullptr && *inherited != *other) return nullptr;
      inherited = other;
    }
    return inherited;
  }

  void AddStepEnd() {
    std::vector<int32_t> all(static_cast<size_t>(layout_.devices));
    std::iota(all.begin(), all.end(), 0);
    std::vector<Devices> known(operations_.size());
    std::vector<double> tails(all.size());
    std::vector<double> updates(all.size());
    const std::vector<bool> is_update = UpdatesOf(profile_);
    for (const int32_t op : order_) {
      const size_t i = Index(op);
      if (map_.role_of[i] != StageRole::kEndOfStep) continue;
      known[i] = DevicesOf(operations_[i], known);
      const std::vector<int32_t>& devices = known[i] != nullptr ? *known[i] : all;
      double bytes = 0;
      for (const int32_t device : devices)
        bytes += static_cast<double>(plan_.gradient_bytes[Index(device)]);
      double ns = 0;
      for (const RecordedStep& step : profile_.steps())
        ns += static_cast<double>(step.end_ns[i] - step.start_ns[i]) /
              static_cast<double>(profile_.steps().size());
      for (const int32_t device : devices)
        (is_update[i] ? updates : tails)[Index(device)] +=
            ns * (bytes > 0 ? static_cast<double>(plan_.gradient_bytes[Index(device)]) / bytes
                            : 1 / static_cast<double>(devices.size()));
    }
    for (size_t device = 0; device < tails.size(); ++device) {
      plan_.tails[device] = FromSeconds(tails[device] * 1e-9);
      plan_.updates[device] = FromSeconds(updates[device] * 1e-9);
    }
  }

  void AddHost() {
    std::vector<double> of_first(first_.size());
    for (size_t i = 0; i < operations_.size(); ++i)
      if (map_.role_of[i] == StageRole::kGradient && map_.link_of[i] == first_[Index(StageOf(i))])
        of_first[Index(StageOf(i))] += static_cast<double>(operations_[i].size_bytes);
    for (auto& of_step : plan_.times)
      for (size_t stage = 0; stage < first_.size(); ++stage) {
        double bytes = 0;
        for (const StageGradient& gradient : plan_.gradients[stage])
          bytes += static_cast<double>(gradient.bytes);
        of_step[stage].forward += kForwardOfStage;
        of_step[stage].backward +=
            kBackwardOfStage + FromSeconds(kAddSecondsPerByte * of_first[stage]);
        of_step[stage].last_backward_extra = FromSeconds(kCopySecondsPerByte * bytes);
      }
    for (size_t device = 0; device < plan_.tails.size(); ++device)
      plan_.tails[device] +=
          FromSeconds(kCopySecondsPerByte * static_cast<double>(plan_.gradient_bytes[device]));
  }

  FaultList faults_;
  const std::vector<Operation>& operations_;
  const Profile& profile_;
  const Pipeline& pipeline_;
  const PipelineLayout& layout_;
  const StageMap map_;
  const std::vector<int32_t> first_;
  const std::vector<int32_t> order_;
  std::vector<int32_t> section_of_;  // by operation; -1: none
  std::vector<int32_t> lane_of_;     // by operation that has a section
  std::map<std::tuple<int32_t, int32_t, std::string_view>, int32_t> lanes_;
  std::vector<int64_t> ends_;   // of the step under way, within its section
  std::vector<int64_t> ready_;  // sums over steps, before the section's end
  PipelinePlan plan_;
};

}  // namespace

std::vector<Span> PipelinePlan::TailsOf(const Scenario& scenario) const {
  std::vector<Span> all = tails;
  const int32_t shares = ShardingOf(scenario) == Sharding::kNone ? 1 : scenario.workers;
  for (size_t device = 0; device < all.size(); ++device)
    all[device] += Span{updates[device].ticks / shares};
  return all;
}

PassTimes PipelinePlan::PassesOf(const Scenario& scenario) const {
  const PipelineLayout& layout = scenario.pipeline->layout;
  const double share =
      static_cast<double>(layout.micro_batches) / static_cast<double>(times.size());
  std::vector<PassTimes> of(Index(layout.devices));
  for (const auto& of_step : times) {
    for (size_t stage = 0; stage < of_step.size(); ++stage) {
      PassTimes& device = of[Index(layout.DeviceOf(static_cast<int32_t>(stage)))];
      device.forward += share * ToSeconds(of_step[stage].forward);
      device.backward +=
          share * ToSeconds(of_step[stage].backward + of_step[stage].backward_weight);
    }
  }
  PassTimes most;
  const std::vector<Span> ends = TailsOf(scenario);
  for (size_t device = 0; device < of.size(); ++device) {
    most.forward = std::max(most.forward, of[device].forward);
    most.backward = std::max(most.backward, of[device].backward);
    most.optimizer = std::max(most.optimizer, ToSeconds(ends[device] - tails[device]));
    most.other = std::max(most.other, ToSeconds(tails[device]));
  }
  const std::vector<double> speeds = scenario.compute_speeds();
  return speeds.empty() ? most : most / *std::min_element(speeds.begin(), speeds.end());
}

std::vector<double> PipelinePlan::MicroBatchSeconds(const PipelineLayout& layout) const {
  std::vector<double> seconds(Index(layout.devices));
  for (const auto& of_step : times)
    for (size_t stage = 0; stage < of_step.size(); ++stage)
      seconds[Index(layout.DeviceOf(static_cast<int32_t>(stage)))] +=
          ToSeconds(of_step[stage].forward + of_step[stage].backward +
                    of_step[stage].backward_weight) /
          static_cast<double>(times.size());
  return seconds;
}

PipelinePlan PlanPipeline(const Profile& profile, const Scenario& scenario) {
  return PipelinePlanner(profile, *scenario.pipeline).Make();
}

PipelineJob JobOf(const PipelinePlan& plan, const Scenario& scenario) {
  const Pipeline& pipeline = *scenario.pipeline;
  PipelineJob job;
  job.layout = pipeline.layout;
  job.times = plan.times;
  job.output_bytes = plan.output_bytes;
  AddReductions(plan, scenario, job);
  job.tails = plan.TailsOf(scenario);
  job.receives = pipeline.receives;
  job.transport = pipeline.transport;
  job.links = pipeline.links;
  job.bytes_per_second = pipeline.bandwidth_bytes_per_second;
  job.latency = FromSeconds(pipeline.latency_seconds);
  job.reduction = pipeline.reduction;
  job.step_barrier = pipeline.step_barrier;
  return job;
}

double MostStepsPerSecond(const PipelinePlan& plan, const Scenario& scenario) {
  const PipelineLayout& layout = scenario.pipeline->layout;
  const PipelineJob job = JobOf(plan, scenario);
  const std::vector<double> load = plan.MicroBatchSeconds(layout);
  const bool at_end = scenario.pipeline->reduction == PipelineReduction::kAtEnd;
  const auto seconds_of = [&](int32_t stage, Span StageTimes::*part) {
    double sum = 0;
    for (const auto& of_step : plan.times) sum += ToSeconds(of_step[Index(stage)].*part);
    return sum / static_cast<double>(plan.times.size());
  };
  double step = 0;
  double on_way = 0;  // of a micro-batch to the device's first stage, and back
  double first_end = 0;
  for (int32_t device = 0; device < layout.devices; ++device) {
    const double computes = load[Index(device)] * layout.micro_batches;
    const auto [reduces, gathers] = CollectiveSecondsOf(job, device);
    double weights = 0;  // whose gradients nobody else waits for
    for (int32_t chunk = 0; chunk < layout.chunks; ++chunk)
      weights += seconds_of(layout.StageOf(device, chunk), &StageTimes::backward_weight) *
                 layout.micro_batches;
    const double tail = ToSeconds(job.tails[Index(device)]) + gathers;
    step = std::max(step, (at_end ? computes + reduces : std::max(computes, reduces)) + tail);
    // The first device ends its step behind all others, and begins the next before them.
    if (device == 0) first_end = (at_end ? reduces : 0) + tail;
    step = std::max(step, on_way + computes - weights + first_end);
    on_way += seconds_of(device, &StageTimes::forward) + seconds_of(device, &StageTimes::backward) +
              2 * (ToSeconds(job.latency) +
                   static_cast<double>(job.output_bytes[Index(device)]) / job.bytes_per_second);
  }
  return scenario.workers / step;
}

DeviceMemory MemoryOfDevice(const PipelinePlan& plan, const Scenario& scenario, int32_t device) {
  const PipelineLayout& layout = scenario.pipeline->layout;
  DeviceMemory memory =
      StateOf(static_cast<double>(plan.gradient_bytes[Index(device)]) / plan.sent_share,
              ShardingOf(scenario), scenario.workers);
  if (!plan.knows_memory) return memory;
  int64_t kept = 0;
  int64_t most = 0;
  for (const PipelineWork& work : OrderOf(layout, device)) {
    const int64_t bytes = plan.kept_bytes[Index(layout.StageOf(device, work.chunk))];
    if (work.part == PipelinePart::kForward) most = std::max(most, kept += bytes);
    if (work.part == PipelinePart::kBackward || work.part == PipelinePart::kBackwardWeight)
      kept -= bytes;
  }
  memory.kept = static_cast<double>(most);
  return memory;
}

}  // namespace stepcast
