#include "core/recommend/recommendation.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "tests/core/predict/example_profiles.h"

namespace stepcast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Recommendation Recommend(const Profile& profile, RecommendationDraft draft) {
  if (!draft.options.steps_per_worker.has_value()) draft.options.steps_per_worker = 20;
  const absl::StatusOr<RecommendationQuery> query = ResolveRecommendation(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  const absl::StatusOr<Recommendation> recommendation = RecommendWorkers(profile, *query, NeverStop);
  EXPECT_TRUE(recommendation.ok()) << recommendation.status();
  return *recommendation;
}

std::vector<std::string> FaultFields(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
  return fields;
}

// A download of 1 ms and a computation of 8. Like workers that start together stay together: W of them take W ms for their downloads and 8 to
// compute, so throughput is W / (W + 8) and efficiency 9 / (W + 8); throughput^2 / W is greatest at W = 8.
Profile OneToEight() { return testing::DownloadThenCompute(1'000'000, 8'000'000); }

TEST(RecommendWorkersTest, TheCurveIsThatOfTheModel) {
  const Recommendation recommendation = Recommend(OneToEight(), {});
  ASSERT_EQ(recommendation.frontier.size(), 16u);
  for (int32_t workers = 1; workers <= 16; ++workers) {
    const Prediction& prediction = recommendation.frontier[static_cast<size_t>(workers) - 1];
    EXPECT_EQ(prediction.scenario.workers, workers);
    EXPECT_NEAR(prediction.steps_per_second, 1000.0 * workers / (workers + 8), 1e-6);
    EXPECT_NEAR(prediction.scaling_efficiency, 9.0 / (workers + 8), 1e-9);
  }
}

TEST(RecommendWorkersTest, TheKneeIsWhereThroughputTimesEfficiencyIsGreatest) {
  const Recommendation recommendation = Recommend(OneToEight(), {.objective = Objective::kKnee});
  EXPECT_EQ(recommendation.workers, 8);
  EXPECT_EQ(recommendation.parameter_servers, 1);
  ASSERT_TRUE(recommendation.prediction.has_value());
  EXPECT_NEAR(recommendation.prediction->steps_per_second, 500, 1e-6);
  EXPECT_THAT(recommendation.reason, HasSubstr("8 workers give 500 examples/s, 4.5 times one worker's at 56 % efficiency"));
  EXPECT_THAT(recommendation.infeasible_reason, IsEmpty());
}

TEST(RecommendWorkersTest, MaxThroughputTakesAllThatHelp) {
  EXPECT_EQ(Recommend(OneToEight(), {.objective = Objective::kMaxThroughput}).workers, 16);
  EXPECT_EQ(Recommend(OneToEight(), {.objective = Objective::kMaxThroughput, .max_workers = 12}).workers, 12);
}

// 9 / (W + 8) >= 0.7 up to W = 4.86.
TEST(RecommendWorkersTest, AMinimumEfficiencyBoundsTheCount) {
  EXPECT_EQ(Recommend(OneToEight(), {.objective = Objective::kMaxThroughput, .min_scaling_efficiency = 0.7}).workers, 4);
  EXPECT_EQ(Recommend(OneToEight(), {.objective = Objective::kKnee, .min_scaling_efficiency = 0.7}).workers, 4);
  EXPECT_EQ(Recommend(OneToEight(), {.objective = Objective::kKnee, .min_scaling_efficiency = 0.5}).workers, 8);
}

TEST(RecommendWorkersTest, WhatCannotBeKeptIsSaidWithTheNearestCountAndTheCurve) {
  const Recommendation recommendation = Recommend(OneToEight(), {.min_workers = 10, .min_scaling_efficiency = 0.9});
  EXPECT_EQ(recommendation.workers, 0);
  EXPECT_EQ(recommendation.parameter_servers, 0);
  EXPECT_FALSE(recommendation.prediction.has_value());
  EXPECT_THAT(recommendation.reason, IsEmpty());
  EXPECT_EQ(recommendation.infeasible_reason,
            "No number of workers of 10 to 25 keeps min_scaling_efficiency 0.9: the nearest, 10 workers, has 0.5, which is 0.4 too little.");
  EXPECT_EQ(recommendation.frontier.size(), 16u);
}

// Where steps vary, the highest throughput is known to its interval only: the fewest workers within it are as good.
TEST(RecommendWorkersTest, ChoicesFollowTheirDefinitionsOnRandomJobs) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const Profile profile = testing::NetworkProfile(seed, {.layers = 4, .steps = 5});
    const RecommendationDraft draft{.options = {.steps_per_worker = 60, .replications = 3}, .max_workers = 10};
    RecommendationDraft most = draft;
    most.objective = Objective::kMaxThroughput;
    const Recommendation knee = Recommend(profile, draft);
    const Recommendation highest = Recommend(profile, most);
    double best_power = 0;
    size_t best = 0;
    size_t peak = 0;
    for (size_t i = 0; i < knee.frontier.size(); ++i) {
      const double throughput = knee.frontier[i].examples_per_second;
      const double power = throughput * throughput / static_cast<double>(i + 1);
      if (power > best_power) best = i;
      best_power = std::max(best_power, power);
      if (throughput > knee.frontier[peak].examples_per_second) peak = i;
    }
    size_t fewest = 0;
    while (knee.frontier[fewest].confidence_interval.upper < knee.frontier[peak].confidence_interval.lower) ++fewest;
    EXPECT_EQ(knee.workers, static_cast<int32_t>(best) + 1);
    EXPECT_EQ(highest.workers, static_cast<int32_t>(fewest) + 1);
  }
}

