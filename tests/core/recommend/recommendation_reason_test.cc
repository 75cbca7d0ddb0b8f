#include "core/recommend/recommendation_reason.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/core/predict/example_profiles.h"

namespace stepcast::recommendation_reason_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PlainWordsTest, OneIsSingular) {
  EXPECT_EQ(CountText(1, "worker"), "1 worker");
  EXPECT_EQ(CountText(2, "server"), "2 servers");
}

TEST(PlainWordsTest, TimesHaveTheUnitThatSuits) {
  EXPECT_EQ(TimeText(0), "0 s");
  EXPECT_EQ(TimeText(0.25), "0.25 s");
  EXPECT_EQ(TimeText(119), "119 s");
  EXPECT_EQ(TimeText(180), "3 min");
  EXPECT_EQ(TimeText(7200), "2 h");
  EXPECT_EQ(TimeText(4 * 86400), "4 d");
  EXPECT_EQ(TimeText(HUGE_VAL), "more than 3,000 years");
}

Prediction Of(int32_t workers, double examples_per_second, double one_worker, double half_width) {
  Prediction prediction;
  prediction.scenario.workers = workers;
  prediction.examples_per_second = examples_per_second;
  prediction.simulation_interval = {.lower = examples_per_second - half_width,
                                    .upper = examples_per_second + half_width};
  prediction.speedup = examples_per_second / one_worker;
  prediction.scaling_efficiency = prediction.speedup / workers;
  prediction.most_used = {.resource = Resource::kDownlink, .index = 1, .fraction = 0.934};
  return prediction;
}

std::vector<TriedChoice> Curve(const std::vector<double>& examples_per_second,
                               double half_width = 0) {
  std::vector<TriedChoice> curve;
  for (const double value : examples_per_second) {
    const auto workers = static_cast<int32_t>(curve.size()) + 1;
    curve.push_back({.choice = {workers, 1},
                     .prediction = Of(workers, value, examples_per_second[0], half_width)});
  }
  return curve;
}

std::string Reason(const std::vector<TriedChoice>& curve, size_t chosen, RecommendationQuery query,
                   const std::vector<Choice>& ties = {}) {
  query.server_choices.resize(1);
  query.max_workers = curve.back().choice.workers;
  return ReasonFor({.query = query, .tried = curve, .chosen = curve[chosen], .ties = ties});
}

TEST(RecommendationReasonTest, NamesTheNumbersAndTheBottleneck) {
  EXPECT_EQ(Reason(Curve({100, 180, 200}), 1, {.objective = Objective::kKnee}),
            "2 workers give 180 examples/s, 1.8 times one worker's at 90 % efficiency, the most "
            "throughput times efficiency of 1 to 3; one more would "
            "add 11.1 %; the most used resource is the downlink of server 1, 93 % busy.");
}

TEST(RecommendationReasonTest, SaysThatThroughputFallsWithMoreWorkers) {
  EXPECT_THAT(Reason(Curve({100, 180, 150, 120}), 1, {.objective = Objective::kMaxThroughput}),
              HasSubstr("; with more than 2 workers throughput falls, to 120 examples/s at 4."));
}

TEST(RecommendationReasonTest, AFallWithinTheIntervalsIsNone) {
  EXPECT_THAT(Reason(Curve({100, 180, 175}, 4), 1, {.objective = Objective::kMaxThroughput}),
              Not(HasSubstr("falls")));
  EXPECT_THAT(Reason(Curve({100, 180, 175}, 2), 1, {.objective = Objective::kMaxThroughput}),
              HasSubstr("falls"));
}

TEST(RecommendationReasonTest, ARoundingErrorIsNoFall) {
  EXPECT_THAT(Reason(Curve({100, 180, 180 - 1e-9}), 1, {.objective = Objective::kMaxThroughput}),
              Not(HasSubstr("falls")));
}

TEST(RecommendationReasonTest, SaysWhatIsAsGoodWithinTheIntervals) {
  EXPECT_THAT(
      Reason(Curve({100, 180, 182}, 2), 1, {.objective = Objective::kMaxThroughput}, {{3, 1}}),
      HasSubstr(
          "the highest throughput of 1 to 3 with no more than the intervals between it and 3;"));
  EXPECT_THAT(
      Reason(Curve({100, 180, 182, 181, 181, 180, 181}, 2), 1,
             {.objective = Objective::kMaxThroughput}, {{3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}}),
      HasSubstr("between it and 3, 4, 5, 6 and 1 more;"));
}

TEST(RecommendationReasonTest, SaysWhichConstraintNarrowedTheChoice) {
  EXPECT_THAT(Reason(Curve({100, 180, 190}), 1,
                     {.objective = Objective::kMaxThroughput, .min_scaling_efficiency = 0.8}),
              HasSubstr("the highest throughput of 1 to 3 that keep a scaling efficiency of 0.8;"));
}

