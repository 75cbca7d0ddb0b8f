#include "core/predict/pipeline_prediction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/predict/throughput.h"

namespace stepcast::pipeline_prediction_test {
namespace {

// `stages` equal ones of 1 ms forward and 2 ms backward, whose backward is two streams' work.
Profile Stages(int32_t stages, int32_t devices_per_worker = 1) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e10}};
  draft.devices_per_worker = devices_per_worker;
  RecordedStep step;
  int64_t now = 0;
  const auto add = [&](Operation operation, int64_t begin, int64_t end) {
    draft.operations.push_back(std::move(operation));
    step.start_ns.push_back(begin);
    step.end_ns.push_back(end);
    now = std::max(now, end);
    return static_cast<int32_t>(draft.operations.size()) - 1;
  };
  std::vector<int32_t> before;
  for (int32_t stage = 0; stage < stages; ++stage)
    before = {add({.name = "forward/" + std::to_string(stage),
                   .resource = Resource::kWorker,
                   .waiting_for = before,
                   .pass = Pass::kForward,
                   .output_bytes = 1000},
                  now, now + 1'000'000)};
  for (int32_t stage = stages; stage-- > 0;) {
    // The longer of two at once.
    add({.name = "side/" + std::to_string(stage),
         .resource = Resource::kWorker,
         .waiting_for = before,
         .stream = 1,
         .pass = Pass::kBackward},
        now, now + 1'500'000);
    before = {add({.name = "backward/" + std::to_string(stage),
                   .resource = Resource::kWorker,
                   .waiting_for = before,
                   .pass = Pass::kBackward},
                  now - 1'500'000, now + 500'000)};
    add({.name = "gradient/" + std::to_string(stage),
         .resource = Resource::kCollective,
         .size_bytes = 1000,
         .waiting_for = before,
         .collective = Collective::kAllReduce},
        now, now);
  }
  draft.steps = {step};
  return Profile::Create(std::move(draft)).value();
}

absl::StatusOr<ThroughputAnswer> Predict(const Profile& profile, int32_t workers,
                                         const PipelineDraft& pipeline, StepSource source) {
  ScenarioDraft scenario{.workers = workers, .pipeline = pipeline};
  scenario.communication = AllReduceDraft{.latency_seconds = 0};
  ThroughputDraft draft{.scenarios = {scenario}};
  draft.options.step_variation = source;
  const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, draft);
  if (!query.ok()) return query.status();
  return PredictThroughput(profile, *query, NeverStop);
}

TEST(PipelinePredictionTest, StreamsOfAStageRunBesideEachOther) {
  const auto answer = Predict(Stages(4), 1,
                              {.stages = 4,
                               .micro_batches = 8,
                               .bandwidth_bytes_per_second = 1e15,
                               .latency_seconds = 0,
                               .step_barrier = true},
                              StepSource::kAsRecorded);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const Prediction& prediction = answer->predictions[0];
  EXPECT_NEAR(1 / prediction.steps_per_second, (8 + 3) * 3e-3, 1e-6);
  EXPECT_NEAR(prediction.pipeline->bubble_fraction, 3.0 / 11, 1e-4);
  EXPECT_EQ(prediction.pipeline->bottleneck, PipelineBottleneck::kComputation);
}

TEST(PipelinePredictionTest, DevicesAreCountedByReplica) {
  const auto answer =
      Predict(Stages(4, 8), 3, {.stages = 2, .micro_batches = 4}, StepSource::kAsRecorded);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->predictions[0].devices, 3 * 2 * 8);
}

TEST(PipelinePredictionTest, SmallStepsOfManyDevicesAreBoundByTheBubble) {
  const auto answer =
      Predict(Stages(16), 1, {.stages = 16, .micro_batches = 2}, StepSource::kAsRecorded);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->predictions[0].pipeline->bottleneck, PipelineBottleneck::kBubble);
}

// Many replicas are few columns, each of which takes the draws of its slowest: the step is that of
// the slowest of all. Held against the expected greatest of so many draws where one device's own
// computation is all of a step.
TEST(PipelinePredictionTest, TheSlowestOfAllReplicasSetsThePace) {
  const Profile profile = Stages(1);
  double before = 0;
  for (const int32_t workers : {1, 16, 256, 4096}) {
    const auto answer =
        Predict(profile, workers, {.stages = 1, .micro_batches = 4, .step_barrier = true},
                StepSource::kModelled);
    ASSERT_TRUE(answer.ok()) << answer.status();
    const double step = workers / answer->predictions[0].steps_per_second;
    // Of n normal variables, about sqrt(2 ln n) deviations less the correction of Gumbel.
    const double n = workers;
    const double top = workers == 1 ? 0
                                    : std::sqrt(2 * std::log(n)) -
                                          (std::log(std::log(n)) + std::log(4 * M_PI)) /
                                              (2 * std::sqrt(2 * std::log(n))) +
                                          0.577 / std::sqrt(2 * std::log(n));
    EXPECT_NEAR(std::log(step / 12e-3), 0.03 * top, 0.012) << workers;
    EXPECT_GT(step, before);
    before = step;
  }
}

}  // namespace
}  // namespace stepcast::pipeline_prediction_test
