#include "core/predict/pipeline_prediction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/executor.h"
#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/model/made_steps.h"
#include "core/predict/pipeline_job.h"
#include "core/predict/throughput.h"
#include "core/zoo/model_zoo.h"
#include "tests/core/predict/kept_runs.h"

namespace stepcast::pipeline_prediction_test {
namespace {

// `stages` equal ones of 1 ms forward and 2 ms backward, whose backward is two streams' work.
Profile Stages(int32_t stages, int32_t devices_per_worker = 1, int64_t gradient_bytes = 1000) {
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
    std::vector<int32_t> side = before;
    if (side.front() != stage) side.push_back(stage);
    add({.name = "side/" + std::to_string(stage),
         .resource = Resource::kWorker,
         .waiting_for = side,
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
         .size_bytes = stage == stages - 1 ? 1000 : gradient_bytes,
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

// The last stage's reduction hides behind the computation of the others, and comes out where that
// is faster.
TEST(PipelinePredictionTest, TheGainOfComputationIsWhatTwiceTheSpeedBrings) {
  const Profile profile = Stages(4, 1, 1);
  const auto predict = [&](double speed) {
    ScenarioDraft scenario{.workers = 2,
                           .bandwidth_bytes_per_second = 1e6 / 6,
                           .worker_groups = {{.count = 2, .compute_speed_factor = speed}},
                           .pipeline = PipelineDraft{.stages = 4,
                                                     .micro_batches = 8,
                                                     .bandwidth_bytes_per_second = 1e15,
                                                     .latency_seconds = 0,
                                                     .step_barrier = true}};
    scenario.communication = AllReduceDraft{.latency_seconds = 0};
    ThroughputDraft draft{.scenarios = {scenario}};
    draft.options.step_variation = StepSource::kAsRecorded;
    return PredictThroughput(profile, *ResolveThroughput(profile, draft), NeverStop)
        ->predictions[0];
  };
  const Prediction as_it_is = predict(1);
  const PipelineReport& report = *as_it_is.pipeline;
  ASSERT_EQ(report.bottleneck, PipelineBottleneck::kComputation);
  EXPECT_NEAR(report.bottleneck_gain, predict(2).steps_per_second / as_it_is.steps_per_second - 1,
              1e-6);
  const double scales =
      1 - report.idle_fraction + report.bubble_fraction + report.imbalance_fraction;
  EXPECT_LT(report.bottleneck_gain, scales / (2 - scales) - 0.02);
}

Prediction PredictedAsRecorded(const Profile& profile, const ScenarioDraft& scenario,
                               const SimulationOptionsDraft& options = {}) {
  ThroughputDraft draft{.scenarios = {scenario}, .options = options};
  draft.options.step_variation = StepSource::kAsRecorded;
  return PredictThroughput(profile, *ResolveThroughput(profile, draft), NeverStop)->predictions[0];
}

// Transfers hide the reductions of a network whose last layer is large, which come out where
// transfers are free.
TEST(PipelinePredictionTest, TheGainOfTransfersIsWhatFreeOnesBring) {
  ZooOptions options{.platform = {.bandwidth_bytes_per_second = 1e8}};
  options.communication = ZooCommunication::kAllReduce;
  const Profile profile = BuildZooProfile("resnet50", options).value();
  ScenarioDraft scenario{.workers = 2,
                         .pipeline = PipelineDraft{.stages = 4,
                                                   .micro_batches = 8,
                                                   .receives = PipelineReceives::kEager,
                                                   .latency_seconds = 0}};
  scenario.communication = AllReduceDraft{.latency_seconds = 0};
  const Prediction slow = PredictedAsRecorded(profile, scenario);
  ASSERT_EQ(slow.pipeline->bottleneck, PipelineBottleneck::kTransfers);
  scenario.pipeline->bandwidth_bytes_per_second = 1e15;
  const Prediction free = PredictedAsRecorded(profile, scenario);
  EXPECT_NEAR(slow.pipeline->bottleneck_gain, free.steps_per_second / slow.steps_per_second - 1,
              1e-3);
  const double share = slow.pipeline->transfer_fraction;
  EXPECT_LT(slow.pipeline->bottleneck_gain, share / (1 - share) - 0.5);
}

TEST(PipelinePredictionTest, SpeedUpOfUnlikeReplicasIsOverTheFastest) {
  const Profile profile = Stages(4);
  ScenarioDraft scenario{.workers = 2,
                         .worker_groups = {{.count = 1}, {.count = 1, .compute_speed_factor = 2}},
                         .pipeline = PipelineDraft{.stages = 4, .micro_batches = 8}};
  const Prediction both = PredictedAsRecorded(profile, scenario);
  scenario.workers = 1;
  scenario.worker_groups.erase(scenario.worker_groups.begin());
  const Prediction fast = PredictedAsRecorded(profile, scenario);
  EXPECT_NEAR(both.speedup, both.examples_per_second / fast.examples_per_second, 1e-9);
  EXPECT_NEAR(fast.speedup, 1, 1e-9);
}

TEST(PipelinePredictionTest, ARateThatNobodyMeasuredIsWarnedOfInFirstStepsToo) {
  const Prediction prediction =
      PredictedAsRecorded(Stages(4), {.pipeline = PipelineDraft{.stages = 4, .micro_batches = 8}},
                          {.horizon = Horizon::kFirstSteps, .horizon_steps = 5});
  EXPECT_TRUE(prediction.at_half_the_rate.has_value());
  EXPECT_TRUE(std::ranges::any_of(prediction.warnings, [](const Warning& warning) {
    return warning.reason == Warning::Reason::kLinkRateNotMeasured;
  }));
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

// The most of each prefix of the order, counted anew.
int64_t NaivePeak(const PipelineLayout& layout, const std::vector<int64_t>& kept, int32_t device) {
  const std::vector<PipelineWork> order = OrderOf(layout, device);
  const bool splits = SplitsBackward(layout.schedule);
  int64_t peak = 0;
  for (size_t length = 1; length <= order.size(); ++length) {
    std::set<std::pair<int32_t, int32_t>> in_flight;
    for (size_t i = 0; i < length; ++i) {
      const std::pair key(order[i].chunk, order[i].micro_batch);
      if (order[i].part == PipelinePart::kForward) in_flight.insert(key);
      if (order[i].part == (splits ? PipelinePart::kBackwardWeight : PipelinePart::kBackward))
        in_flight.erase(key);
    }
    int64_t now = 0;
    for (const auto& [chunk, micro_batch] : in_flight)
      now += kept[static_cast<size_t>(layout.StageOf(device, chunk))];
    peak = std::max(peak, now);
  }
  return peak;
}

std::vector<int64_t> MemoryOf(const PipelineLayout& layout, const std::vector<int64_t>& kept) {
  Scenario scenario;
  scenario.workers = 1;
  scenario.communication = AllReduce{};
  scenario.pipeline = Pipeline{.layout = layout};
  PipelinePlan plan;
  plan.kept_bytes = kept;
  plan.knows_memory = true;
  plan.gradient_bytes.resize(static_cast<size_t>(layout.devices));
  std::vector<int64_t> bytes;
  for (int32_t device = 0; device < layout.devices; ++device)
    bytes.push_back(static_cast<int64_t>(MemoryOfDevice(plan, scenario, device).bytes()));
  return bytes;
}

TEST(DeviceMemoryTest, ItIsThePeakOfWhatUnlikeChunksKeepTogether) {
  EXPECT_EQ(MemoryOf({.schedule = PipelineSchedule::kInterleaved,
                      .devices = 4,
                      .chunks = 2,
                      .micro_batches = 8},
                     {8, 8, 8, 8, 0, 0, 0, 0}),
            (std::vector<int64_t>{64, 64, 56, 40}));
  Random random({1});
  int checked = 0;
  while (checked < 300) {
    const auto schedule = static_cast<PipelineSchedule>(random.Below(6));
    PipelineLayout layout{.schedule = schedule,
                          .variant = static_cast<PipelineVariant>(random.Below(2)),
                          .devices = static_cast<int32_t>(1 + random.Below(5)),
                          .micro_batches = static_cast<int32_t>(1 + random.Below(10))};
    if (HasChunks(schedule)) layout.chunks = static_cast<int32_t>(2 + random.Below(3));
    if (!LayoutFaults(layout).empty()) continue;
    std::vector<int64_t> kept;
    for (int32_t stage = 0; stage < layout.stages(); ++stage)
      kept.push_back(static_cast<int64_t>(random.Below(1000)));
    const std::vector<int64_t> bytes = MemoryOf(layout, kept);
    for (int32_t device = 0; device < layout.devices; ++device)
      ASSERT_EQ(bytes[static_cast<size_t>(device)], NaivePeak(layout, kept, device))
          << PipelineScheduleName(schedule) << " of " << layout.devices << " devices";
    ++checked;
  }
}

// Six layers, whose gradients are ready one after the other within the backward pass, and an
// optimizer that waits for all.
Profile Layers(std::optional<RecordedBuckets> buckets) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  constexpr int32_t kLayers = 6;
  RecordedStep step;
  int64_t now = 0;
  const auto add = [&](Operation operation, int64_t length) {
    draft.operations.push_back(std::move(operation));
    step.start_ns.push_back(now);
    step.end_ns.push_back(now += length);
    return static_cast<int32_t>(draft.operations.size()) - 1;
  };
  int32_t before = -1;
  for (int32_t layer = 0; layer < kLayers; ++layer)
    before = add({.name = "forward/" + std::to_string(layer),
                  .resource = Resource::kWorker,
                  .waiting_for = before < 0 ? std::vector<int32_t>{} : std::vector<int32_t>{before},
                  .pass = Pass::kForward},
                 1'000'000);
  std::vector<int32_t> gradients;
  for (int32_t layer = kLayers; layer-- > 0;) {
    before = add({.name = "backward/" + std::to_string(layer),
                  .resource = Resource::kWorker,
                  .waiting_for = {before},
                  .pass = Pass::kBackward},
                 2'000'000);
    gradients.push_back(add({.name = "gradient/" + std::to_string(layer),
                             .resource = Resource::kCollective,
                             .size_bytes = 1'000'000 * (layer + 1),
                             .waiting_for = {before},
                             .collective = Collective::kAllReduce},
                            0));
  }
  add({.name = "optimizer",
       .resource = Resource::kWorker,
       .waiting_for = gradients,
       .pass = Pass::kOptimizer},
      3'000'000);
  draft.steps = {step};
  draft.buckets = std::move(buckets);
  return Profile::Create(std::move(draft)).value();
}

// A pipeline of one stage and one micro-batch is the job without a pipeline, however gradients are
// fused and whatever is sharded.
TEST(PipelinePredictionTest, OneStageOfOneMicroBatchIsThePlainJob) {
  const Profile plain = Layers(std::nullopt);
  const Profile recorded = Layers(RecordedBuckets{.sizes_bytes = {11'000'000, 10'000'000}});
  const Profile compressed = Layers(RecordedBuckets{
      .rule = Buckets{.first_bytes = 8'000'000, .cap_bytes = 12'000'000}, .sent_share = 0.5});
  AllReduceDraft as_recorded{.latency_seconds = 1e-4, .launch_seconds = 2e-4};
  AllReduceDraft unfused = as_recorded;
  unfused.fusion = Unfused{};
  AllReduceDraft buckets = as_recorded;
  buckets.fusion = Buckets{.first_bytes = 3'000'000, .cap_bytes = 6'000'000};
  std::vector<double> steps;
  for (const auto& [profile, fusing] :
       {std::pair(&plain, &unfused), std::pair(&plain, &buckets),
        std::pair(&recorded, &as_recorded), std::pair(&compressed, &as_recorded)}) {
    for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients}) {
      AllReduceDraft collectives = *fusing;
      collectives.sharding = sharding;
      double plain_step = 0;
      for (const bool is_pipeline : {false, true}) {
        ScenarioDraft scenario{.workers = 4, .communication = collectives};
        if (is_pipeline)
          scenario.pipeline = PipelineDraft{
              .stages = 1, .micro_batches = 1, .reduction = PipelineReduction::kBuckets};
        ThroughputDraft draft{.scenarios = {scenario}};
        draft.options.step_variation = StepSource::kAsRecorded;
        const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(*profile, draft);
        ASSERT_TRUE(query.ok()) << query.status();
        const auto answer = PredictThroughput(*profile, *query, NeverStop);
        ASSERT_TRUE(answer.ok()) << answer.status();
        const double step = 4 / answer->predictions[0].steps_per_second;
        if (!is_pipeline) plain_step = step;
        EXPECT_NEAR(step, plain_step, 1e-9) << static_cast<int>(sharding);
      }
      steps.push_back(plain_step);
    }
  }
  // A gather after the optimizer, three quarters of whose 3 ms others make, is hidden by nothing.
  for (size_t i = 0; i < steps.size(); i += 3) {
    EXPECT_GT(steps[i + 1] + 0.00225, steps[i]);
    EXPECT_EQ(steps[i + 2], steps[i + 1]);
  }
}

// Layers of 10 + 20 ms with parameters, the first of which has an update of 100 ms: by hand GPipe
// of 4 micro-batches takes (4 + 1) x 30 ms, and then the first device's update.
TEST(PipelinePredictionTest, AnUpdateIsOfTheDeviceOfItsLayerAndSharedByReplicasThatShard) {
  std::vector<TrainingLayer> layers;
  for (const std::string name : {"a", "b"})
    layers.push_back({.name = name,
                      .parameters = {{.name = name, .size_bytes = 4}},
                      .forward_ns = 10'000'000,
                      .backward_ns = 20'000'000,
                      .optimizer_ns = name == "a" ? 100'000'000 : 0});
  TrainingGraph graph = BuildAllReduceGraph(layers, 0);
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e15}};
  draft.operations = std::move(graph.operations);
  draft.steps.resize(1);
  draft.steps[0].start_ns.resize(draft.operations.size());
  draft.steps[0].end_ns = graph.durations_ns;
  const Profile profile = Profile::Create(std::move(draft)).value();
  for (const auto& [replicas, sharding, update] :
       {std::tuple(1, Sharding::kNone, 0.1), std::tuple(4, Sharding::kNone, 0.1),
        std::tuple(4, Sharding::kOptimizer, 0.025), std::tuple(4, Sharding::kGradients, 0.025)}) {
    ScenarioDraft scenario{
        .workers = replicas,
        .communication = AllReduceDraft{.latency_seconds = 0, .sharding = sharding},
        .pipeline = PipelineDraft{.stages = 2,
                                  .micro_batches = 4,
                                  .schedule = PipelineSchedule::kGpipe,
                                  .latency_seconds = 0,
                                  .step_barrier = true}};
    ThroughputDraft asked{.scenarios = {scenario}};
    asked.options.step_variation = StepSource::kAsRecorded;
    const auto answer =
        PredictThroughput(profile, ResolveThroughput(profile, asked).value(), NeverStop);
    ASSERT_TRUE(answer.ok()) << answer.status();
    const Prediction& prediction = answer->predictions[0];
    EXPECT_NEAR(replicas / prediction.steps_per_second, 0.15 + update, 1e-6);
    // The passes of the device that has most of each.
    EXPECT_NEAR(prediction.passes->forward, 0.04, 1e-9);
    EXPECT_NEAR(prediction.passes->backward, 0.08, 1e-9);
    EXPECT_NEAR(prediction.passes->optimizer, update, 1e-9);
    EXPECT_EQ(prediction.passes->other, 0);
  }
}

// Stages whose ranks were recorded, by what the import leaves of them, have an error of their own;
// joined ranks are told to be none of those that were measured.
TEST(PipelinePredictionTest, TheModelsErrorFollowsFromTheRecording) {
  const auto source = [](const std::string& framework, int32_t stages) {
    ProfileDraft draft{
        .framework = framework, .batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
    draft.steps.resize(1);
    for (const Pass pass : {Pass::kForward, Pass::kBackward, Pass::kOptimizer})
      for (int32_t rank = 0; rank < 3; ++rank) {
        const auto count = static_cast<int32_t>(draft.operations.size());
        const char* const name = pass == Pass::kForward    ? "forward/"
                                 : pass == Pass::kBackward ? "backward/"
                                                           : "optimizer/";
        draft.operations.push_back(
            {.name = name + std::to_string(rank),
             .resource = Resource::kWorker,
             .waiting_for = count == 0 ? std::vector<int32_t>{} : std::vector<int32_t>{count - 1},
             .pass = pass});
        draft.steps[0].start_ns.push_back(count * 1000);
        draft.steps[0].end_ns.push_back(count * 1000 + 1000);
      }
    const auto answer = Predict(Profile::Create(std::move(draft)).value(), 1,
                                {.stages = stages, .micro_batches = 4}, StepSource::kModelled);
    return answer.value().predictions[0].model_error.source;
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(source("pytorch", 3), "from the recordings of their ranks"));
  EXPECT_FALSE(has(source("pytorch", 3), "none of stages"));
  EXPECT_TRUE(has(source("pytorch", 2), "none of stages of several recorded ranks is measured"));
  EXPECT_TRUE(has(source("layer profile", 3), "./dev testbed --pipeline"));
  EXPECT_TRUE(has(source("layer profile", 2), "./dev testbed --pipeline"));
}

// The shares of a job whose only device computes all the time, of whichever steps are counted.
TEST(PipelinePredictionTest, ALoneDeviceIsNeverIdle) {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    ScenarioDraft scenario{.workers = 1,
                           .pipeline = PipelineDraft{.stages = 1, .micro_batches = 1}};
    ThroughputDraft draft{.scenarios = {scenario}};
    draft.options.step_variation = StepSource::kModelled;
    draft.options.seed = seed;
    const Profile profile = Stages(1);
    const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, draft);
    ASSERT_TRUE(query.ok()) << query.status();
    const auto answer = PredictThroughput(profile, *query, NeverStop);
    ASSERT_TRUE(answer.ok()) << answer.status();
    const PipelineReport& report = *answer->predictions[0].pipeline;
    EXPECT_NEAR(report.idle_fraction, 0, 1e-9);
    EXPECT_NEAR(report.devices[0].utilization, 1, 1e-9);
    for (const double share :
         {report.bubble_fraction, report.imbalance_fraction, report.transfer_fraction,
          report.reduction_fraction, report.rest_fraction})
      EXPECT_GE(share, 0);
  }
}

