#include "core/predict/device_use.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/model/job_change.h"
#include "core/predict/throughput.h"
#include "core/zoo/model_zoo.h"

namespace stepcast::device_use_test {
namespace {

Operation Compute(std::string name, std::vector<int32_t> after, int64_t kept_bytes = 0) {
  return {.name = std::move(name),
          .resource = Resource::kWorker,
          .waiting_for = std::move(after),
          .kept_bytes = kept_bytes};
}

Operation Send(std::string name, Collective kind, int64_t bytes, std::vector<int32_t> after) {
  return {.name = std::move(name),
          .resource = Resource::kCollective,
          .size_bytes = bytes,
          .waiting_for = std::move(after),
          .collective = kind};
}

Profile Make(std::vector<Operation> operations) {
  ProfileDraft draft{.batch_size = 4, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = std::move(operations);
  RecordedStep& step = draft.steps.emplace_back();
  int64_t now = 0;
  for (const Operation& operation : draft.operations) {
    step.start_ns.push_back(now);
    if (operation.resource == Resource::kWorker) now += 1'000'000;
    step.end_ns.push_back(now);
  }
  return Profile::Create(std::move(draft)).value();
}

// Two layers, of 500 and 300 bytes of parameters.
Profile TwoLayers(int64_t kept_by_a = 4000, int64_t kept_by_b = 1000) {
  return Make({Compute("forward/a", {}, kept_by_a), Compute("forward/b", {0}, kept_by_b),
               Compute("backward/b", {1}), Send("sum/b", Collective::kAllReduce, 300, {2}),
               Compute("backward/a", {2}), Send("sum/a", Collective::kAllReduce, 500, {4}),
               Compute("optimizer", {3, 5})});
}

std::optional<DeviceMemory> MemoryWith(const Profile& profile, int32_t workers,
                                       AllReduceDraft job = {}) {
  const ThroughputDraft draft{
      .scenario = ScenarioDraft{.workers = workers, .communication = std::move(job)},
      .options = {.steps_per_worker = 20, .replications = 1}};
  const ThroughputQuery query = ResolveThroughput(profile, draft).value();
  return PredictThroughput(profile, query, NeverStop).value().predictions.front().memory;
}

void ExpectBytes(const std::optional<DeviceMemory>& memory, double parameters, double gradients,
                 double optimizer, std::optional<double> kept) {
  ASSERT_TRUE(memory.has_value());
  EXPECT_DOUBLE_EQ(memory->parameters, parameters);
  EXPECT_DOUBLE_EQ(memory->gradients, gradients);
  EXPECT_DOUBLE_EQ(memory->optimizer, optimizer);
  EXPECT_EQ(memory->kept, kept);
  EXPECT_DOUBLE_EQ(memory->bytes(), parameters + gradients + optimizer + kept.value_or(0));
}

// While b is undone, 4000 + 1000 are kept, and gradients of both outputs are there.
constexpr double kPeak = 10'000;

TEST(DeviceMemoryTest, EachShardingSharesWhatItSays) {
  const Profile profile = TwoLayers();
  ExpectBytes(MemoryWith(profile, 4), 800, 800, 1600, kPeak);
  ExpectBytes(MemoryWith(profile, 4, {.sharding = Sharding::kOptimizer}), 800, 800, 400, kPeak);
  ExpectBytes(MemoryWith(profile, 4, {.sharding = Sharding::kGradients}), 800, 200, 400, kPeak);
  // The units of 500 and 300 are gathered at once, and the gradients of 500 stand whole.
  ExpectBytes(MemoryWith(profile, 4, {.fusion = Unfused{}, .sharding = Sharding::kFull}), 200 + 800,
              200 + 500, 400, kPeak);
  // One unit of all: it is gathered whole, but once.
  ExpectBytes(MemoryWith(profile, 8, {.fusion = Buckets{}, .sharding = Sharding::kFull}), 100 + 800,
              100 + 800, 200, kPeak);
}

TEST(DeviceMemoryTest, OneWorkerHasTheWholeModelWhateverTheSharding) {
  for (const Sharding sharding :
       {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFull})
    ExpectBytes(MemoryWith(TwoLayers(), 1, {.sharding = sharding}), 800, 800, 1600, kPeak);
}

TEST(DeviceMemoryTest, WithoutKeptBytesItIsALowerBound) {
  ExpectBytes(MemoryWith(TwoLayers(0, 0), 2), 800, 800, 1600, std::nullopt);
}

TEST(DeviceMemoryTest, NothingIsToldWhereNothingIsKnown) {
  const Profile profile =
      Make({Compute("all", {}), Send("statistics", Collective::kBroadcast, 8, {0})});
  EXPECT_FALSE(MemoryWith(profile, 2).has_value());
}

TEST(DeviceMemoryTest, ServersHaveTheOptimizersState) {
  const Profile profile =
      BuildZooProfile("alexnet", {.platform = {.bandwidth_bytes_per_second = 1e9}}).value();
  const ThroughputQuery query =
      ResolveThroughput(profile, {.worker_counts = {2}, .options = {.replications = 1}}).value();
  const std::optional<DeviceMemory> memory =
      PredictThroughput(profile, query, NeverStop).value().predictions.front().memory;
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->parameters, ParameterBytes(profile));
  EXPECT_EQ(memory->gradients, memory->parameters);
  EXPECT_EQ(memory->optimizer, 0);
}

TEST(DeviceMemoryTest, ARecordedShardingIsTheScenarios) {
  const auto gather = [](const char* name, std::vector<int32_t> after) {
    return Send(name, Collective::kAllGather, 800, std::move(after));
  };
  const Profile once =
      Make({gather("gather", {}), Compute("forward/a", {0}, 4000), Compute("backward/a", {1}),
            Send("scatter", Collective::kReduceScatter, 800, {2})});
  ExpectBytes(MemoryWith(once, 4), 800, 200, 400, 8000);
  const Profile twice =
      Make({gather("gather/0", {}), Compute("forward/a", {0}, 4000), gather("gather/1", {1}),
            Compute("backward/a", {2}), Send("scatter", Collective::kReduceScatter, 800, {3})});
  ExpectBytes(MemoryWith(twice, 4), 200 + 800, 200 + 800, 400, 8000);
}

TEST(DeviceMemoryTest, ChangesOfTheJobChangeWhatTheyShould) {
  const Profile profile = TwoLayers();
  const auto with = [&](const JobChange& change) {
    return MemoryWith(ChangedProfile(profile, change, nullptr).value(), 2);
  };
  ExpectBytes(with({.batch_size = 8}), 800, 800, 1600, 2 * kPeak);
  ExpectBytes(with({.accumulate = 4}), 800, 800, 1600, kPeak);
  ExpectBytes(with({.gradient_bytes_factor = 0.5}), 800, 800, 1600, kPeak);
  ProfileDraft compressed = profile.content();
  compressed.buckets = RecordedBuckets{.rule = Buckets{}, .sent_share = 0.5};
  ExpectBytes(MemoryWith(Profile::Create(compressed).value(), 2), 1600, 1600, 3200, kPeak);
}

constexpr int64_t kMillisecond = 1'000'000;

struct Computation {
  Pass pass;
  std::vector<int64_t> milliseconds;  // by step
  int32_t stream = 0;
};

Profile Make(const std::vector<Computation>& computations) {
  ProfileDraft draft{.batch_size = 4};
  draft.platform.bandwidth_bytes_per_second = 1e9;
  for (size_t i = 0; i < computations.size(); ++i) {
    Operation& operation = draft.operations.emplace_back();
    operation.name = "op" + std::to_string(i);
    operation.resource = Resource::kWorker;
    operation.stream = computations[i].stream;
    operation.pass = computations[i].pass;
    if (i > 0) operation.waiting_for = {static_cast<int32_t>(i) - 1};
  }
  Operation& gradient = draft.operations.emplace_back();
  gradient.name = "all_reduce";
  gradient.resource = Resource::kCollective;
  gradient.collective = Collective::kAllReduce;
  gradient.size_bytes = 1'000'000;
  gradient.waiting_for = {static_cast<int32_t>(computations.size()) - 1};
  for (size_t step = 0; step < computations.front().milliseconds.size(); ++step) {
    RecordedStep& recorded = draft.steps.emplace_back();
    int64_t at = 0;
    for (const Computation& computation : computations) {
      recorded.start_ns.push_back(at);
      recorded.end_ns.push_back(at += computation.milliseconds[step] * kMillisecond);
    }
    recorded.start_ns.push_back(at);
    recorded.end_ns.push_back(at);
  }
  return Profile::Create(std::move(draft)).value();
}

Prediction Predict(const Profile& profile, ScenarioDraft scenario) {
  ThroughputDraft draft;
  draft.scenario = std::move(scenario);
  const ThroughputQuery query = ResolveThroughput(profile, draft).value();
  return PredictThroughput(profile, query, NeverStop).value().predictions.front();
}

TEST(PassTimesTest, EachPassIsTheMeanOfItsComputationOverTheSteps) {
  const Profile profile = Make({{Pass::kForward, {10, 14}},
                                {Pass::kForward, {5, 5}},
                                {Pass::kBackwardInput, {20, 22}},
                                {Pass::kBackwardWeight, {7, 7}},
                                {Pass::kBackward, {2, 2}},
                                {Pass::kOptimizer, {3, 3}},
                                {Pass::kOther, {1, 1}},
                                {Pass::kUnspecified, {4, 4}}});
  const std::optional<PassTimes> passes = Predict(profile, {.workers = 4}).passes;
  ASSERT_TRUE(passes.has_value());
  EXPECT_DOUBLE_EQ(passes->forward, 0.017);
  EXPECT_DOUBLE_EQ(passes->backward, 0.030);
  EXPECT_DOUBLE_EQ(passes->optimizer, 0.003);
  EXPECT_DOUBLE_EQ(passes->other, 0.005);
}

TEST(PassTimesTest, OfSeveralStreamsTheOneWithMostOfAPassCounts) {
  const Profile profile = Make({{Pass::kForward, {10}, 0},
                                {Pass::kForward, {3}, 1},
                                {Pass::kBackward, {4}, 0},
                                {Pass::kBackward, {9}, 1}});
  const std::optional<PassTimes> passes = Predict(profile, {.workers = 1}).passes;
  ASSERT_TRUE(passes.has_value());
  EXPECT_DOUBLE_EQ(passes->forward, 0.010);
  EXPECT_DOUBLE_EQ(passes->backward, 0.009);
}

TEST(PassTimesTest, TheSlowestKindOfWorkerIsTold) {
  const Profile profile = Make({{Pass::kForward, {10}}, {Pass::kBackward, {20}}});
  ScenarioDraft scenario{.workers = 3};
  scenario.worker_groups = {{.count = 1, .compute_speed_factor = 2},
                            {.count = 2, .compute_speed_factor = 0.5}};
  const std::optional<PassTimes> passes = Predict(profile, scenario).passes;
  ASSERT_TRUE(passes.has_value());
  EXPECT_DOUBLE_EQ(passes->forward, 0.020);
  EXPECT_DOUBLE_EQ(passes->backward, 0.040);
}

TEST(PassTimesTest, WithoutAnyPassNothingIsTold) {
  EXPECT_FALSE(Predict(Make({{Pass::kUnspecified, {10}}}), {.workers = 2}).passes.has_value());
}

// A series is of the whole run, and asks for no more than the request may have.
TEST(PassTimesTest, ASeriesIsToldWhereItIsAskedFor) {
  const Profile profile = Make({{Pass::kForward, {10, 12}}, {Pass::kBackward, {20, 22}}});
  ThroughputDraft draft;
  draft.worker_counts = {1, 3};
  EXPECT_TRUE(PredictThroughput(profile, ResolveThroughput(profile, draft).value(), NeverStop)
                  .value()
                  .predictions[0]
                  .series.empty());
  draft.series_points = 20;
  const ThroughputAnswer answer =
      PredictThroughput(profile, ResolveThroughput(profile, draft).value(), NeverStop).value();
  for (const Prediction& prediction : answer.predictions) {
    ASSERT_EQ(prediction.series.size(), 20u);
    double mean = 0;
    for (const ThroughputPoint& point : prediction.series) mean += point.examples_per_second / 20;
    EXPECT_NEAR(mean, prediction.examples_per_second, 0.05 * prediction.examples_per_second);
    EXPECT_GT(prediction.series[1].end_seconds, prediction.series[0].end_seconds);
  }
  for (const int32_t bad : {-1, 201}) {
    draft.series_points = bad;
    const absl::Status status = ResolveThroughput(profile, draft).status();
    EXPECT_EQ(DetailsOf(status).faults.at(0).field, "series_points");
  }
  draft.series_points = 200;
  draft.worker_counts.assign(101, 1);
  EXPECT_EQ(DetailsOf(ResolveThroughput(profile, draft).status()).faults.at(0).field,
            "series_points");
  draft.worker_counts.assign(100, 1);
  EXPECT_TRUE(ResolveThroughput(profile, draft).ok());
}

}  // namespace
}  // namespace stepcast::device_use_test
