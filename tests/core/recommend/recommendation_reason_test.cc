#include "core/recommend/recommendation_reason.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stepcast {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Prediction Of(int32_t workers, double examples_per_second, double one_worker, double half_width) {
  Prediction prediction;
  prediction.scenario.workers = workers;
  prediction.examples_per_second = examples_per_second;
  prediction.confidence_interval = {.lower = examples_per_second - half_width, .upper = examples_per_second + half_width};
  prediction.speedup = examples_per_second / one_worker;
  prediction.scaling_efficiency = prediction.speedup / workers;
  prediction.bottleneck = {.resource = Resource::kDownlink, .parameter_server = 1, .fraction = 0.934};
  return prediction;
}

std::vector<Prediction> Curve(const std::vector<double>& examples_per_second, double half_width = 0) {
  std::vector<Prediction> curve;
  curve.reserve(examples_per_second.size());
  for (const double value : examples_per_second) {
    curve.push_back(Of(static_cast<int32_t>(curve.size()) + 1, value, examples_per_second[0], half_width));
  }
  return curve;
}

TEST(RecommendationReasonTest, NamesTheNumbersAndTheBottleneck) {
  EXPECT_EQ(
      ReasonFor(Curve({100, 180, 200}), 1, {.objective = Objective::kKnee}),
      "2 workers give 180 examples/s, 1.8 times one worker's at 90 % efficiency, the most throughput times efficiency of 1 to 3; one more would "
      "add 11.1 %; the most used resource is the downlink of server 1, 93 % busy.");
}

TEST(RecommendationReasonTest, SaysThatThroughputFallsWithMoreWorkers) {
  EXPECT_THAT(ReasonFor(Curve({100, 180, 150, 120}), 1, {.objective = Objective::kMaxThroughput}),
              HasSubstr("; with more than 2 workers throughput falls, to 120 examples/s at 4."));
}

TEST(RecommendationReasonTest, AFallWithinTheIntervalsIsNone) {
  EXPECT_THAT(ReasonFor(Curve({100, 180, 175}, 4), 1, {.objective = Objective::kMaxThroughput}), Not(HasSubstr("falls")));
  EXPECT_THAT(ReasonFor(Curve({100, 180, 175}, 2), 1, {.objective = Objective::kMaxThroughput}), HasSubstr("falls"));
}

TEST(RecommendationReasonTest, ARoundingErrorIsNoFall) {
  EXPECT_THAT(ReasonFor(Curve({100, 180, 180 - 1e-9}), 1, {.objective = Objective::kMaxThroughput}), Not(HasSubstr("falls")));
}

TEST(RecommendationReasonTest, SaysWhenFewerWorkersReachTheHighestWithinItsInterval) {
  EXPECT_THAT(ReasonFor(Curve({100, 180, 182}, 2), 1, {.objective = Objective::kMaxThroughput}),
              HasSubstr("the fewest of 1 to 3 that reach the highest throughput (182 at 3 workers) within its interval"));
}

TEST(RecommendationReasonTest, SaysWhichConstraintNarrowedTheChoice) {
  EXPECT_THAT(ReasonFor(Curve({100, 180, 190}), 1, {.objective = Objective::kMaxThroughput, .min_scaling_efficiency = 0.8}),
              HasSubstr("the highest throughput of 1 to 3 that keep a scaling efficiency of 0.8;"));
}

TEST(RecommendationReasonTest, OneWorkerIsSingularAndNotComparedWithItself) {
  EXPECT_EQ(
      ReasonFor(Curve({100}), 0, {}),
      "1 worker gives 100 examples/s, the most throughput times efficiency of 1, the only number allowed; the most used resource is the downlink "
      "of server 1, 93 % busy.");
}

TEST(RecommendationReasonTest, SaysWhatOneMoreWouldChange) {
  EXPECT_THAT(ReasonFor(Curve({100, 180, 171}), 1, {}), HasSubstr("; one more would lose 5 %;"));
  EXPECT_THAT(ReasonFor(Curve({100, 180, 180 + 1e-9}), 1, {}), HasSubstr("; one more would change nothing;"));
  EXPECT_THAT(ReasonFor(Curve({100, 180}), 1, {}), Not(HasSubstr("one more")));
}

TEST(RecommendationReasonTest, NamesEveryKindOfBottleneck) {
  std::vector<Prediction> curve = Curve({100});
  const auto reason_with = [&](Resource resource) {
    curve[0].bottleneck.resource = resource;
    return ReasonFor(curve, 0, {});
  };
  EXPECT_THAT(reason_with(Resource::kWorker), HasSubstr("the workers' own computation, 93 % busy"));
  EXPECT_THAT(reason_with(Resource::kUplink), HasSubstr("the uplink to server 1, 93 % busy"));
  EXPECT_THAT(reason_with(Resource::kParameterServer), HasSubstr("the computation on server 1, 93 % busy"));
}

TEST(RecommendationReasonTest, InfeasibleNamesTheNearestCountAndWhatItLacks) {
  EXPECT_EQ(InfeasibleReasonFor({Of(4, 280, 100, 0), Of(5, 300, 100, 0)}, {.min_scaling_efficiency = 0.95}),
            "No number of workers of 4 to 5 keeps min_scaling_efficiency 0.95: the nearest, 4 workers, has 0.7, which is 0.25 too little.");
}

}  // namespace
}  // namespace stepcast
