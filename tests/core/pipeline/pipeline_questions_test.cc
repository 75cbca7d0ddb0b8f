// The questions about jobs of pipelines beside predictions: bounds, formulas, logs and traces,
// diagnoses, and shares of a cluster's devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/allocate/allocation.h"
#include "core/base/error.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/compare/comparison.h"
#include "core/diagnose/diagnosis.h"
#include "core/predict/pipeline_job.h"
#include "core/recommend/recommendation.h"
#include "core/recommend/throughput_bound.h"
#include "core/trace/trace.h"

namespace stepcast::pipeline_questions_test {
namespace {

using ::testing::HasSubstr;

// A stage's forward and backward, milliseconds, and its gradient and output.
struct Stage {
  int64_t forward_ms = 1;
  int64_t backward_ms = 2;
  int64_t gradient_bytes = 1'000'000;
  int64_t output_bytes = 1'000'000;
};

Profile ProfileOf(const std::vector<Stage>& stages, int32_t devices_per_worker = 1) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.devices_per_worker = devices_per_worker;
  RecordedStep step;
  int64_t now = 0;
  const auto add = [&](Operation operation, int64_t length_ns) {
    draft.operations.push_back(std::move(operation));
    step.start_ns.push_back(now);
    now += length_ns;
    step.end_ns.push_back(now);
    return static_cast<int32_t>(draft.operations.size()) - 1;
  };
  std::vector<int32_t> before;
  for (size_t i = 0; i < stages.size(); ++i)
    before = {add({.name = "forward/" + std::to_string(i),
                   .resource = Resource::kWorker,
                   .waiting_for = before,
                   .pass = Pass::kForward,
                   .output_bytes = stages[i].output_bytes},
                  stages[i].forward_ms * 1'000'000)};
  for (size_t i = stages.size(); i-- > 0;) {
    before = {add({.name = "backward/" + std::to_string(i),
                   .resource = Resource::kWorker,
                   .waiting_for = before,
                   .pass = Pass::kBackward},
                  stages[i].backward_ms * 1'000'000)};
    add({.name = "gradient/" + std::to_string(i),
         .resource = Resource::kCollective,
         .size_bytes = stages[i].gradient_bytes,
         .waiting_for = before,
         .collective = Collective::kAllReduce},
        0);
  }
  draft.steps = {step};
  return Profile::Create(std::move(draft)).value();
}

ScenarioDraft Asked(int32_t stages, int32_t micro_batches, std::optional<int32_t> workers = {}) {
  ScenarioDraft draft{.workers = workers,
                      .pipeline = PipelineDraft{.stages = stages, .micro_batches = micro_batches}};
  draft.communication = AllReduceDraft{.latency_seconds = 0};
  return draft;
}

Scenario ScenarioOf(const Profile& profile, const ScenarioDraft& draft) {
  return ResolveScenario(profile, draft, {.pipelines = true}).value();
}

TEST(PipelineBoundTest, NoPredictionIsFaster) {
  const Profile profile = ProfileOf(std::vector<Stage>(4));
  for (const PipelineReduction reduction :
       {PipelineReduction::kAtEnd, PipelineReduction::kByChunk, PipelineReduction::kBuckets,
        PipelineReduction::kMegatronBuckets}) {
    ScenarioDraft draft = Asked(2, 4);
    draft.pipeline->reduction = reduction;
    const Scenario one = ScenarioOf(profile, draft);
    const ThroughputBound bound(PlanPipeline(profile, one), one);
    for (const int32_t workers : {1, 2, 7, 64}) {
      draft.workers = workers;
      const auto query = ResolveThroughput(profile, {.scenarios = {draft}});
      ASSERT_TRUE(query.ok()) << query.status();
      const auto answer = PredictThroughput(profile, *query, NeverStop);
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_LE(answer->predictions[0].steps_per_second, bound.StepsPerSecond(workers));
      EXPECT_GE(answer->predictions[0].steps_per_second, bound.StepsPerSecond(workers) / 3);
    }
  }
}

TEST(PipelineRecommendationTest, TheKneeIsWhatEveryPredictionTogetherSays) {
  std::vector<Stage> stages(4);
  for (Stage& stage : stages) stage.gradient_bytes = 20'000'000;
  const Profile profile = ProfileOf(stages);
  const auto query =
      ResolveRecommendation(profile, {.scenario = Asked(2, 4), .options = {}, .max_workers = 6});
  ASSERT_TRUE(query.ok()) << query.status();
  const auto found = RecommendWorkers(profile, *query, NeverStop, InOrder(), {});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->frontier.size(), 6U);
  double best = 0;
  double chosen = 0;
  for (const Prediction& prediction : found->frontier) {
    const double value = prediction.examples_per_second * prediction.examples_per_second /
                         prediction.scenario.workers;
    best = std::max(best, value);
    if (prediction.scenario.workers == found->workers) chosen = value;
  }
  EXPECT_GE(chosen, 0.98 * best);
  EXPECT_THAT(found->reason, HasSubstr("replica"));
}

