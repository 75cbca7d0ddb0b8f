#include "core/communication/parameter_servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/time.h"
#include "core/communication/job.h"
#include "core/communication/server_transfers.h"
#include "core/engine/program.h"
#include "core/model/made_steps.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/naive_graph.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::parameter_servers_test {
namespace {

// The server of each operation, by its index, where tensors travel whole; 0 for WORKER operations.
std::vector<int32_t> PlaceParameters(const Profile& profile, int32_t servers) {
  const Placement placement(profile, servers, 0);
  std::vector<int32_t> placed;
  for (size_t i = 0; i < profile.operations().size(); ++i)
    placed.push_back(placement.ServerOf(static_cast<int32_t>(i), 0));
  return placed;
}

using ::testing::ElementsAre;
using testing::JobBuilder;
using testing::Resolved;

// A download, a computation, an upload and an update, one after the other.
Profile Chain() {
  JobBuilder job;
  const int32_t download = job.Download(1000);
  const int32_t computation = job.Compute(2000, {download});
  const int32_t upload = job.Upload(500, {computation});
  job.Update(300, {upload});
  return job.Build();
}

TEST(ParameterServersTest, WithoutParsingEveryOperationIsTheProfiles) {
  const Profile profile = Chain();
  const Program graph = BuildProgram(profile, Resolved(profile));
  ASSERT_EQ(graph.size(), 4);
  const ServerLanes lanes = ServerLanes::Of(graph);
  const LaneIndex expected[] = {lanes.Downlink(0), ServerLanes::kWorker, lanes.Uplink(0),
                                lanes.Server(0)};
  for (OpIndex op = 0; op < 4; ++op) {
    EXPECT_EQ(graph.lane(op), expected[op]);
    EXPECT_EQ(graph.source(op), op);
    EXPECT_FALSE(graph.IsParsing(op));
  }
  EXPECT_THAT(graph.roots(), ElementsAre(0));
  EXPECT_EQ(graph.work(0).first, Nanoseconds(1000));
  EXPECT_EQ(graph.duration(0, 1), Nanoseconds(2000));
}

TEST(ParameterServersTest, ParsingFollowsItsTransferOnTheReceiverAndTakesItsDependents) {
  const Profile profile = Chain();
  const Program graph = BuildProgram(
      profile, Resolved(profile, {.communication = ParameterServersDraft{
                                      .parsing_overhead = ParsingOverhead{.seconds_per_byte = 1e-9,
                                                                          .seconds = 1e-7}}}));
  ASSERT_EQ(graph.size(), 6);
  const ServerLanes lanes = ServerLanes::Of(graph);
  const LaneIndex expected[] = {lanes.Downlink(0), ServerLanes::kWorker, ServerLanes::kWorker,
                                lanes.Uplink(0),   lanes.Server(0),      lanes.Server(0)};
  const int32_t sources[] = {0, 0, 1, 2, 2, 3};
  for (OpIndex op = 0; op < 6; ++op) {
    EXPECT_EQ(graph.lane(op), expected[op]) << op;
    EXPECT_EQ(graph.source(op), sources[op]) << op;
    EXPECT_EQ(graph.IsParsing(op), op == 1 || op == 4) << op;
    if (op < 5) {
      EXPECT_THAT(graph.dependents(op), ElementsAre(op + 1));
    }
    EXPECT_EQ(graph.dependency_count(op), op == 0 ? 0 : 1);
  }
  EXPECT_EQ(graph.duration(0, 1), Nanoseconds(1100));
  EXPECT_EQ(graph.duration(0, 4), Nanoseconds(600));
}

TEST(ParameterServersTest, OneCoefficientIsEnoughForParsing) {
  const Profile profile = Chain();
  EXPECT_EQ(BuildProgram(
                profile,
                Resolved(profile, {.communication =
                                       ParameterServersDraft{
                                           .parsing_overhead = ParsingOverhead{.seconds = 1e-7}}}))
                .size(),
            6);
  EXPECT_EQ(BuildProgram(
                profile,
                Resolved(profile,
                         {.communication =
                              ParameterServersDraft{
                                  .parsing_overhead = ParsingOverhead{.seconds_per_byte = 1e-9}}}))
                .size(),
            6);
}

TEST(ParameterServersTest, AWindowSplitsOnlyWhatIsLarger) {
  JobBuilder job;
  for (const int64_t bytes : {999, 1000, 1001, 5000}) job.Download(bytes);
  const Profile profile = job.Build();
  const Program graph =
      BuildProgram(profile, Resolved(profile, {.communication = ParameterServersDraft{
                                                   .multiplexing = WindowDraft{.bytes = 1000}}}));
  const int64_t firsts[] = {999, 1000, 1000, 1000};
  const int64_t rests[] = {0, 0, 1, 4000};
  for (OpIndex op = 0; op < 4; ++op) {
    EXPECT_EQ(graph.work(op).first, Nanoseconds(firsts[op]));
    EXPECT_EQ(graph.work(op).services, rests[op] > 0 ? 2 : 1);
    EXPECT_EQ(graph.work(op).last, Nanoseconds(rests[op]));
  }
}

TEST(ParameterServersTest, TransfersTakeTheirSizeAtTheScenariosBandwidthNotTheirRecordedTime) {
  const Profile profile = Chain();
  const Program graph =
      BuildProgram(profile, Resolved(profile, {.bandwidth_bytes_per_second = 5e8}));
  EXPECT_EQ(graph.work(0).first, Nanoseconds(2000));
  EXPECT_EQ(graph.duration(0, 1), Nanoseconds(2000));
}

TEST(ParameterServersTest, KeepsEveryRecordedStepOrTheLeastTimes) {
  JobBuilder job;
  job.Compute({30, 10});
  job.Compute({20, 40});
  const Profile profile = job.Build();
  const Program recorded = BuildProgram(profile, Resolved(profile));
  ASSERT_EQ(recorded.step_count(), 2);
  EXPECT_EQ(recorded.duration(0, 0), Nanoseconds(30));
  EXPECT_EQ(recorded.duration(1, 1), Nanoseconds(40));
  EXPECT_EQ(recorded.longest_step_ticks(), 50.0 * kTicksPerNanosecond);
  const Program least = BuildProgram(profile, Resolved(profile), ProgramTimes::kLeast);
  ASSERT_EQ(least.step_count(), 1);
  EXPECT_EQ(least.duration(0, 0), Nanoseconds(10));
  EXPECT_EQ(least.duration(0, 1), Nanoseconds(20));
}

TEST(ParameterServersTest, LanesTellResourceAndServer) {
  const ServerLanes lanes{.servers = 3};
  EXPECT_EQ(lanes.count(), 10);
  EXPECT_EQ(ServerLanes::ResourceOf(lanes.Specs()[ServerLanes::kWorker]), Resource::kWorker);
  for (int32_t server = 0; server < 3; ++server) {
    for (const auto& [lane, kind] : {std::pair{lanes.Server(server), Resource::kParameterServer},
                                     std::pair{lanes.Downlink(server), Resource::kDownlink},
                                     std::pair{lanes.Uplink(server), Resource::kUplink}}) {
      EXPECT_EQ(ServerLanes::ResourceOf(lanes.Specs()[lane]), kind);
      EXPECT_EQ(lanes.Specs()[lane].index, server);
      EXPECT_EQ(lanes.Specs().IsLink(lane), kind != Resource::kParameterServer);
    }
  }
}

// The packed arrays say what the plain structs say, over random graphs.
TEST(ParameterServersTest, AgreesWithTheNaiveGraph) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const testing::RandomCase random_case = testing::MakeRandomCase(seed);
    const Program graph = BuildProgram(random_case.profile, random_case.scenario);
    const std::vector<testing::NaiveOperation> naive =
        testing::MakeNaiveGraph(random_case.profile, random_case.scenario);
    ASSERT_EQ(static_cast<size_t>(graph.size()), naive.size());
    std::vector<std::vector<OpIndex>> dependents(naive.size());
    for (OpIndex op = 0; op < graph.size(); ++op) {
      const testing::NaiveOperation& expected = naive[static_cast<size_t>(op)];
      EXPECT_EQ(ServerLanes::ResourceOf(graph, op), expected.resource);
      EXPECT_EQ(graph.lanes()[graph.lane(op)].index, expected.server);
      EXPECT_EQ(graph.dependency_count(op), static_cast<int32_t>(expected.waiting_for.size()));
      for (const size_t before : expected.waiting_for) dependents[before].push_back(op);
    }
    for (OpIndex op = 0; op < graph.size(); ++op) {
      EXPECT_THAT(graph.dependents(op),
                  ::testing::ElementsAreArray(dependents[static_cast<size_t>(op)]))
          << op;
    }
  }
}