TEST(RecommendationReasonTest, OneWorkerIsSingularAndNotComparedWithItself) {
  EXPECT_EQ(Reason(Curve({100}), 0, {}),
            "1 worker gives 100 examples/s, the only number asked about; the most used resource is "
            "the downlink of server 1, 93 % busy.");
}

// The curve's numbers and those of a running job's constraints; chosen is an index of the curve.
ChoiceEdge EdgeOf(const std::vector<TriedChoice>& curve, size_t chosen, RecommendationQuery query) {
  query.server_choices.resize(1);
  return WorkersEdge({.query = query, .tried = curve, .chosen = curve[chosen], .ties = {}});
}

TEST(RecommendationReasonTest, TheLargestAskedAboutIsToldAsThatAndHowThroughputCameThere) {
  EXPECT_EQ(Reason(Curve({100, 180}), 1, {}),
            "2 workers give 180 examples/s, 1.8 times one worker's at 90 % efficiency, the most "
            "throughput times efficiency of 1 to 2; 2 is the largest number asked about, and "
            "throughput was still rising, by 80 % from 1; the most used resource is the downlink "
            "of server 1, 93 % busy.");
  EXPECT_THAT(
      Reason(Curve({100, 180, 180.01}), 2, {}),
      HasSubstr("; 3 is the largest number asked about, and throughput was no longer rising "
                "there"));
  EXPECT_THAT(Reason(Curve({100, 180, 182}, 2), 2, {}), HasSubstr("no longer rising"))
      << "the intervals explain as much";
  EXPECT_THAT(Reason(Curve({100, 180, 171}), 2, {}), HasSubstr("still falling, by 5 % from 2;"));
  EXPECT_THAT(Reason(Curve({100, 180, 200}), 1, {}), Not(HasSubstr("asked about")));
}

// Of thousands, one worker is less than what reads as equal.
TEST(RecommendationReasonTest, AThousandthBelowTheLargestIsAtTheEdgeToo) {
  std::vector<TriedChoice> curve;
  for (const int32_t workers : {1, 3998, 3999, 4000})
    curve.push_back({.choice = {workers, 1}, .prediction = Of(workers, 10.0 * workers, 10, 0)});
  RecommendationQuery query{.max_workers = 4000};
  query.server_choices.resize(1);
  ReasonFacts facts{.query = query, .tried = curve, .chosen = curve[1], .ties = {{4000, 1}}};
  EXPECT_EQ(WorkersEdge(facts), ChoiceEdge::kLargestAsked);
  EXPECT_THAT(
      ReasonFor(facts),
      HasSubstr("; 4000 is the largest number asked about, and throughput was still rising, "
                "by 0.025 % from 3999; one more would add 0.025 %;"));
  facts.ties.clear();
  EXPECT_EQ(WorkersEdge(facts), ChoiceEdge::kNone);
  facts.ties = {{4000, 1}};
  facts.chosen = curve[0];
  EXPECT_EQ(WorkersEdge(facts), ChoiceEdge::kNone) << "a flat curve";
}

TEST(RecommendationReasonTest, TheSmallestAskedAboutIsToldUnlessItIsOne) {
  const std::vector<TriedChoice> curve = Curve({100, 180, 200});
  EXPECT_THAT(Reason({curve[1], curve[2]}, 0, {.min_workers = 2}),
              HasSubstr("of 2 to 3; 2 is the smallest number asked about, and fewer may be as good "
                        "or better; one more would"));
  EXPECT_THAT(Reason(curve, 0, {}), Not(HasSubstr("smallest")));
}

TEST(RecommendationReasonTest, AnOnlyNumberIsNotComparedAndNamesWhatItKeeps) {
  std::vector<TriedChoice> curve = {Curve({100, 180})[1]};
  EXPECT_THAT(
      Reason(curve, 0, {.min_workers = 2, .deadline_seconds = 60, .min_scaling_efficiency = 0.5}),
      HasSubstr("efficiency, the only number asked about, which keeps the deadline of 60 s "
                "and a scaling efficiency of 0.5; the most used"));
}

TEST(RecommendationReasonTest, TheOnlyOneThatKeepsTheConstraintsIsToldAsThat) {
  std::vector<TriedChoice> curve = Curve({100, 180, 200});
  const BrokenConstraint late{.kind = ConstraintKind::kDeadline, .missed_by = 0.5};
  curve[0].outcome.broken = curve[1].outcome.broken = {late};
  EXPECT_THAT(
      Reason(curve, 2, {.objective = Objective::kMinCost, .deadline_seconds = 60}),
      HasSubstr("; of the 3 tried no other keeps the deadline of 60 s; 3 is the largest number "
                "asked about, and throughput was still rising, by 11.1 % from 2;"));
}