TEST(PipelineBucketsTest, MegatronsAreOfElementsAndOfTheFirstStageOnly) {
  // Buckets of 40 million elements of 4 bytes, or of a million a replica.
  std::vector<Stage> stages(8);
  for (Stage& stage : stages) stage.gradient_bytes = 100'000'000;
  const Profile profile = ProfileOf(stages);
  const auto counts = [&](int32_t workers, int32_t element_bytes) {
    ScenarioDraft draft = Asked(2, 4, workers);
    draft.pipeline->reduction = PipelineReduction::kMegatronBuckets;
    draft.pipeline->gradient_element_bytes = element_bytes;
    const Scenario scenario = ScenarioOf(profile, draft);
    const PipelineJob job = JobOf(PlanPipeline(profile, scenario), scenario);
    return std::pair(job.reductions[0].size(), job.reductions[1].size());
  };
  EXPECT_EQ(counts(2, 4), std::pair(size_t{2}, size_t{1}));    // 160 MB: two gradients a bucket
  EXPECT_EQ(counts(2, 2), std::pair(size_t{4}, size_t{1}));    // 80 MB
  EXPECT_EQ(counts(100, 4), std::pair(size_t{1}, size_t{1}));  // 400 MB
}

class Keep final : public PipelineLog {
 public:
  void OnSlice(const PipelineSlice& slice) override { slices.push_back(slice); }
  std::vector<PipelineSlice> slices;
};

TEST(PipelineLogTest, SlicesAreTheRun) {
  const Profile profile = ProfileOf(std::vector<Stage>(6));
  for (const PipelineReceives receives :
       {PipelineReceives::kEager, PipelineReceives::kFused, PipelineReceives::kLate}) {
    ScenarioDraft draft = Asked(3, 5, 2);
    draft.pipeline->receives = receives;
    const Scenario scenario = ScenarioOf(profile, draft);
    PipelineJob job = JobOf(PlanPipeline(profile, scenario), scenario);
    job.replicas = 2;
    job.steps = 3;
    job.scale.assign(6, 1);
    job.scale[1] = 1.2;
    Keep log;
    const auto run = SimulatePipeline(job, NeverStop, &log);
    ASSERT_TRUE(run.ok()) << run.status();
    std::vector<Span> computed(6);
    std::map<int64_t, std::set<PipelineSlice::Kind>> transfers;
    std::vector<Instant> ends(3);
    for (const PipelineSlice& slice : log.slices) {
      EXPECT_LE(slice.begin.ticks, slice.end.ticks);
      if (slice.kind == PipelineSlice::Kind::kStep)
        ends[static_cast<size_t>(slice.step)] =
            std::max(ends[static_cast<size_t>(slice.step)], slice.end);
      if (slice.kind == PipelineSlice::Kind::kTransfer) {
        EXPECT_EQ(slice.bytes, 1'000'000);
        EXPECT_EQ(std::abs(slice.device - slice.to), 1);
        transfers[slice.output].insert(slice.kind);
      }
      if (slice.kind != PipelineSlice::Kind::kComputation) continue;
      computed[static_cast<size_t>(slice.replica) * 3 + static_cast<size_t>(slice.device)] +=
          slice.end - slice.begin;
      if (slice.input >= 0) transfers[slice.input].insert(PipelineSlice::Kind::kRest);
      if (slice.output >= 0) transfers[slice.output].insert(PipelineSlice::Kind::kComputation);
    }
    for (size_t x = 0; x < computed.size(); ++x)
      EXPECT_EQ(computed[x].ticks, run->computation[x].ticks) << x;
    for (size_t step = 0; step < ends.size(); ++step)
      EXPECT_EQ(ends[step].ticks, run->step_ends[step].ticks) << step;
    // Each is made, sent and waited for: 2 ways, 2 cuts, 5 micro-batches, 2 replicas, 3 steps.
    EXPECT_EQ(transfers.size(), 2U * 2 * 5 * 2 * 3);
    for (const auto& [id, kinds] : transfers) EXPECT_EQ(kinds.size(), 3U) << id;
  }
}

