#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "core/base/index.h"
#include "core/communication/all_reduce.h"
#include "core/communication/collective_time.h"
#include "core/predict/pipeline_job.h"

namespace stepcast {
namespace {

// Writes the collectives of stages.
class ReductionWriter {
 public:
  ReductionWriter(const PipelinePlan& plan, const Scenario& scenario)
      : plan_(plan),
        scenario_(scenario),
        job_(scenario.all_reduce()),
        pipeline_(*scenario.pipeline),
        times_(scenario) {}

  void Write(PipelineJob& job) const {
    const PipelineLayout& layout = pipeline_.layout;
    job.reductions.resize(Index(layout.stages()));
    if (scenario_.workers == 1 || !plan_.reduces) return;
    if (job_.sharding != Sharding::kNone) job.gathers.resize(Index(layout.devices));
    for (int32_t stage = 0; stage < layout.stages(); ++stage) {
      const std::vector<StageGradient>& gradients = plan_.gradients[Index(stage)];
      if (HasBuckets(pipeline_.reduction)) {
        AddBuckets(stage, gradients, job);
      } else if (pipeline_.reduction == PipelineReduction::kByChunk) {
        Add(SumOf(gradients), {}, stage, job);
      } else if (stage < layout.devices) {
        // At a device's end all its gradients are one.
        Add(plan_.gradient_bytes[Index(layout.DeviceOf(stage))], {}, stage, job);
      }
    }
  }

 private:
  static int64_t SumOf(const std::vector<StageGradient>& gradients) {
    int64_t sum = 0;
    for (const StageGradient& gradient : gradients) sum += gradient.bytes;
    return sum;
  }

  // Megatron-LM's: all stages but the first have one bucket (distributed_data_parallel.py).
  Buckets MegatronBuckets(int32_t stage) const {
    constexpr int64_t kLeastElements = 40'000'000;
    constexpr int64_t kElementsOfARank = 1'000'000;
    const int64_t bytes = stage > 0
                              ? INT64_MAX
                              : pipeline_.gradient_element_bytes *
                                    std::max(kLeastElements, kElementsOfARank * scenario_.workers);
    return {.first_bytes = bytes, .cap_bytes = bytes};
  }

  // The number of gradients in each bucket. Recorded ones end where a stage does.
  std::vector<int32_t> BucketsOf(int32_t stage, const std::vector<StageGradient>& gradients) const {
    Fusion rule = job_.fusion;
    if (auto* const limits = std::get_if<Buckets>(&rule))
      *limits = AsSent(*limits, plan_.recorded_buckets);
    if (pipeline_.reduction == PipelineReduction::kMegatronBuckets) rule = MegatronBuckets(stage);
    if (!std::holds_alternative<RecordedBuckets>(rule)) {
      std::vector<int64_t> bytes;
      bytes.reserve(gradients.size());
      for (const StageGradient& gradient : gradients) bytes.push_back(gradient.bytes);
      return GradientsByBucket(bytes, rule);
    }
    std::vector<int32_t> counts;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (i == 0 || gradients[i].bucket != gradients[i - 1].bucket) counts.push_back(0);
      ++counts.back();
    }
    return counts;
  }

  void AddBuckets(int32_t stage, const std::vector<StageGradient>& gradients,
                  PipelineJob& job) const {
    size_t next = 0;
    for (const int32_t count : BucketsOf(stage, gradients)) {
      int64_t sum = 0;
      Span before_end = gradients[next].before_end;
      for (int32_t i = 0; i < count; ++i, ++next) {
        sum += gradients[next].bytes;
        before_end = std::min(before_end, gradients[next].before_end);
      }
      Add(sum, before_end, stage, job);
    }
  }

  // A sharded optimizer has the gradients' shares reduced, and gathers what it made of them.
  void Add(int64_t bytes, Span before_end, int32_t stage, PipelineJob& job) const {
    if (bytes == 0) return;
    const bool sharded = job_.sharding != Sharding::kNone;
    StageReduction& reduction = job.reductions[Index(stage)].emplace_back(
        CollectiveOf(sharded ? Collective::kReduceScatter : Collective::kAllReduce, bytes));
    reduction.before_end = before_end;
    if (!sharded) return;
    // Parameters are whole, however their gradients are compressed.
    const StageReduction gather = CollectiveOf(
        Collective::kAllGather, std::llround(static_cast<double>(bytes) / plan_.sent_share));
    StageReduction& all = job.gathers[Index(pipeline_.layout.DeviceOf(stage))];
    all.alone += gather.alone;
    all.wire_bytes += gather.wire_bytes;
    all.bytes += gather.bytes;
  }

  StageReduction CollectiveOf(Collective kind, int64_t bytes) const {
    StageReduction collective{
        .before_end = {}, .alone = times_.TimeOf(kind, bytes), .wire_bytes = 0, .bytes = bytes};
    const bool on_links =
        job_.workers_per_node == 1 && (job_.algorithm == CollectiveAlgorithm::kRing ||
                                       job_.algorithm == CollectiveAlgorithm::kGloo);
    if (!pipeline_.shares_links || !on_links) return collective;
    const double d = scenario_.workers;
    collective.wire_bytes =
        (kind == Collective::kAllReduce ? 2 : 1) * (d - 1) / d * static_cast<double>(bytes);
    // A ring alone on faster links takes as long as on its own.
    const double rate =
        std::max(scenario_.bandwidth_bytes_per_second, pipeline_.bandwidth_bytes_per_second);
    collective.alone =
        std::max(Span{}, collective.alone - FromSeconds(collective.wire_bytes / rate));
    return collective;
  }

  const PipelinePlan& plan_;
  const Scenario& scenario_;
  const AllReduce& job_;
  const Pipeline& pipeline_;
  const CollectiveTimes times_;
};

}  // namespace

void AddReductions(const PipelinePlan& plan, const Scenario& scenario, PipelineJob& job) {
  ReductionWriter(plan, scenario).Write(job);
}

DeviceCollectives CollectiveSecondsOf(const PipelineJob& job, int32_t device) {
  const auto seconds = [&](const StageReduction& one) {
    return ToSeconds(one.alone) + one.wire_bytes / job.bytes_per_second;
  };
  DeviceCollectives of;
  for (int32_t chunk = 0; chunk < job.layout.chunks; ++chunk)
    for (const StageReduction& one : job.reductions[Index(job.layout.StageOf(device, chunk))])
      of.reductions += seconds(one);
  if (!job.gathers.empty()) of.gather = seconds(job.gathers[Index(device)]);
  return of;
}

}  // namespace stepcast