TEST(ParameterPlacementTest, OnTheRecordedNumberOfServersAllStaysWhereItWas) {
  JobBuilder job;
  job.Download(10, {}, 1, "a");
  job.Download(10, {}, 1, "b");
  job.Compute(5, {0, 1});
  job.Upload(10, {2}, 0, "c");
  EXPECT_EQ(PlaceParameters(job.Build(), 2), (std::vector<int32_t>{1, 1, 0, 0}));
}

TEST(ParameterPlacementTest, EachParameterGoesToTheServerWithTheFewestBytesSoFar) {
  JobBuilder job;
  for (const int64_t bytes : {40, 10, 20, 15, 5})
    job.Download(bytes, {}, 0, "p" + std::to_string(bytes));
  // Loads: 40|0, 40|10, 40|30, 40|45, 45|45.
  EXPECT_EQ(PlaceParameters(job.Build(), 2), (std::vector<int32_t>{0, 1, 1, 1, 0}));
}

TEST(ParameterPlacementTest, WhatBelongsToAParameterGoesWithIt) {
  JobBuilder job;
  job.Download(30, {}, 0, "a");
  job.Download(20, {}, 0, "b");
  job.Compute(1, {0, 1});
  job.Upload(20, {2}, 0, "b");
  job.Update(1, {3}, 0, "b");
  job.Upload(30, {2}, 0, "a");
  EXPECT_EQ(PlaceParameters(job.Build(), 3), (std::vector<int32_t>{0, 1, 0, 1, 1, 0}));
}

