#include "core/predict/bottleneck.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/stop_check.h"
#include "core/predict/point_set.h"
#include "core/predict/throughput.h"
#include "tests/core/engine/job_builder.h"

namespace stepcast::bottleneck_test {
namespace {

using testing::JobBuilder;

Prediction Predicted(const Profile& profile, const ScenarioDraft& scenario) {
  const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, {.scenario = scenario});
  EXPECT_TRUE(query.ok()) << query.status();
  const absl::StatusOr<ThroughputAnswer> answer = PredictThroughput(profile, *query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer->predictions.front();
}

void ExpectBottleneck(const Prediction& prediction, Resource resource, int32_t index, WhatIf change,
                      double gain, double within = 0.02) {
  EXPECT_EQ(prediction.bottleneck.resource, resource);
  EXPECT_EQ(prediction.bottleneck.index, index);
  ASSERT_TRUE(prediction.bottleneck_gain.has_value());
  EXPECT_STREQ(NameOf(prediction.bottleneck_gain->change), NameOf(change));
  EXPECT_NEAR(prediction.bottleneck_gain->gain, gain, within);
}

TEST(GreatestGainTest, IsTheGreatestOfOneResourceAndOfEqualOnesTheFirst) {
  const auto of = [](const std::vector<ResourceGain>& gains) {
    return GreatestGain(gains)->change;
  };
  EXPECT_EQ(of({{WhatIf::kComputationTwiceAsFast, 0.3}, {WhatIf::kLinksTwiceAsFast, 0.31}}),
            WhatIf::kLinksTwiceAsFast);
  EXPECT_EQ(of({{WhatIf::kComputationTwiceAsFast, 0.77}, {WhatIf::kNoStragglers, 0.77}}),
            WhatIf::kNoStragglers);
  EXPECT_EQ(of({{WhatIf::kBestBuckets, 5}, {WhatIf::kNoLatency, 0.2}}), WhatIf::kNoLatency);
  EXPECT_FALSE(GreatestGain({{WhatIf::kOneWorkerFewer, 5}}).has_value());
}

TEST(GreatestGainTest, IsComputationWhereNothingBringsAHundredth) {
  const std::optional<ResourceGain> gain =
      GreatestGain({{WhatIf::kLinksTwiceAsFast, 0.009}, {WhatIf::kComputationTwiceAsFast, 0.002}});
  EXPECT_EQ(gain->change, WhatIf::kComputationTwiceAsFast);
  EXPECT_EQ(gain->gain, 0.002);
}

TEST(BottleneckTest, IsTheLinkOfOneServer) {
  JobBuilder job;
  const int32_t small = job.Download(500);
  const int32_t large = job.Download(8000, {}, 1);
  job.Upload(500, {job.Compute(1000, {small, large})});
  // One worker takes 8000 + 1000 + 500; with twice as fast links 4000 + 1000 + 250.
  ExpectBottleneck(Predicted(job.Build(), {.workers = 1}), Resource::kDownlink, 1,
                   WhatIf::kLinksTwiceAsFast, 9500.0 / 5250 - 1);
  // Of many nothing but that link is waited for.
  ExpectBottleneck(Predicted(job.Build(), {.workers = 8}), Resource::kDownlink, 1,
                   WhatIf::kLinksTwiceAsFast, 1, 0.05);
}

TEST(BottleneckTest, IsWhatServersCompute) {
  JobBuilder job;
  job.Update(9000, {job.Upload(500, {job.Compute(500, {job.Download(500)})})});
  ExpectBottleneck(Predicted(job.Build(), {.workers = 1}), Resource::kParameterServer, 0,
                   WhatIf::kServersTwiceAsFast, 10'500.0 / 6000 - 1);
  // Parsing is of the servers, too.
  JobBuilder parsing;
  parsing.Upload(500, {parsing.Compute(500, {})});
  const Prediction parsed =
      Predicted(parsing.Build(), {.communication = ParameterServersDraft{
                                      .parsing_overhead = ParsingOverhead{.seconds = 9e-6}}});
  ExpectBottleneck(parsed, Resource::kParameterServer, 0, WhatIf::kServersTwiceAsFast,
                   10'000.0 / 5500 - 1);
}

TEST(BottleneckTest, IsNotWhatIsMostUsed) {
  JobBuilder job;
  job.Upload(400, {job.Compute(500, {job.Download(410)})});
  const Prediction prediction = Predicted(job.Build(), {.workers = 1});
  EXPECT_EQ(prediction.most_used.resource, Resource::kWorker);
  ExpectBottleneck(prediction, Resource::kDownlink, 0, WhatIf::kLinksTwiceAsFast, 1310.0 / 905 - 1);
  JobBuilder computing;
  computing.Upload(100, {computing.Compute(9000, {computing.Download(100)})});
  ExpectBottleneck(Predicted(computing.Build(), {.workers = 1}), Resource::kWorker, 0,
                   WhatIf::kComputationTwiceAsFast, 9200.0 / 4700 - 1);
}

TEST(BottleneckTest, IsTheSlowestWorkerOfParameterServersToo) {
  JobBuilder job;
  job.Upload(100, {job.Compute(9000, {job.Download(100)})});
  const Prediction prediction = Predicted(
      job.Build(),
      {.workers = 4,
       .communication = ParameterServersDraft{.synchronization = Synchronization::kSynchronous},
       .worker_groups = {{.count = 3}, {.count = 1, .compute_speed_factor = 0.25}}});
  EXPECT_EQ(prediction.bottleneck.resource, Resource::kWorker);
  ASSERT_TRUE(prediction.bottleneck_gain.has_value());
  EXPECT_EQ(prediction.bottleneck_gain->change, WhatIf::kNoStragglers);
  EXPECT_GT(prediction.bottleneck_gain->gain, 2);
}

constexpr int64_t kMs = 1'000'000;

// A forward and a backward pass of some milliseconds, the gradient of the second half first.
Profile Training(int64_t computed_ms, int64_t gradient_bytes, int32_t gradients,
                 std::optional<double> idle = std::nullopt) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.device_idle_fraction = idle;
  RecordedStep step;
  int64_t at = 0;
  int32_t before = -1;
  for (int32_t i = 0; i <= gradients; ++i) {
    Operation computation{.name = "compute " + std::to_string(i), .resource = Resource::kWorker};
    if (before >= 0) computation.waiting_for.push_back(before);
    before = static_cast<int32_t>(draft.operations.size());
    draft.operations.push_back(computation);
    step.start_ns.push_back(at);
    at += computed_ms * kMs / (gradients + 1);
    step.end_ns.push_back(at);
    if (i == 0) continue;
    draft.operations.push_back({.name = "gradient " + std::to_string(i),
                                .resource = Resource::kCollective,
                                .size_bytes = gradient_bytes,
                                .waiting_for = {before},
                                .collective = Collective::kAllReduce});
    step.start_ns.push_back(at);
    step.end_ns.push_back(at);
  }
  draft.steps = {step};
  const absl::StatusOr<Profile> profile = Profile::Create(draft);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return *profile;
}

TEST(BottleneckTest, HasEveryNameOfAJobOfCollectives) {
  struct Case {
    const char* name;
    Profile profile;
    ScenarioDraft scenario;
    CollectiveBottleneck bottleneck;
    WhatIf change;
  };
  const AllReduceDraft ring;
  const AllReduceDraft on_one_node{.workers_per_node = 4,
                                   .intra_node_bandwidth_bytes_per_second = 1e8};
  AllReduceDraft slow_nodes = on_one_node;
  slow_nodes.algorithm = CollectiveAlgorithm::kHierarchical;
  AllReduceDraft fast_nodes = slow_nodes;
  fast_nodes.intra_node_bandwidth_bytes_per_second = 1e11;
  const Case cases[] = {
      {"computation",
       Training(90, 1000, 4),
       {.workers = 4, .communication = ring},
       CollectiveBottleneck::kComputation,
       WhatIf::kComputationTwiceAsFast},
      {"one worker",
       Training(90, 50'000'000, 4),
       {.workers = 1, .communication = ring},
       CollectiveBottleneck::kComputation,
       WhatIf::kComputationTwiceAsFast},
      {"links",
       Training(10, 50'000'000, 4),
       {.workers = 4, .communication = ring},
       CollectiveBottleneck::kLinkBetweenNodes,
       WhatIf::kLinksTwiceAsFast},
      {"links of a node",
       Training(10, 50'000'000, 4),
       {.workers = 4, .communication = on_one_node},
       CollectiveBottleneck::kLinkInsideNode,
       WhatIf::kLinksTwiceAsFast},
      {"slow links inside several nodes",
       Training(10, 50'000'000, 4),
       {.workers = 8, .communication = slow_nodes},
       CollectiveBottleneck::kLinkInsideNode,
       WhatIf::kLinksTwiceAsFast},
      {"fast links inside several nodes",
       Training(10, 50'000'000, 4),
       {.workers = 8, .communication = fast_nodes},
       CollectiveBottleneck::kLinkBetweenNodes,
       WhatIf::kLinksTwiceAsFast},
      {"latency",
       Training(10, 1000, 40),
       {.workers = 16, .communication = AllReduceDraft{.latency_seconds = 1e-4}},
       CollectiveBottleneck::kLatency,
       WhatIf::kNoLatency},
      {"straggler",
       Training(90, 1000, 4),
       {.workers = 4,
        .communication = ring,
        .worker_groups = {{.count = 3}, {.count = 1, .compute_speed_factor = 0.5}}},
       CollectiveBottleneck::kSlowestWorker,
       WhatIf::kNoStragglers},
      {"host",
       Training(90, 1000, 4, 0.6),
       {.workers = 4, .communication = ring},
       CollectiveBottleneck::kHost,
       WhatIf::kNoHostWait},
      {"device that waits little",
       Training(90, 1000, 4, 0.2),
       {.workers = 4, .communication = ring},
       CollectiveBottleneck::kComputation,
       WhatIf::kComputationTwiceAsFast}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const Prediction prediction = Predicted(each.profile, each.scenario);
    ASSERT_TRUE(prediction.collectives.has_value());
    EXPECT_EQ(prediction.collectives->bottleneck, each.bottleneck);
    ASSERT_TRUE(prediction.bottleneck_gain.has_value());
    EXPECT_STREQ(NameOf(prediction.bottleneck_gain->change), NameOf(each.change));
    EXPECT_GT(prediction.bottleneck_gain->gain, 0.2);
  }
}

TEST(BottleneckTest, AWorkerThatOnlyComputesNeedsNoRun) {
  const Prediction prediction = Predicted(Training(90, 1000, 4, 0.2), {.workers = 1});
  // A fifth stays as it is.
  ExpectBottleneck(prediction, Resource::kWorker, 0, WhatIf::kComputationTwiceAsFast, 1 / 0.6 - 1,
                   1e-12);
}

// Defaults of a job with something random: short runs are few and short, and of asynchronous
// workers only the change that would help most is run as long as the prediction was.
TEST(BottleneckTest, CostsAboutAsMuchAsThePrediction) {
  JobBuilder job;
  job.Upload(700, {job.Compute({500, 900, 2100}, {job.Download(1000)})});
  const Profile profile = job.Build();
  const ThroughputQuery query =
      ResolveThroughput(profile, {.worker_counts = {1, 2, 4, 8, 16, 32}}).value();
  PointSet points(profile, query.options);
  std::vector<size_t> all;
  for (const Scenario& scenario : query.scenarios)
    all.push_back(points.Add(scenario, NeverStop).value());
  ASSERT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
  const auto before = static_cast<double>(points.Statistics().simulated_operations);
  ASSERT_TRUE(points.FindBottlenecks(all, NeverStop, InOrder()).ok());
  const auto after = static_cast<double>(points.Statistics().simulated_operations);
  EXPECT_GT(after, before);
  EXPECT_LT(after, 1.9 * before);
}

TEST(BottleneckTest, IsTheMostUsedWhereTheTimeBudgetIsSpent) {
  JobBuilder job;
  job.Upload(400, {job.Compute(500, {job.Download(410)})});
  const Profile profile = job.Build();
  const ThroughputQuery query = ResolveThroughput(profile, {}).value();
  PointSet points(profile, query.options);
  const size_t point = points.Add(query.scenarios.front(), NeverStop).value();
  ASSERT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
  const auto spent = [] { return TimeBudgetSpent(); };
  ASSERT_TRUE(points.FindBottlenecks({point}, spent, InOrder()).ok());
  const Prediction prediction = points.Summarize(point);
  EXPECT_FALSE(prediction.bottleneck_gain.has_value());
  EXPECT_EQ(prediction.bottleneck.resource, Resource::kWorker);
}

}  // namespace
}  // namespace stepcast::bottleneck_test