// Collectives on links that are faster than theirs take as long as on their own.
TEST(PipelinePredictionTest, ARingIsNoFasterOnFasterLinksBetweenStages) {
  const Profile profile = Layers(std::nullopt);
  std::vector<double> steps;
  for (const PipelineLinks links : {PipelineLinks::kPair, PipelineLinks::kDevice}) {
    ScenarioDraft scenario{.workers = 4};
    scenario.communication = AllReduceDraft{.latency_seconds = 1e-4};
    scenario.pipeline = PipelineDraft{.stages = 1,
                                      .micro_batches = 1,
                                      .links = links,
                                      .bandwidth_bytes_per_second = 1e10,
                                      .reduction = PipelineReduction::kBuckets};
    ThroughputDraft draft{.scenarios = {scenario}};
    draft.options.step_variation = StepSource::kAsRecorded;
    const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, draft);
    ASSERT_TRUE(query.ok()) << query.status();
    steps.push_back(1 /
                    PredictThroughput(profile, *query, NeverStop)->predictions[0].steps_per_second);
  }
  EXPECT_NEAR(steps[0], steps[1], 1e-9);
}

// Every prediction of several jobs, each asked for twice.
TEST(PipelineMemoryTest, AMemoryChangesNothingButTheRunsMade) {
  class Counter final : public RunCounter {
   public:
    void Add(int64_t simulated_operations) override { operations += simulated_operations; }
    int64_t operations = 0;
  };
  testing::KeptRuns memory;
  for (int call = 0; call < 2; ++call) {
    for (const int32_t stages : {2, 4}) {
      for (const int32_t workers : {1, 3}) {
        for (const StepSource source : {StepSource::kModelled, StepSource::kAsRecorded}) {
          const Profile profile = Stages(stages);
          ScenarioDraft scenario{.workers = workers,
                                 .pipeline = PipelineDraft{.stages = stages, .micro_batches = 6}};
          scenario.communication = AllReduceDraft{.latency_seconds = 0};
          ThroughputDraft draft{.scenarios = {scenario}};
          draft.options.step_variation = source;
          const ThroughputQuery query = ResolveThroughput(profile, draft).value();
          Counter counter;
          const ThroughputAnswer with = PredictThroughput(profile, query, NeverStop, InOrder(),
                                                          {.memory = &memory,
                                                           .profile_digest = std::to_string(stages),
                                                           .counter = &counter})
                                            .value();
          const ThroughputAnswer without = PredictThroughput(profile, query, NeverStop).value();
          const Prediction& one = with.predictions[0];
          const Prediction& other = without.predictions[0];
          EXPECT_EQ(one.examples_per_second, other.examples_per_second);
          EXPECT_EQ(one.run_interval.lower, other.run_interval.lower);
          EXPECT_EQ(one.step_time.p95, other.step_time.p95);
          EXPECT_EQ(one.speedup, other.speedup);
          EXPECT_EQ(one.completions, other.completions);
          EXPECT_EQ(with.simulation.simulated_operations, without.simulation.simulated_operations);
          if (call == 1)
            EXPECT_EQ(counter.operations, 0);
          else
            EXPECT_EQ(counter.operations, with.simulation.simulated_operations);
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepcast::pipeline_prediction_test
