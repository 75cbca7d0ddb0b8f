#include "core/predict/pass_times.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/predict/throughput.h"

namespace stepcast::pass_times_test {
namespace {

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
}  // namespace stepcast::pass_times_test