TEST(RecommendationReasonTest, EdgesAreToldApart) {
  const std::vector<TriedChoice> curve = Curve({100, 180, 200});
  EXPECT_EQ(EdgeOf(curve, 0, {.max_workers = 3}), ChoiceEdge::kNone) << "none is smaller than 1";
  EXPECT_EQ(EdgeOf(curve, 1, {.max_workers = 3}), ChoiceEdge::kNone);
  EXPECT_EQ(EdgeOf(curve, 2, {.max_workers = 3}), ChoiceEdge::kLargestAsked);
  EXPECT_EQ(EdgeOf(curve, 1, {.min_workers = 2, .max_workers = 3}), ChoiceEdge::kSmallestAsked);
  EXPECT_EQ(EdgeOf(curve, 1, {.min_workers = 2, .max_workers = 2}), ChoiceEdge::kOnlyChoice);
  std::vector<TriedChoice> late = curve;
  late[0].outcome.broken = late[2].outcome.broken = {{.missed_by = 1}};
  EXPECT_EQ(EdgeOf(late, 1, {.max_workers = 3, .deadline_seconds = 1}), ChoiceEdge::kOnlyFeasible);
  EXPECT_EQ(EdgeOf(curve, 1, {.max_workers = 3, .deadline_seconds = 1}), ChoiceEdge::kNone);
}

TEST(RecommendationReasonTest, TheMostServersAskedAboutAreToldToo) {
  RecommendationQuery query{.max_workers = 3};
  query.server_choices.resize(2);
  query.server_choices[1].servers().servers = 2;
  std::vector<TriedChoice> curve = Curve({100, 180, 200});
  TriedChoice chosen = curve[1];
  chosen.choice.parameter_servers = 2;
  chosen.prediction.examples_per_second = 198;
  curve.push_back(chosen);
  const ReasonFacts facts{.query = query, .tried = curve, .chosen = chosen, .ties = {}};
  EXPECT_EQ(ServersEdge(facts), ChoiceEdge::kLargestAsked);
  EXPECT_THAT(ReasonFor(facts), HasSubstr("1 to 2 servers; 2 servers are the most asked about, and "
                                          "throughput was still rising, by 10 % from 1;"));
}

TEST(RecommendationReasonTest, SaysOfWhichNumbersOfAListOrOfManyWereLookedAt) {
  const std::vector<TriedChoice> curve = Curve({100, 180, 200});
  EXPECT_THAT(Reason(curve, 0, {.worker_counts = {1, 2, 3}}), HasSubstr("of 1, 2 and 3; one more"));
  std::vector<int32_t> many(20);
  std::iota(many.begin(), many.end(), 1);
  RecommendationQuery listed{.max_workers = 20, .worker_counts = many};
  listed.server_choices.resize(1);
  EXPECT_THAT(ReasonFor({.query = listed, .tried = curve, .chosen = curve[1], .ties = {}}),
              HasSubstr("of 20 numbers from 1 to 20;"));
  RecommendationQuery wide{.max_workers = 1024};
  wide.server_choices.resize(1);
  EXPECT_THAT(ReasonFor({.query = wide, .tried = curve, .chosen = curve[1], .ties = {}}),
              HasSubstr("of 1 to 1024 (all to 64, in strides of up to 16, then all around the "
                        "best); one more"));
}

TEST(RecommendationReasonTest, ManyExamplesASecondHaveNoExponent) {
  EXPECT_THAT(Reason(Curve({13409.2, 20000, 19000}), 1, {.objective = Objective::kMaxThroughput}),
              ::testing::AllOf(HasSubstr("2 workers give 20000 examples/s"),
                               HasSubstr("falls, to 19000 examples/s")));
}

TEST(RecommendationReasonTest, SaysWhatOneMoreWouldChange) {
  EXPECT_THAT(Reason(Curve({100, 180, 171}), 1, {}), HasSubstr("; one more would lose 5 %;"));
  EXPECT_THAT(Reason(Curve({100, 180, 180 + 1e-9}), 1, {}),
              HasSubstr("; one more would change nothing;"));
  EXPECT_THAT(Reason(Curve({100, 180}), 1, {}), Not(HasSubstr("one more")));
}

