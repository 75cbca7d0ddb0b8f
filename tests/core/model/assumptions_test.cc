
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/model/job_change.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "tests/support/profile_json.h"

namespace stepcast::assumptions_test {
namespace {

using ::nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

json JsonOf(const std::string& path) {
  return testing::ReadJsonFile(STEPCAST_SOURCE_DIR "/tests/data/" + path);
}

// Two tensors of 1 MB down and up, asked for at once, over a link of 1 MB/ms: `ends` are of the
// downloads in ms.
ProfileDraft TwoTensors(int64_t first_end, int64_t second_end) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  const auto transfer = [&](const char* name, Resource resource, const char* parameter) {
    draft.operations.push_back(
        {.name = name, .resource = resource, .size_bytes = 1'000'000, .parameter = parameter});
  };
  transfer("recv a", Resource::kDownlink, "a");
  transfer("recv b", Resource::kDownlink, "b");
  draft.operations.push_back(
      {.name = "compute", .resource = Resource::kWorker, .waiting_for = {0, 1}});
  transfer("send a", Resource::kUplink, "a");
  draft.operations.back().waiting_for = {2};
  draft.steps = {
      {.start_ns = {0, 0, 3'000'000, 9'000'000},
       .end_ns = {first_end * 1'000'000, second_end * 1'000'000, 9'000'000, 10'000'000}}};
  return draft;
}

bool Knows(const ProfileDraft& draft) {
  return Profile::Create(draft).value().knows_transfer_order();
}

TEST(TransferOrderTest, IsKnownOfRealRecordings) {
  for (const char* model : {"alexnet_64", "vgg11_128", "resnet50_16"}) {
    ProfileDraft draft =
        testing::ProfileFromJson(JsonOf(std::string("testbed/") + model + ".profile.json"));
    EXPECT_TRUE(Knows(draft)) << model;
    // The same from a link that is said to be slower than it was carries more than it could.
    draft.platform.bandwidth_bytes_per_second *= 0.9;
    EXPECT_FALSE(Knows(draft)) << model;
  }
}

TEST(TransferOrderTest, IsAsKnownOfAChangedJobAsOfItsRecording) {
  for (const char* model : {"alexnet_64", "vgg11_128", "resnet50_16"}) {
    const Profile recorded =
        Profile::Create(
            testing::ProfileFromJson(JsonOf(std::string("testbed/") + model + ".profile.json")))
            .value();
    for (const double speed : {0.5, 1.04, 8.0}) {
      const absl::StatusOr<Profile> changed =
          ChangedProfile(recorded, {.compute_speed_factor = speed}, nullptr);
      ASSERT_TRUE(changed.ok()) << changed.status();
      EXPECT_TRUE(changed->knows_transfer_order()) << model << " " << speed;
    }
  }
}

TEST(TransferOrderTest, IsNotKnownWhereTransfersLastAsIfEachWereAlone) {
  const json cases = JsonOf("golden/parameter_server.json");
  ASSERT_EQ(cases.size(), 80U);
  for (const json& golden : cases)
    EXPECT_FALSE(Knows(testing::ProfileFromJson(golden.at("profile"))));
  EXPECT_FALSE(Knows(TwoTensors(1, 1)));
}

TEST(TransferOrderTest, IsKnownWhereTransfersWaitedForEachOtherOnALinkThatCarriesThem) {
  EXPECT_TRUE(Knows(TwoTensors(2, 1)));
  EXPECT_TRUE(Knows(TwoTensors(1, 2)));
  // Two milliseconds less 2 % are a burst, less 5 % are not.
  ProfileDraft burst = TwoTensors(1, 2);
  burst.steps[0].end_ns[1] = 1'970'000;
  EXPECT_TRUE(Knows(burst));
  burst.steps[0].end_ns[1] = 1'900'000;
  EXPECT_FALSE(Knows(burst));
  // One step in which it does not is enough.
  ProfileDraft mixed = TwoTensors(2, 1);
  mixed.steps.push_back(TwoTensors(1, 1).steps[0]);
  EXPECT_FALSE(Knows(mixed));
  // One after the other, nothing waited.
  ProfileDraft apart = TwoTensors(1, 2);
  apart.steps[0].start_ns[1] = 1'000'000;
  EXPECT_FALSE(Knows(apart));
  ProfileDraft without_length = TwoTensors(2, 1);
  without_length.steps[0].end_ns[3] = 9'000'000;
  EXPECT_FALSE(Knows(without_length));
  // Servers have connections of their own.
  ProfileDraft servers = TwoTensors(1, 1);
  servers.parameter_servers = 2;
  servers.operations[1].parameter_server = 1;
  EXPECT_FALSE(Knows(servers));
}

TEST(TransferOrderTest, IsNotKnownOfWhatWasMadeFromLayers) {
  for (const char* made : {"model zoo", "layer profile"}) {
    ProfileDraft draft = TwoTensors(2, 1);
    draft.framework = made;
    EXPECT_FALSE(Knows(draft)) << made;
  }
}

Scenario Resolved(const ProfileDraft& profile, const ScenarioDraft& asked) {
  absl::StatusOr<Scenario> scenario = ResolveScenario(Profile::Create(profile).value(), asked);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return *std::move(scenario);
}

TEST(DefaultsOfServersTest, AreRecordedOrderAndTurnsWhereALinkWasRecorded) {
  const ProfileDraft known = TwoTensors(2, 1);
  const Scenario scenario = Resolved(known, {.workers = 2});
  EXPECT_EQ(scenario.servers().transfer_order, TransferOrder::kRecorded);
  EXPECT_EQ(scenario.servers().link_sharing, LinkSharing(Turns{}));
  const auto sharing = [&](const ScenarioDraft& asked) {
    return Resolved(known, asked).servers().link_sharing;
  };
  ScenarioDraft equal{.workers = 2};
  equal.servers().link_sharing = EqualShares{};
  EXPECT_EQ(sharing(equal), LinkSharing(EqualShares{}));
  EXPECT_EQ(
      sharing({.workers = 1, .worker_groups = {{.count = 1, .bandwidth_bytes_per_second = 5e8}}}),
      LinkSharing(Turns{}));
  EXPECT_EQ(
      sharing({.workers = 1, .worker_groups = {{.count = 1, .bandwidth_bytes_per_second = 5e9}}}),
      LinkSharing(Turns{}));
  ScenarioDraft two{.workers = 2};
  two.servers().servers = 2;
  ProfileDraft named = known;
  named.operations[2].parameter = "a";
  EXPECT_EQ(Resolved(named, two).servers().link_sharing, LinkSharing(Turns{}));

  const Scenario guessed = Resolved(TwoTensors(1, 1), {.workers = 2});
  EXPECT_EQ(guessed.servers().transfer_order, TransferOrder::kGraph);
  EXPECT_EQ(guessed.servers().link_sharing, LinkSharing(EqualShares{}));
}

// On two links every turn is simulated: a step is then of 512 turns at most.
TEST(DefaultsOfServersTest, TurnsOnTwoLinksAreA512thOfWhatAStepSends) {
  ProfileDraft large = TwoTensors(2, 1);
  large.platform.bandwidth_bytes_per_second *= 100;
  for (Operation& operation : large.operations) operation.size_bytes *= 100;
  ScenarioDraft two{.workers = 2};
  two.servers().servers = 2;
  EXPECT_EQ(Resolved(large, two).servers().link_sharing, LinkSharing(Turns{.bytes = 390'625}));
  EXPECT_EQ(Resolved(large, {.workers = 2}).servers().link_sharing, LinkSharing(Turns{}));
}

std::vector<std::string> Told(const ProfileDraft& profile, const ScenarioDraft& asked) {
  std::vector<std::string> texts;
  for (const Assumption& assumption : AssumptionsOf(Resolved(profile, asked))) {
    EXPECT_THAT(assumption.message, Not(IsEmpty()));
    EXPECT_EQ(assumption.message.back(), '.');
    texts.push_back(assumption.field + "=" + assumption.value);
  }
  return texts;
}

TEST(AssumptionsTest, OfServersAreWhatWasNeitherRecordedNorAskedFor) {
  EXPECT_THAT(Told(TwoTensors(1, 1), {.workers = 2}),
              ElementsAre("parameter_servers.transfer_order=graph order",
                          "parameter_servers.whole_stream=whole streams",
                          "parameter_servers.equal=equal shares",
                          "parameter_servers.synchronization=asynchronous steps"));
  EXPECT_THAT(Told(TwoTensors(2, 1), {.workers = 2}),
              ElementsAre("parameter_servers.whole_stream=whole streams",
                          "parameter_servers.turns.bytes=turns of 65160 bytes",
                          "parameter_servers.synchronization=asynchronous steps"));
  EXPECT_THAT(Told(TwoTensors(2, 1), {.workers = 1}),
              ElementsAre("parameter_servers.whole_stream=whole streams"));
  ProfileDraft with_window = TwoTensors(2, 1);
  with_window.platform.window_bytes = 65'536;
  EXPECT_THAT(Told(with_window, {.workers = 1}), IsEmpty());
  const ParameterServersDraft all{.synchronization = Synchronization::kAsynchronous,
                                  .multiplexing = WholeStream{},
                                  .link_sharing = EqualShares{},
                                  .transfer_order = TransferOrder::kGraph};
  EXPECT_THAT(Told(TwoTensors(1, 1), {.workers = 2, .communication = all}), IsEmpty());
}

// A computation and two gradients of 1 MB each.
ProfileDraft Gradients() {
  ProfileDraft draft{
      .framework = "pytorch", .batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "backward", .resource = Resource::kWorker}};
  for (const char* name : {"a", "b"}) {
    draft.operations.push_back({.name = name,
                                .resource = Resource::kCollective,
                                .size_bytes = 1'000'000,
                                .waiting_for = {0},
                                .parameter = name,
                                .collective = Collective::kAllReduce});
  }
  draft.steps = {{.start_ns = {0, 10, 10}, .end_ns = {10, 10, 10}}};
  return draft;
}

TEST(AssumptionsTest, OfCollectivesAreWhatMovesTheAnswerOfSoManyWorkers) {
  EXPECT_THAT(Told(Gradients(), {.workers = 1}), IsEmpty());
  EXPECT_THAT(Told(Gradients(), {.workers = 4}),
              ElementsAre("all_reduce.algorithm=ring", "all_reduce.latency_seconds=25us",
                          "all_reduce.buckets=1 MiB, then 25 MiB"));
  ProfileDraft recorded = Gradients();
  recorded.buckets = RecordedBuckets{.rule = Buckets{}};
  EXPECT_THAT(Told(recorded, {.workers = 4}),
              ElementsAre("all_reduce.algorithm=ring", "all_reduce.latency_seconds=25us"));
  AllReduceDraft nodes{.algorithm = CollectiveAlgorithm::kHierarchical,
                       .workers_per_node = 2,
                       .intra_node_bandwidth_bytes_per_second = 1e10,
                       .fusion = Unfused{}};
  EXPECT_THAT(Told(Gradients(), {.workers = 2, .communication = nodes}),
              ElementsAre("all_reduce.intra_node_latency_seconds=3.4us"));
  EXPECT_THAT(Told(Gradients(), {.workers = 4, .communication = nodes}),
              ElementsAre("all_reduce.latency_seconds=25us",
                          "all_reduce.intra_node_latency_seconds=3.4us"));
  nodes.algorithm = CollectiveAlgorithm::kTree;
  EXPECT_THAT(Told(Gradients(), {.workers = 4, .communication = nodes}),
              ElementsAre("all_reduce.latency_seconds=25us"));
  nodes.latency_seconds = 0;
  EXPECT_THAT(Told(Gradients(), {.workers = 4, .communication = nodes}), IsEmpty());
  const AllReduceDraft measured{.measured = {{.workers = 2, .size_bytes = 10, .seconds = 1e-6}}};
  EXPECT_THAT(Told(Gradients(), {.workers = 2, .communication = measured}),
              ElementsAre("all_reduce.buckets=1 MiB, then 25 MiB"));
  EXPECT_THAT(Told(Gradients(), {.workers = 4, .communication = measured}),
              ElementsAre("all_reduce.measured=times measured of 2 workers",
                          "all_reduce.buckets=1 MiB, then 25 MiB"));
}

TEST(AssumptionsTest, TheNearestMeasuredNumberOfWorkersIsByRatio) {
  const std::vector<MeasuredCollective> points{{.workers = 2, .size_bytes = 10, .seconds = 1e-6},
                                               {.workers = 16, .size_bytes = 10, .seconds = 1e-6}};
  for (const auto& [workers, nearest] : {std::pair(1, 2), {5, 2}, {6, 16}, {4096, 16}})
    EXPECT_EQ(NearestMeasured(points, Collective::kAllReduce, workers), nearest) << workers;
  EXPECT_EQ(NearestMeasured(points, Collective::kAllGather, 2), 0);
}

// Gradients of nobody's framework; those that were made of layers are fused as PyTorch's own.
TEST(AssumptionsTest, GradientsThatGoOneByOneAreTold) {
  ProfileDraft unknown = Gradients();
  unknown.framework = "by hand";
  const std::string told = "all_reduce.unfused=gradients one by one";
  EXPECT_THAT(Told(unknown, {.workers = 4}), Contains(told));
  EXPECT_THAT(Told(unknown, {.workers = 4, .communication = AllReduceDraft{.fusion = Unfused{}}}),
              Not(Contains(told)));
  ProfileDraft one = unknown;
  one.operations.pop_back();
  one.steps = {{.start_ns = {0, 10}, .end_ns = {10, 10}}};
  EXPECT_THAT(Told(one, {.workers = 4}), Not(Contains(told)));
  for (const std::string_view made : {kZooFramework, kLayersFramework}) {
    unknown.framework = std::string(made);
    EXPECT_THAT(Told(unknown, {.workers = 4}), Contains("all_reduce.buckets=1 MiB, then 25 MiB"));
  }
}

TEST(AssumptionsTest, AreNotTakenForDifferencesOfScenarios) {
  const Scenario assumed = Resolved(Gradients(), {.workers = 4});
  const Scenario asked = Resolved(
      Gradients(), {.workers = 4,
                    .communication = AllReduceDraft{.algorithm = CollectiveAlgorithm::kRing,
                                                    .latency_seconds = 25e-6,
                                                    .fusion = Buckets{}}});
  EXPECT_EQ(assumed, asked);
  EXPECT_THAT(AssumptionsOf(asked), IsEmpty());
}

TEST(KindTest, IsChangedByANumberOfServersOrByCollectivesAloneAndThenTold) {
  const std::vector<std::string> to_servers =
      Told(Gradients(), {.workers = 1, .communication = ParameterServersDraft{.servers = 2}});
  ASSERT_THAT(to_servers, Not(IsEmpty()));
  EXPECT_EQ(to_servers.front(), "parameter_servers.servers=2 servers");
  const std::vector<std::string> to_collectives =
      Told(TwoTensors(2, 1), {.workers = 1, .communication = AllReduceDraft{}});
  EXPECT_THAT(to_collectives, ElementsAre("all_reduce=collectives"));
  // Of the recorded kind nothing changes.
  EXPECT_THAT(Told(Gradients(), {.workers = 1, .communication = AllReduceDraft{}}), IsEmpty());
}

std::vector<Fault> FaultsOf(const ProfileDraft& profile, const ScenarioDraft& asked) {
  return DetailsOf(ResolveScenario(Profile::Create(profile).value(), asked).status()).faults;
}

TEST(KindTest, OfServersThatComputeIsToldToLeaveThatOut) {
  ProfileDraft draft = TwoTensors(1, 2);
  const auto told = [&] {
    const Profile profile = Profile::Create(draft).value();
    return AssumptionsOf(
               *ResolveScenario(profile, {.workers = 2, .communication = AllReduceDraft{}}))
        .front()
        .message;
  };
  EXPECT_EQ(
      told(),
      "The profile was recorded with parameter servers, and is asked about with collectives.");
  draft.operations.push_back({.name = "update a",
                              .resource = Resource::kParameterServer,
                              .waiting_for = {3},
                              .parameter = "a"});
  draft.steps[0].start_ns.push_back(10'000'000);
  draft.steps[0].end_ns.push_back(12'000'000);
  EXPECT_EQ(told(),
            "The profile was recorded with parameter servers, and is asked about with "
            "collectives: what its servers computed takes no time.");
}

TEST(KindTest, IsRefusedWhereNothingAsksForItAtEveryFieldThatWasSet) {
  const ParameterServersDraft synchronous{.synchronization = Synchronization::kSynchronous};
  std::vector<Fault> faults = FaultsOf(Gradients(), {.communication = synchronous});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].field, "parameter_servers");
  EXPECT_THAT(faults[0].description, HasSubstr("parameter_servers.servers"));
  faults = FaultsOf(
      Gradients(),
      {.communication = synchronous,
       .set_fields = {{"parameter_servers.synchronization", "parameter_servers.transfer_order"}}});
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].field, "parameter_servers.synchronization");
  EXPECT_EQ(faults[1].field, "parameter_servers.transfer_order");
}