TEST(PipelineTraceTest, ItEndsWhereItsSinkFailsAndCountsItsEvents) {
  const Profile profile = ProfileOf(std::vector<Stage>(4));
  const auto query = ResolveTrace(profile, {.scenario = Asked(2, 3, 2), .options = {}});
  ASSERT_TRUE(query.ok()) << query.status();
  std::string text;
  const auto summary = WriteTrace(
      profile, *query,
      [&](const std::string& piece) {
        text += piece;
        return absl::OkStatus();
      },
      NeverStop);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const nlohmann::json trace = nlohmann::json::parse(text);
  EXPECT_EQ(trace["traceEvents"].size(), static_cast<size_t>(summary->events));
  std::set<std::string> names;
  for (const auto& event : trace["traceEvents"])
    if (event["name"] == "process_name") names.insert(event["args"]["name"]);
  EXPECT_EQ(names, (std::set<std::string>{"worker 0, as slow as any of workers 0 to 1"}));
  const auto failed = WriteTrace(
      profile, *query, [](const std::string&) { return absl::CancelledError("gone"); }, NeverStop);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kCancelled);
}

TEST(PipelineComparisonTest, FormulasKnowWhatTheyAreGiven) {
  const Profile profile = ProfileOf({{1, 2}, {1, 2}, {2, 4}, {1, 2}});
  const auto query =
      ResolveComparison(profile, {.worker_counts = {1, 4}, .scenario = Asked(4, 8), .options = {}});
  ASSERT_TRUE(query.ok()) << query.status();
  const auto found = CompareModels(profile, *query, NeverStop);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(found->pipeline_inputs.has_value());
  EXPECT_NEAR(found->pipeline_inputs->slowest_seconds, 6e-3, 1e-9);
  EXPECT_NEAR(found->pipeline_inputs->mean_seconds, 15e-3 / 4, 1e-9);
  EXPECT_NEAR(found->pipeline_inputs->transfer_seconds, 1e-3, 1e-9);
  for (const ModelComparison& comparison : found->comparisons) {
    const double workers = comparison.prediction.scenario.workers;
    ASSERT_EQ(comparison.rivals.size(), 3U);
    EXPECT_NEAR(workers / comparison.rivals[0].steps_per_second, 11 * 6e-3, 1e-9);
    const double ring = 2 * (workers - 1) / workers * 1e-3;
    EXPECT_NEAR(workers / comparison.rivals[2].steps_per_second,
                11 * 15e-3 / 4 + 2 * 8 * 1e-3 + ring, 1e-8);
    EXPECT_NEAR(comparison.rivals[0].examples_per_second, 8 * comparison.rivals[0].steps_per_second,
                1e-9);
  }
  EXPECT_NEAR(found->comparisons[1].rivals[1].steps_per_second,
              4 * found->comparisons[0].prediction.steps_per_second, 1e-6);
}

TEST(PipelineDiagnosisTest, TheSlowestDeviceIsNamedAndItsWorthIsThatOfEqualStages) {
  const Profile profile =
      ProfileOf({{1, 2, 1000, 1000}, {1, 2, 1000, 1000}, {1, 2, 1000, 1000}, {3, 6, 1000, 1000}});
  const auto query = ResolveDiagnosis(profile, {.scenario = Asked(4, 8, 1), .options = {}});
  ASSERT_TRUE(query.ok()) << query.status();
  const auto found = DiagnoseJob(profile, *query, NeverStop);
  ASSERT_TRUE(found.ok()) << found.status();
  double sum = 0;
  const PipelineFinding* imbalance = nullptr;
  for (const PipelineFinding& finding : found->findings) {
    sum += finding.seconds;
    if (finding.part == PipelineBottleneck::kImbalance) imbalance = &finding;
  }
  EXPECT_NEAR(sum * found->prediction.steps_per_second, 1, 1e-6);
  ASSERT_NE(imbalance, nullptr);
  EXPECT_EQ(imbalance->device, 3);
  EXPECT_EQ(imbalance->change, WhatIf::kEqualStages);
  EXPECT_THAT(imbalance->text, HasSubstr("device 3, the last, computes 9 ms of a micro-batch"));
  // Equal stages take 4.5 ms in place of the last one's 9: nearly twice as fast.
  EXPECT_GT(imbalance->ratio, 1.6);
  EXPECT_LT(imbalance->ratio, 2);
  for (const WhatIfAnswer& answer : found->what_ifs) EXPECT_GT(answer.ratio, 0.999);
}

TEST(PipelineDiagnosisTest, ASpentTimeBudgetLeavesChangesOut) {
  const Profile profile = ProfileOf(std::vector<Stage>(4));
  const auto query = ResolveDiagnosis(profile, {.scenario = Asked(2, 4, 2), .options = {}});
  ASSERT_TRUE(query.ok()) << query.status();
  int64_t asked = 0;
  const auto stop = [&] { return ++asked > 400 ? TimeBudgetSpent() : absl::OkStatus(); };
  const auto found = DiagnoseJob(profile, *query, stop);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_GT(found->prediction.examples_per_second, 0);
}