TEST(ResolveRecommendationTest, ByDefaultOneToSixteenOrSixteenCountsFromTheLeast) {
  const auto counts = [](const RecommendationDraft& draft) {
    const RecommendationQuery query = ResolveRecommendation(OneToEight(), draft).value();
    return std::vector<int32_t>{query.scenarios.front().workers, query.scenarios.back().workers, static_cast<int32_t>(query.scenarios.size())};
  };
  EXPECT_THAT(counts({}), ElementsAre(1, 16, 16));
  EXPECT_THAT(counts({.min_workers = 10}), ElementsAre(10, 25, 16));
  EXPECT_THAT(counts({.min_workers = 4090}), ElementsAre(4090, 4096, 7));
  EXPECT_THAT(counts({.max_workers = 3}), ElementsAre(1, 3, 3));
  EXPECT_THAT(counts({.min_workers = 1, .max_workers = 257}), ElementsAre(1, 257, 257));
}

TEST(ResolveRecommendationTest, RefusesCountsThatMakeNoSense) {
  const auto fields = [](const RecommendationDraft& draft) {
    const absl::Status status = ResolveRecommendation(OneToEight(), draft).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(DetailsOf(status).reason, "RECOMMENDATION_INVALID");
    return FaultFields(status);
  };
  EXPECT_THAT(fields({.min_workers = 0}), ElementsAre("constraints.min_workers"));
  EXPECT_THAT(fields({.min_workers = 4097}), ElementsAre("constraints.min_workers"));
  EXPECT_THAT(fields({.min_workers = std::numeric_limits<int32_t>::max()}), ElementsAre("constraints.min_workers"));
  EXPECT_THAT(fields({.min_workers = std::numeric_limits<int32_t>::min(), .max_workers = std::numeric_limits<int32_t>::max()}),
              ElementsAre("constraints.min_workers", "constraints.max_workers"));
  EXPECT_THAT(fields({.max_workers = 0}), ElementsAre("constraints.max_workers"));
  EXPECT_THAT(fields({.max_workers = 4097}), ElementsAre("constraints.max_workers"));
  EXPECT_THAT(fields({.min_workers = 5, .max_workers = 4}), ElementsAre("constraints.max_workers"));
  EXPECT_THAT(fields({.min_workers = 1, .max_workers = 258}), ElementsAre("constraints.max_workers"));
  for (const double efficiency : {-0.1, 1.1, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(fields({.min_scaling_efficiency = efficiency}), ElementsAre("constraints.min_scaling_efficiency"));
  }
}

TEST(ResolveRecommendationTest, ReportsAllFaultsAtOnceWithTheirPaths) {
  RecommendationDraft draft{.min_workers = 9, .max_workers = 8, .min_scaling_efficiency = 2};
  draft.scenario.workers = 4;
  draft.scenario.start_offsets_ns = {0, 0};
  draft.scenario.worker_groups = {{.count = 4}};
  draft.scenario.bandwidth_bytes_per_second = -1;
  draft.options.replications = 0;
  EXPECT_THAT(FaultFields(ResolveRecommendation(OneToEight(), draft).status()),
              UnorderedElementsAre("scenario.workers", "scenario.start_offsets_ns", "scenario.worker_groups", "scenario.bandwidth_bytes_per_second",
                                   "options.replications", "constraints.max_workers", "constraints.min_scaling_efficiency"));
}

TEST(ResolveRecommendationTest, NamesEveryFieldThatItCannotTakeIntoAccount) {
  const auto fields = [](const RecommendationDraft& draft) {
    const absl::Status status = ResolveRecommendation(OneToEight(), draft).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(DetailsOf(status).reason, "RECOMMENDATION_UNSUPPORTED");
    return FaultFields(status);
  };
  EXPECT_THAT(fields({.objective = Objective::kMinCost}), ElementsAre("objective"));
  EXPECT_THAT(fields({.objective = Objective::kMinTime}), ElementsAre("objective"));
  EXPECT_THAT(fields({.max_parameter_servers = 2}), ElementsAre("constraints.max_parameter_servers"));
  EXPECT_THAT(fields({.deadline_seconds = 1}), ElementsAre("constraints.deadline"));
  EXPECT_THAT(fields({.examples = 1}), ElementsAre("constraints.examples"));
  EXPECT_THAT(fields({.budget = 1}), ElementsAre("constraints.budget"));
  EXPECT_THAT(fields({.prices = RecommendationDraft::Prices{}}), ElementsAre("prices"));
  EXPECT_THAT(fields({.current = RecommendationDraft::Current{}}), ElementsAre("current"));
  EXPECT_THAT(fields({.objective = Objective::kMinTime, .deadline_seconds = 1, .examples = 5}),
              ElementsAre("objective", "constraints.deadline", "constraints.examples"));
}

TEST(RecommendWorkersTest, StopsWhenTold) {
  const RecommendationQuery query = ResolveRecommendation(OneToEight(), {.options = {.steps_per_worker = 100'000}}).value();
  EXPECT_EQ(RecommendWorkers(OneToEight(), query, [] { return absl::CancelledError("enough"); }).status(), absl::CancelledError("enough"));
}

}  // namespace
}  // namespace stepcast