TEST(KindTest, IsTheRecordedOneAloneWhereTheCallerSaysSo) {
  const ParameterServersDraft servers{.servers = 2};
  EXPECT_THAT(FaultsOf(Gradients(), {.communication = servers}), IsEmpty());
  std::vector<Fault> faults =
      FaultsOf(Gradients(), {.communication = servers, .recorded_kind_only = true});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].field, "parameter_servers");
  faults = FaultsOf(TwoTensors(2, 1), {.communication = AllReduceDraft{.latency_seconds = 1e-5},
                                       .recorded_kind_only = true,
                                       .set_fields = {{"all_reduce.latency_seconds"}}});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].field, "all_reduce.latency_seconds");
  EXPECT_THAT(faults[0].description, HasSubstr("--all-reduce"));
  EXPECT_THAT(FaultsOf(TwoTensors(2, 1), {.communication = servers, .recorded_kind_only = true}),
              IsEmpty());
  EXPECT_THAT(FaultsOf(Gradients(), {.communication = AllReduceDraft{.latency_seconds = 1e-5},
                                     .recorded_kind_only = true}),
              IsEmpty());
  EXPECT_THAT(FaultsOf(Gradients(), {.recorded_kind_only = true}), IsEmpty());
}

}  // namespace
}  // namespace stepcast::assumptions_test