TEST(ParameterPlacementTest, AParameterThatIsOnlyUploadedWeighsItsUploads) {
  JobBuilder job;
  job.Upload(30, {}, 0, "a");
  job.Download(10, {}, 0, "b");
  job.Download(10, {}, 0, "c");
  job.Download(10, {}, 0, "d");
  EXPECT_EQ(PlaceParameters(job.Build(), 2), (std::vector<int32_t>{0, 1, 1, 1}));
}

TEST(ParameterPlacementTest, MoreServersThanRecordedMeansFewerBytesEachAndOneMeansAll) {
  JobBuilder job;
  job.Download(10, {}, 1, "a");
  job.Download(10, {}, 0, "b");
  EXPECT_EQ(PlaceParameters(job.Build(), 1), (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(PlaceParameters(job.Build(), 3), (std::vector<int32_t>{0, 1}));
}

// ICPE 2020, Fig. 23: VGG-11 on two servers is split into 407 and 100 MB (of 2^20 bytes), whole
// layers (weights and biases) in graph order.
TEST(ParameterPlacementTest, SplitsVgg11AsThePaperSawIt) {
  JobBuilder job;
  int layer = 0;
  const auto add = [&](int64_t inputs, int64_t outputs) {
    job.Download(4 * (inputs * outputs + outputs), {}, 0, std::to_string(layer++));
  };
  int64_t channels = 3;
  for (const int64_t outputs : {64, 128, 256, 256, 512, 512, 512, 512}) {
    add(9 * channels, outputs);
    channels = outputs;
  }
  add(int64_t{7} * 7 * 512, 4096);
  add(4096, 4096);
  add(4096, 1000);
  const Profile profile = job.Build();
  const std::vector<int32_t> servers = PlaceParameters(profile, 2);
  std::vector<int64_t> bytes(2, 0);
  for (size_t i = 0; i < servers.size(); ++i)
    bytes[static_cast<size_t>(servers[i])] += profile.operations()[i].size_bytes;
  EXPECT_NEAR(static_cast<double>(bytes[0]) / (1 << 20), 407, 0.5);
  EXPECT_NEAR(static_cast<double>(bytes[1]) / (1 << 20), 100, 0.5);
}

// A layered network's step, against servers whose updates take no time or with all-reduces.
Profile Layered(const std::vector<TrainingLayer>& layers, bool all_reduce) {
  const TrainingGraph graph =
      all_reduce ? BuildAllReduceGraph(layers, 0) : BuildTrainingGraph(layers);
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = graph.operations;
  RecordedStep& step = draft.steps.emplace_back();
  for (size_t i = 0; i < draft.operations.size(); ++i) {
    const bool computes = draft.operations[i].resource == Resource::kWorker;
    step.start_ns.push_back(0);
    step.end_ns.push_back(computes ? graph.durations_ns[i] : 0);
  }
  return Profile::Create(std::move(draft)).value();
}

std::vector<std::vector<Instant>> StepEnds(const Profile& profile, const ScenarioDraft& draft) {
  const Scenario scenario = Resolved(profile, draft);
  EXPECT_TRUE(CheckCollectives(profile, scenario).ok());
  const JobProgram job = BuildJobProgram(profile, scenario, NeverStop).value();
  return Simulate(JobOf(job, std::make_shared<const Ranking>(), scenario),
                  testing::OptionsFor(scenario, 5), NeverStop)
      .value()
      .step_ends;
}

// There and back: each parameter's download, upload and update are one all-reduce, and the other
// way round.
TEST(ParameterServersTest, AJobOfAllReducesIsTheSameJobAgainstServersAndBack) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed, 31});
    std::vector<TrainingLayer> layers;
    const auto count = 1 + random.Below(8);
    for (uint64_t i = 0; i < count; ++i) {
      const std::string name = std::to_string(i);
      TrainingLayer& layer = layers.emplace_back(
          TrainingLayer{.name = name,
                        .forward_ns = static_cast<int64_t>(1 + random.Below(1'000'003)),
                        .backward_ns = static_cast<int64_t>(1 + random.Below(1'000'003))});
      if (i > 0) layer.inputs = {static_cast<int32_t>(i) - 1};
      if (i + 1 == count || random.Below(3) > 0)
        layer.parameters = {
            {.name = "w" + name, .size_bytes = static_cast<int64_t>(1 + random.Below(2'000'003))}};
    }
    const Profile servers = Layered(layers, false);
    const Profile all_reduce = Layered(layers, true);
    ScenarioDraft draft{.workers = static_cast<int32_t>(1 + random.Below(5))};
    for (int32_t i = 0; i < *draft.workers; ++i)
      draft.start_offsets_ns.push_back(static_cast<int64_t>(random.Below(900'001)));
    draft.communication = AllReduceDraft{};
    EXPECT_EQ(StepEnds(servers, draft), StepEnds(all_reduce, draft));
    ParameterServersDraft how{.servers = static_cast<int32_t>(1 + random.Below(3))};
    if (random.Below(2) == 0)
      how.parsing_overhead = ParsingOverhead{.seconds_per_byte = 1.3e-10, .seconds = 1.7e-6};
    if (random.Below(2) == 0) how.multiplexing = WindowDraft{.bytes = 300'000};
    if (random.Below(2) == 0) how.synchronization = Synchronization::kSynchronous;
    draft.communication = how;
    EXPECT_EQ(StepEnds(all_reduce, draft), StepEnds(servers, draft));
  }
}

TEST(ParameterServersTest, WhatWaitedForTheSumWaitsForTheUploadAndTheForwardForTheDownload) {
  const std::vector<TrainingLayer> layers = {
      {.name = "a", .parameters = {{.name = "wa", .size_bytes = 1000}}, .forward_ns = 10},
      {.name = "b",
       .inputs = {0},
       .parameters = {{.name = "wb", .size_bytes = 2000}},
       .forward_ns = 10}};
  const Profile profile = Layered(layers, true);
  ScenarioDraft draft;
  draft.servers() = {.servers = 1};
  const Program graph = BuildProgram(profile, Resolved(profile, draft));
  const ServerLanes lanes = ServerLanes::Of(graph);
  std::vector<LaneIndex> on;
  for (OpIndex op = 0; op < graph.size(); ++op) on.push_back(graph.lane(op));
  const LaneIndex down = lanes.Downlink(0);
  const LaneIndex up = lanes.Uplink(0);
  // wa, wb; forward a, b; backward b, its gradient; backward a, its gradient; the optimizer.
  EXPECT_THAT(on, ElementsAre(down, down, 0, 0, 0, up, 0, up, 0));
  const auto dependents = [&](OpIndex op) {
    return std::vector<OpIndex>(graph.dependents(op).begin(), graph.dependents(op).end());
  };
  EXPECT_THAT(dependents(0), ElementsAre(2));
  EXPECT_THAT(dependents(1), ElementsAre(3));
  EXPECT_THAT(dependents(5), ElementsAre(8));
  EXPECT_THAT(dependents(7), ElementsAre(8));
  EXPECT_EQ(graph.size_bytes(0), 1000);
  EXPECT_EQ(graph.size_bytes(5), 2000);
}

TEST(ParameterServersTest, AForwardThatCannotBeToldIsNamed) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "all at once", .resource = Resource::kWorker},
                      {.name = "gradient",
                       .resource = Resource::kCollective,
                       .size_bytes = 10,
                       .waiting_for = {0},
                       .parameter = "w",
                       .collective = Collective::kAllReduce}};
  draft.steps = {{.start_ns = {0, 0}, .end_ns = {10, 10}}};
  const Profile profile = Profile::Create(std::move(draft)).value();
  ScenarioDraft asked;
  asked.servers() = {.servers = 1};
  const absl::Status status = CheckCollectives(profile, Resolved(profile, asked));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(DetailsOf(status).faults.size(), 1U);
  EXPECT_EQ(DetailsOf(status).faults[0].field, "parameter_servers");
  EXPECT_THAT(DetailsOf(status).faults[0].description,
              ::testing::HasSubstr("\"all at once\" makes a gradient"));
  EXPECT_FALSE(
      BuildProgram(profile, Resolved(profile, asked), ProgramTimes::kRecorded, NeverStop).ok());
}

}  // namespace
}  // namespace stepcast::parameter_servers_test