TEST(PipelineDiagnosisTest, AChangeWhoseDevicesWaitForEachOtherIsLeftOut) {
  const Profile profile = ProfileOf(std::vector<Stage>(4));
  for (const PipelineReceives receives : {PipelineReceives::kFused, PipelineReceives::kPaired}) {
    ScenarioDraft draft = Asked(2, 8, 2);
    draft.pipeline->receives = receives;
    const auto query = ResolveDiagnosis(profile, {.scenario = draft, .options = {}});
    ASSERT_TRUE(query.ok()) << query.status();
    const auto found = DiagnoseJob(profile, *query, NeverStop);
    ASSERT_TRUE(found.ok()) << found.status();
    const auto& left_out = found->left_out;
    const auto chunks = std::find_if(left_out.begin(), left_out.end(), [](const auto& each) {
      return each.change == WhatIf::kTwiceTheChunks;
    });
    ASSERT_NE(chunks, left_out.end());
    EXPECT_THAT(chunks->reason, HasSubstr("schedule INTERLEAVED needs receives posted earlier"));
    EXPECT_GE(found->what_ifs.size(), 5);
  }
}

AllocationJob JobOfCluster(const Profile& profile, const ScenarioDraft& scenario,
                           const ClusterCapacity& capacity) {
  return ResolveAllocationJob(profile, {.scenario = scenario, .max_workers = 6}, capacity,
                              AllocationObjective::kTotalUtility)
      .value();
}

TEST(PipelineAllocationTest, DevicesAreSharedByWhatWorkersAreMadeOf) {
  const Profile profile = ProfileOf(std::vector<Stage>(4));
  AllocationQuery query{.capacity = {.devices = 10}};
  query.jobs.push_back(JobOfCluster(profile, Asked(4, 8), query.capacity));
  query.jobs.push_back(JobOfCluster(profile, Asked(2, 8), query.capacity));
  const auto found = AllocateWorkers(query, NeverStop);
  ASSERT_TRUE(found.ok()) << found.status();
  const int64_t devices = 4 * found->jobs[0].share.workers + 2 * found->jobs[1].share.workers;
  EXPECT_EQ(found->devices, devices);
  EXPECT_LE(devices, 10);
  EXPECT_GE(devices, 9);
  EXPECT_EQ(found->one_more_worker.devices, 2);
  query.capacity = {.devices = 5};
  const auto too_few = AllocateWorkers(query, NeverStop);
  ASSERT_TRUE(too_few.ok());
  EXPECT_THAT(too_few->infeasible_reason, HasSubstr("capacity.devices: the jobs' minimums need 6"));
}

TEST(PipelineAllocationTest, WorkersThatAreUnlikeCannotBeCounted) {
  const Profile profile = ProfileOf(std::vector<Stage>(4));
  AllocationQuery query{.capacity = {.workers = 10}};
  query.jobs.push_back(JobOfCluster(profile, Asked(4, 8), query.capacity));
  ASSERT_TRUE(AllocateWorkers(query, NeverStop).ok());
  query.jobs.push_back(JobOfCluster(profile, Asked(2, 8), query.capacity));
  const absl::Status status = AllocateWorkers(query, NeverStop).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(status).faults.front().field, "capacity.workers");
}

TEST(PipelineMoneyTest, AReplicaOfSeveralNodesPaysForEach) {
  const Profile profile = ProfileOf(std::vector<Stage>(4));
  ScenarioDraft draft = Asked(4, 8, 3);
  draft.communication = {};
  draft.cluster = ClusterDraft{.bandwidth_bytes_per_second = 1e9,
                               .workers_per_node = 2,
                               .intra_node_bandwidth_bytes_per_second = 1e10};
  const MachinePrices prices{.worker_hour = 1, .node_hour = 10};
  EXPECT_DOUBLE_EQ(MoneyPerSecond(prices, ScenarioOf(profile, draft), 3, 0) * 3600, 3 + 60);
  draft.pipeline->stages = 2;
  EXPECT_DOUBLE_EQ(MoneyPerSecond(prices, ScenarioOf(profile, draft), 3, 0) * 3600, 3 + 30);
  draft.pipeline->stages = 1;
  draft.workers = 4;
  EXPECT_DOUBLE_EQ(MoneyPerSecond(prices, ScenarioOf(profile, draft), 4, 0) * 3600, 4 + 20);
  // Four replicas of eight devices.
  EXPECT_DOUBLE_EQ(MoneyPerSecond({.device_hour = 2}, ScenarioOf(profile, draft), 4, 0, 8) * 3600,
                   64);
}

}  // namespace
}  // namespace stepcast::pipeline_questions_test