TEST(RecommendationReasonTest, NamesWhatLimitsWithItsGainAndTheMostUsedIfThatIsAnother) {
  std::vector<TriedChoice> curve = Curve({100});
  Prediction& prediction = curve[0].prediction;
  const auto reason_with = [&](WhatIf change, Resource resource) {
    prediction.bottleneck = {.resource = resource, .index = 1};
    prediction.bottleneck_gain = {.change = change, .gain = 0.37};
    return Reason(curve, 0, {});
  };
  EXPECT_THAT(reason_with(WhatIf::kLinksTwiceAsFast, Resource::kDownlink),
              EndsWith("; it is limited by the downlink of server 1 (links twice as fast: +37 %), "
                       "93 % busy."));
  EXPECT_THAT(
      reason_with(WhatIf::kComputationTwiceAsFast, Resource::kWorker),
      EndsWith("; it is limited by the workers' own computation (twice as fast: +37 %); the "
               "most used resource is the downlink of server 1, 93 % busy."));
  EXPECT_THAT(reason_with(WhatIf::kServersTwiceAsFast, Resource::kParameterServer),
              HasSubstr("by the computation on server 1 (twice as fast: +37 %); the most used"));
  EXPECT_THAT(reason_with(WhatIf::kNoStragglers, Resource::kWorker),
              HasSubstr("by the slowest worker (as fast as the best: +37 %); the most used"));
  prediction.collectives.emplace();
  EXPECT_THAT(reason_with(WhatIf::kNoHostWait, Resource::kWorker),
              HasSubstr("by the hosts, for which the workers' devices wait (without that: +37 %)"));
  EXPECT_THAT(reason_with(WhatIf::kNoLatency, Resource::kCollective),
              HasSubstr("by the latency of the links (without it: +37 %)"));
  EXPECT_THAT(reason_with(WhatIf::kLinksTwiceAsFast, Resource::kCollective),
              HasSubstr("by the links between nodes (twice as fast: +37 %)"));
  prediction.collectives->links = LinkPlace::kInsideNodes;
  EXPECT_THAT(reason_with(WhatIf::kLinksTwiceAsFast, Resource::kCollective),
              HasSubstr("by the links inside the node (twice as fast: +37 %)"));
}

TEST(RecommendationReasonTest, InfeasibleNamesTheNearestChoiceAndWhatItLacks) {
  RecommendationQuery query{.min_workers = 4, .max_workers = 5, .min_scaling_efficiency = 0.95};
  query.server_choices.resize(1);
  TriedChoice nearest{.choice = {4, 1}, .prediction = Of(4, 280, 100, 0)};
  nearest.outcome.broken = {
      {.kind = ConstraintKind::kMinScalingEfficiency, .missed_by = 0.25 / 0.95}};
  EXPECT_EQ(
      InfeasibleReasonFor({.query = query, .tried = {nearest}, .chosen = nearest, .ties = {}}),
      "No number of workers of 4 to 5 keeps a scaling efficiency of 0.95: the nearest, 4 workers, "
      "has 0.7, which is 0.25 too little.");
}

// Of 1 to 9 workers 5 is the largest that divides a batch of 100 in two micro-batches.
TEST(RecommendationReasonTest, TheLargestNumberIsOneThatDividesABatch) {
  RecommendationQuery query{.objective = Objective::kMaxThroughput};
  query.server_choices = {{.communication = AllReduce{.workers_per_node = 8}}};
  query.max_workers = 9;
  query.shared = SharedBatch::Of(testing::DownloadThenCompute(1000, 1000),
                                 {.global_batch_size = 100, .accumulate = 2}, nullptr, {})
                     .value();
  std::vector<TriedChoice> curve = Curve({100, 180, 240, 300, 350});
  curve.erase(curve.begin() + 2, curve.begin() + 4);
  for (TriedChoice& tried : curve) tried.choice.parameter_servers = 0;
  const std::string reason =
      ReasonFor({.query = query, .tried = curve, .chosen = curve.back(), .ties = {}});
  EXPECT_THAT(reason,
              HasSubstr("5 is the largest number asked about that divides the global batch of 100 "
                        "examples in 2 micro-batches and fills nodes of 8 or fits into one, and"));
  EXPECT_THAT(reason, HasSubstr("5 workers, with 20 of the 100 examples of a step each, give"));
  curve.back().prediction.devices = 10;
  EXPECT_THAT(ReasonFor({.query = query, .tried = curve, .chosen = curve.back(), .ties = {}}),
              HasSubstr("5 workers, replicas of 2 devices (10 in all), with 20 of the 100 examples "
                        "of a step each, give"));
}

TEST(RecommendationReasonTest, WhatNeverEndsCostsNothingThatCouldBeTold) {
  std::vector<TriedChoice> curve = Curve({100, 180});
  curve[1].outcome = {.duration_seconds = HUGE_VAL, .cost = HUGE_VAL};
  RecommendationQuery query{.objective = Objective::kMaxThroughput};
  query.prices = MachinePrices{.worker_hour = 1};
  EXPECT_THAT(Reason(curve, 1, query),
              HasSubstr("; the remaining examples take more than 3,000 years; "));
}

}  // namespace
}  // namespace stepcast::recommendation_reason_test
