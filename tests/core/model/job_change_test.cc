#include "core/model/job_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/model/scenario.h"
#include "core/model/step_model.h"

namespace stepcast::job_change_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr int64_t kMs = 1'000'000;

// forward, backward, an all-reduce of what backward gives, and an optimizer that waits for it; a
// step for each pair of milliseconds of forward and backward.
ProfileDraft Training(int32_t batch, const std::vector<std::pair<int64_t, int64_t>>& steps) {
  ProfileDraft draft{.batch_size = batch, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {
      {.name = "forward", .resource = Resource::kWorker, .kept_bytes = 1000},
      {.name = "backward", .resource = Resource::kWorker, .waiting_for = {0}},
      {.name = "gradient",
       .resource = Resource::kCollective,
       .size_bytes = 4001,
       .waiting_for = {1},
       .collective = Collective::kAllReduce},
      {.name = "optimizer", .resource = Resource::kWorker, .waiting_for = {2}},
  };
  for (const auto& [forward, backward] : steps) {
    const int64_t end = (forward + backward) * kMs;
    draft.steps.push_back(
        {.start_ns = {0, forward * kMs, end, end}, .end_ns = {forward * kMs, end, end, end + kMs}});
  }
  return draft;
}

Profile Of(ProfileDraft draft) { return Profile::Create(std::move(draft)).value(); }

Profile Changed(const Profile& profile, const JobChange& change, const Profile* second = nullptr) {
  absl::StatusOr<Profile> changed = ChangedProfile(profile, change, second);
  EXPECT_TRUE(changed.ok()) << changed.status();
  return *std::move(changed);
}

int64_t NsOf(const Profile& profile, size_t operation, size_t step = 0) {
  const RecordedStep& times = profile.steps()[step];
  return times.end_ns[operation] - times.start_ns[operation];
}

TEST(JobChangeTest, ABatchTwiceAsLargeTakesTwiceTheTimeAndKeepsTwiceTheBytes) {
  const Profile profile = Of(Training(32, {{10, 20}, {12, 22}}));
  const Profile changed = Changed(profile, {.batch_size = 64});
  EXPECT_EQ(changed.batch_size(), 64);
  EXPECT_THAT(changed.steps()[1].start_ns, ElementsAre(0, 24 * kMs, 68 * kMs, 68 * kMs));
  EXPECT_THAT(changed.steps()[1].end_ns, ElementsAre(24 * kMs, 68 * kMs, 68 * kMs, 69 * kMs));
  EXPECT_EQ(changed.operations()[0].kept_bytes, 2000);
  EXPECT_EQ(changed.operations()[2].size_bytes, 4001);
}

// Sums of gradients are what an optimizer waits for; where its pass is known that tells it alone.
TEST(JobChangeTest, AnOptimizerTakesAsLongWithAnyBatch) {
  ProfileDraft plain = Training(32, {{10, 20}});
  plain.operations.erase(plain.operations.begin() + 2);
  plain.operations[2].waiting_for = {1};
  plain.operations[2].pass = Pass::kOptimizer;
  for (auto* times : {&plain.steps[0].start_ns, &plain.steps[0].end_ns})
    times->erase(times->begin() + 2);
  const Profile changed = Changed(Of(std::move(plain)), {.batch_size = 64});
  EXPECT_EQ(NsOf(changed, 1), 40 * kMs);
  EXPECT_EQ(NsOf(changed, 2), kMs);
  ProfileDraft gathered = Training(32, {{10, 20}});
  gathered.operations[2].collective = Collective::kAllGather;
  EXPECT_EQ(NsOf(Changed(Of(std::move(gathered)), {.batch_size = 64}), 3), 2 * kMs);
}

TEST(JobChangeTest, TheFixedPartDoesNotGrow) {
  const Profile profile = Of(Training(32, {{10, 20}}));
  const Profile changed = Changed(profile, {.batch_size = 96, .fixed_fraction = 0.25});
  EXPECT_EQ(NsOf(changed, 1), 50 * kMs);  // 0.25 + 0.75 x 3
  EXPECT_THAT(changed.change()->told, IsEmpty());
}

TEST(JobChangeTest, AFixedPartThatNothingShowsIsToldInTheAnswersAssumptions) {
  const Profile changed = Changed(Of(Training(32, {{10, 20}})), {.batch_size = 64});
  const std::vector<Assumption> told =
      AssumptionsOf(ResolveScenario(changed, {.workers = 1}).value());
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].field, "change.fixed_fraction");
  EXPECT_THAT(told[0].message,
              HasSubstr("2 times as long with 64 examples as with the recorded 32"));
  EXPECT_THAT(Changed(Of(Training(32, {{10, 20}})), {.batch_size = 32}).change()->told, IsEmpty());
}

// Forward: 2 ms + 0.25 ms an example; backward: 0.625 ms an example.
TEST(JobChangeTest, TwoRecordingsTellWhatGrowsOfEachOperation) {
  const Profile profile = Of(Training(32, {{10, 20}}));
  ProfileDraft other = Training(64, {{18, 40}, {18, 40}});
  other.operations[3].name = "another optimizer";
  const Profile second = Of(std::move(other));
  const Profile changed = Changed(profile, {.batch_size = 128}, &second);
  EXPECT_EQ(NsOf(changed, 0), 34 * kMs);
  EXPECT_EQ(NsOf(changed, 1), 80 * kMs);
  EXPECT_EQ(NsOf(changed, 3), 3'800'000);  // (34 + 80) / (10 + 20) of 1 ms
  EXPECT_THAT(changed.change()->told[0].message, HasSubstr("drawn from recordings with 32 and 64"));
  // Between the two, and below both.
  EXPECT_EQ(NsOf(Changed(profile, {.batch_size = 48}, &second), 0), 14 * kMs);
  EXPECT_EQ(NsOf(Changed(profile, {.batch_size = 16}, &second), 0), 6 * kMs);
}

TEST(JobChangeTest, MicroBatchesAreComputedBeforeAllThatIsSentOnce) {
  const Profile changed = Changed(Of(Training(32, {{10, 20}})), {.accumulate = 4});
  EXPECT_EQ(changed.batch_size(), 128);
  ASSERT_THAT(changed.operations(), SizeIs(5));
  EXPECT_EQ(NsOf(changed, 4), 90 * kMs);
  EXPECT_THAT(changed.operations()[0].waiting_for, ElementsAre(4));
  EXPECT_THAT(changed.steps()[0].start_ns,
              ElementsAre(90 * kMs, 100 * kMs, 120 * kMs, 120 * kMs, 0));
  EXPECT_EQ(NsOf(changed, 3), kMs);  // the optimizer runs once
}

TEST(JobChangeTest, ABatchOfMicroBatchesCountsEachOfThem) {
  const Profile changed =
      Changed(Of(Training(32, {{10, 20}})), {.batch_size = 16, .accumulate = 2});
  EXPECT_EQ(changed.batch_size(), 32);
  EXPECT_EQ(NsOf(changed, 4), 15 * kMs);
}

TEST(JobChangeTest, AFasterDeviceDoesNotLoadDataFaster) {
  ProfileDraft draft{.batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "load", .resource = Resource::kWorker, .pass = Pass::kDataLoading},
                      {.name = "compute", .resource = Resource::kWorker, .waiting_for = {0}}};
  draft.steps = {{.start_ns = {0, 100}, .end_ns = {100, 300}}};
  const Profile changed = Changed(Of(std::move(draft)), {.compute_speed_factor = 2});
  EXPECT_THAT(changed.steps()[0].start_ns, ElementsAre(0, 100));
  EXPECT_THAT(changed.steps()[0].end_ns, ElementsAre(100, 200));
}

TEST(JobChangeTest, AFasterDeviceTakesLessOfComputationAlone) {
  ProfileDraft draft{.batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {
      {.name = "w", .resource = Resource::kDownlink, .size_bytes = 10},
      {.name = "compute", .resource = Resource::kWorker, .waiting_for = {0}},
      {.name = "g", .resource = Resource::kUplink, .size_bytes = 1001, .waiting_for = {1}},
      {.name = "apply", .resource = Resource::kParameterServer, .waiting_for = {2}},
  };
  draft.steps = {{.start_ns = {0, 10, 110, 210}, .end_ns = {10, 110, 210, 260}}};
  const Profile changed =
      Changed(Of(std::move(draft)), {.compute_speed_factor = 2, .gradient_bytes_factor = 0.5});
  EXPECT_THAT(changed.steps()[0].start_ns, ElementsAre(0, 10, 60, 160));
  EXPECT_THAT(changed.steps()[0].end_ns, ElementsAre(10, 60, 160, 210));
  EXPECT_EQ(changed.operations()[0].size_bytes, 10);
  EXPECT_EQ(changed.operations()[2].size_bytes, 501);
}

TEST(JobChangeTest, RecordedBucketsHoldWhatTheirGradientsAddUpToNow) {
  ProfileDraft draft = Training(32, {{10, 20}});
  draft.buckets = RecordedBuckets{.sizes_bytes = {4001}, .rule = std::nullopt};
  const Profile changed = Changed(Of(std::move(draft)), {.gradient_bytes_factor = 0.5});
  EXPECT_EQ(changed.operations()[2].size_bytes, 2001);
  EXPECT_THAT(changed.content().buckets->sizes_bytes, ElementsAre(2001));
}

std::vector<std::string> FieldsOf(const absl::StatusOr<Profile>& refused) {
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << refused.status();
  EXPECT_EQ(DetailsOf(refused.status()).reason, "JOB_CHANGE_INVALID");
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(refused.status()).faults) fields.push_back(fault.field);
  return fields;
}

TEST(JobChangeTest, EveryFaultIsToldByItsField) {
  const Profile profile = Of(Training(32, {{10, 20}}));
  EXPECT_THAT(FieldsOf(ChangedProfile(profile,
                                      {.batch_size = 0,
                                       .fixed_fraction = 1.5,
                                       .accumulate = 1025,
                                       .compute_speed_factor = 0,
                                       .gradient_bytes_factor = 2},
                                      nullptr)),
              UnorderedElementsAre("batch_size", "fixed_fraction", "accumulate",
                                   "compute_speed_factor", "gradient_bytes_factor"));
  EXPECT_THAT(FieldsOf(ChangedProfile(profile, {.fixed_fraction = 0.5}, &profile)),
              ElementsAre("fixed_fraction", "fixed_fraction", "second_profile", "second_profile"));
  EXPECT_THAT(FieldsOf(ChangedProfile(profile, {.global_batch_size = 64}, nullptr)),
              ElementsAre("global_batch_size"));
  ProfileDraft stranger = Training(64, {{10, 20}});
  for (Operation& operation : stranger.operations) operation.name += " of another";
  const Profile other = Of(std::move(stranger));
  EXPECT_THAT(FieldsOf(ChangedProfile(profile, {.batch_size = 64}, &other)),
              ElementsAre("second_profile"));
}

ProfileDraft OfServers() {
  ProfileDraft servers = Training(32, {{10, 20}});
  servers.operations[2] = {.name = "upload",
                           .resource = Resource::kUplink,
                           .size_bytes = 4001,
                           .waiting_for = {1},
                           .parameter = "w"};
  servers.operations[3].resource = Resource::kParameterServer;
  return servers;
}

// The fields that a scenario with accumulated gradients is refused by.
std::vector<std::string> ScenarioFields(const Profile& recorded, const ScenarioDraft& draft) {
  const Profile changed = Changed(recorded, {.accumulate = 2});
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(ResolveScenario(changed, draft).status()).faults)
    fields.push_back(fault.field);
  return fields;
}

TEST(JobChangeTest, TheKindThatIsAskedForSaysWhetherGradientsAddUp) {
  ProfileDraft sharded = Training(32, {{10, 20}});
  sharded.operations[2].collective = Collective::kReduceScatter;
  EXPECT_THAT(FieldsOf(ChangedProfile(Of(std::move(sharded)), {.accumulate = 2}, nullptr)),
              ElementsAre("accumulate"));
  const Profile sums = Of(Training(32, {{10, 20}}));
  const Profile servers = Of(OfServers());
  EXPECT_THAT(ScenarioFields(servers, {}), ElementsAre("change.accumulate"));
  EXPECT_THAT(ScenarioFields(servers, {.communication = AllReduceDraft{}}), IsEmpty());
  EXPECT_THAT(ScenarioFields(sums, {.communication = ParameterServersDraft{.servers = 1}}),
              Contains("change.accumulate"));
  for (const auto& [sharding, refused] :
       {std::pair(Sharding::kNone, false), std::pair(Sharding::kOptimizer, false),
        std::pair(Sharding::kGradients, true), std::pair(Sharding::kFull, true)}) {
    const ScenarioDraft draft{.communication = AllReduceDraft{.sharding = sharding}};
    EXPECT_EQ(ScenarioFields(sums, draft).size(), refused ? 1 : 0) << static_cast<int>(sharding);
  }
}

// Times of servers and links of a recorded step are in no micro-batch of its computation.
TEST(JobChangeTest, MicroBatchesOfARecordingWithServersAreItsComputation) {
  const Profile changed = Changed(Of(OfServers()), {.accumulate = 3});
  ASSERT_THAT(changed.operations(), SizeIs(5));
  EXPECT_EQ(NsOf(changed, 4), 60 * kMs);
}

TEST(JobChangeTest, MicroBatchesHaveThePassesOfTheirOperations) {
  ProfileDraft draft = Training(32, {{10, 20}});
  draft.operations[0].pass = Pass::kForward;
  draft.operations[1].pass = Pass::kBackwardWeight;
  draft.operations[3].pass = Pass::kOptimizer;
  const Profile changed = Changed(Of(std::move(draft)), {.accumulate = 4});
  ASSERT_THAT(changed.operations(), SizeIs(6));
  EXPECT_EQ(changed.operations()[4].pass, Pass::kForward);
  EXPECT_EQ(NsOf(changed, 4), 30 * kMs);
  EXPECT_EQ(changed.operations()[5].pass, Pass::kBackward);
  EXPECT_EQ(NsOf(changed, 5), 60 * kMs);
  EXPECT_THAT(changed.operations()[5].waiting_for, ElementsAre(4));
  EXPECT_THAT(changed.operations()[0].waiting_for, ElementsAre(5));
  EXPECT_EQ(changed.change()->recorded_operations, 4);
}

// Data is loaded for 10 of 30 ms, and the device idle in 40 %: it computes for 18 of 20 ms.
TEST(JobChangeTest, WaitingForDataCountsOnceAmongWhatAFasterDeviceDoesNotChange) {
  ProfileDraft draft = Training(32, {{10, 20}});
  draft.operations[0].pass = Pass::kDataLoading;
  draft.operations.erase(draft.operations.begin() + 2, draft.operations.end());
  for (auto* times : {&draft.steps[0].start_ns, &draft.steps[0].end_ns}) times->resize(2);
  draft.device_idle_fraction = 0.4;
  const Profile profile = Of(draft);
  const Profile changed = Changed(profile, {.compute_speed_factor = 2});
  EXPECT_EQ(NsOf(changed, 0), 10 * kMs);
  EXPECT_EQ(NsOf(changed, 1), 11 * kMs);
  EXPECT_NEAR(*changed.content().device_idle_fraction, 12.0 / 21, 1e-9);
  EXPECT_NEAR(SpeedWithDevice(profile, 2), 30.0 / 21, 1e-9);
  // A larger batch has more data, and waits for its host as long.
  const Profile larger = Changed(profile, {.batch_size = 64});
  EXPECT_EQ(NsOf(larger, 0), 20 * kMs);
  EXPECT_EQ(NsOf(larger, 1), 38 * kMs);
  EXPECT_NEAR(*larger.content().device_idle_fraction, 1 - 36.0 / 58, 1e-9);
  const Profile both = Changed(profile, {.batch_size = 64, .compute_speed_factor = 2});
  EXPECT_EQ(NsOf(both, 0), 20 * kMs);
  EXPECT_EQ(NsOf(both, 1), 20 * kMs);
  EXPECT_NEAR(*both.content().device_idle_fraction, 1 - 18.0 / 40, 1e-9);
}

// A host that works for 36 ms beside a device of 30 ms holds a lone worker up, whatever its device
// and its batch are.
TEST(JobChangeTest, WhatTheHostDoesAloneStaysAsLong) {
  ProfileDraft draft = Training(32, {{10, 20}});
  draft.operations.push_back(
      {.name = std::string(kHostAlone), .resource = Resource::kWorker, .stream = 1});
  draft.steps[0].start_ns.push_back(0);
  draft.steps[0].end_ns.push_back(36 * kMs);
  draft.device_idle_fraction = 1 - 31.0 / 36;
  const Profile profile = Of(draft);
  const Profile faster = Changed(profile, {.compute_speed_factor = 2});
  EXPECT_EQ(NsOf(faster, 4), 36 * kMs);
  EXPECT_EQ(NsOf(faster, 1), 10 * kMs);
  EXPECT_EQ(SpeedWithDevice(profile, 2), 1);
  EXPECT_NEAR(SpeedWithDevice(profile, 0.5), 36.0 / 62, 1e-9);
  const Profile larger = Changed(profile, {.batch_size = 64});
  EXPECT_EQ(NsOf(larger, 4), 36 * kMs);
  EXPECT_EQ(NsOf(larger, 1), 40 * kMs);
  const Profile accumulated = Changed(profile, {.accumulate = 3});
  EXPECT_EQ(NsOf(accumulated, 4), 108 * kMs);
  EXPECT_THAT(accumulated.operations()[4].waiting_for, IsEmpty());
  EXPECT_EQ(NsOf(accumulated, 5), 60 * kMs);
  // The host works for 36 ms of 61 in which the device does, and no more holds it up.
  EXPECT_EQ(*larger.content().device_idle_fraction, 0);
  EXPECT_NEAR(*faster.content().device_idle_fraction, 1 - 15.5 / 36, 1e-9);
}

// DistributedDataParallel broadcasts buffers once a step; what is gathered is of a sharded job.
TEST(JobChangeTest, BroadcastsOfBuffersAreOnceAStep) {
  ProfileDraft draft = Training(32, {{10, 20}});
  draft.operations.push_back({.name = "buffers",
                              .resource = Resource::kCollective,
                              .size_bytes = 100,
                              .collective = Collective::kBroadcast});
  draft.steps[0].start_ns.push_back(0);
  draft.steps[0].end_ns.push_back(0);
  const Profile changed = Changed(Of(draft), {.accumulate = 2});
  EXPECT_EQ(changed.batch_size(), 64);
  draft.operations.back().collective = Collective::kAllGather;
  const absl::StatusOr<Profile> refused = ChangedProfile(Of(draft), {.accumulate = 2}, nullptr);
  EXPECT_THAT(refused.status().message(), HasSubstr("buffers"));
}

// Hooks that compress do so to gradients: parameters are gathered as large as they are.
TEST(JobChangeTest, SmallerGradientsLeaveWhatIsGathered) {
  ProfileDraft draft = Training(32, {{10, 20}});
  draft.operations.push_back({.name = "gather",
                              .resource = Resource::kCollective,
                              .size_bytes = 4000,
                              .collective = Collective::kAllGather});
  draft.steps[0].start_ns.push_back(0);
  draft.steps[0].end_ns.push_back(0);
  const Profile changed = Changed(Of(std::move(draft)), {.gradient_bytes_factor = 0.5});
  EXPECT_EQ(changed.operations()[2].size_bytes, 2001);
  EXPECT_EQ(changed.operations().back().size_bytes, 4000);
  EXPECT_EQ(ParameterBytesOf(changed, 2000), 4000);
}

// Devices wait for hosts in 40 % of the step: 0.4 + 0.6 / 2.
TEST(JobChangeTest, AFasterDeviceDoesNotMakeItsHostFaster) {
  ProfileDraft draft = Training(32, {{10, 20}});
  draft.device_idle_fraction = 0.4;
  const Profile changed = Changed(Of(std::move(draft)), {.compute_speed_factor = 2});
  EXPECT_EQ(NsOf(changed, 0), 7 * kMs);
  EXPECT_EQ(NsOf(changed, 1), 14 * kMs);
  EXPECT_NEAR(*changed.content().device_idle_fraction, 0.4 / 0.7, 1e-12);
  ASSERT_THAT(changed.change()->told, SizeIs(1));
  EXPECT_EQ(changed.change()->told[0].field, "change.compute_speed_factor");
}

// 0.4 + 0.6 x 2, unless the share that does not grow is given.
TEST(JobChangeTest, DevicesWaitForTheirHostsAsLongWithAnyBatch) {
  ProfileDraft draft = Training(32, {{10, 20}});
  draft.device_idle_fraction = 0.4;
  const Profile profile = Of(std::move(draft));
  const Profile changed = Changed(profile, {.batch_size = 64});
  EXPECT_EQ(NsOf(changed, 0), 16 * kMs);
  EXPECT_EQ(NsOf(changed, 1), 32 * kMs);
  EXPECT_NEAR(*changed.content().device_idle_fraction, 0.4 / 1.6, 1e-12);
  ASSERT_THAT(changed.change()->told, SizeIs(1));
  EXPECT_EQ(changed.change()->told[0].field, "change.fixed_fraction");
  EXPECT_EQ(changed.change()->told[0].value, "40%, waits for hosts");
  EXPECT_THAT(changed.change()->told[0].message, HasSubstr("1.6 times as long with 64 examples"));
  const Profile given = Changed(profile, {.batch_size = 64, .fixed_fraction = 0.5});
  EXPECT_EQ(NsOf(given, 0), 15 * kMs);
  EXPECT_EQ(*given.content().device_idle_fraction, 0.4);
}

TEST(JobChangeTest, ARecordingOfAnotherJobIsNoSecondOne) {
  const Profile profile = Of(Training(32, {{10, 20}}));
  ProfileDraft stranger = Training(64, {{10, 20}});
  stranger.model = "stranger";
  stranger.operations[1].name = "attention";  // forward and the optimizer are a third of both
  const Profile other = Of(std::move(stranger));
  const absl::StatusOr<Profile> refused = ChangedProfile(profile, {.batch_size = 64}, &other);
  ASSERT_THAT(FieldsOf(refused), ElementsAre("second_profile"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("stranger"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("attention"));
}

// The scatter of the means that two short recordings draw, over many pairs of them, is the error
// that is told of one pair; far beyond both it is many times that of a recording alone.
TEST(JobChangeTest, TheErrorOfAMeanDrawnFromTwoRecordingsIsTheirScatter) {
  constexpr int kPairs = 800;
  constexpr double kDeviation = 0.08;
  const auto recorded = [](Random& random, int32_t batch) {
    std::vector<std::pair<int64_t, int64_t>> steps;
    for (int step = 0; step < 4; ++step) {
      const double ms = 1e5 * (1 + batch / 32.0) * std::exp(kDeviation * random.Normal());
      steps.emplace_back(std::llround(ms / 4), std::llround(ms * 3 / 4));
    }
    return Of(Training(batch, steps));
  };
  std::map<int32_t, double> errors;
  for (const int32_t batch : {16, 32, 48, 64, 128, 512}) {
    double told = 0;
    double squares = 0;
    for (uint64_t seed = 0; seed < kPairs; ++seed) {
      Random random({seed});
      const Profile first = recorded(random, 32);
      const Profile second = recorded(random, 64);
      const Profile changed = Changed(first, {.batch_size = batch}, &second);
      const StepModel model = StepModelOf(changed, StepPart::kWorkers);
      told += std::pow(model.MeanError(model.steps), 2) / kPairs;
      double mean = 0;
      for (size_t step = 0; step < 4; ++step)
        mean += static_cast<double>(NsOf(changed, 0, step) + NsOf(changed, 1, step)) / 4;
      squares += std::pow(std::log(mean / (1e5 * kMs * (1 + batch / 32.0))), 2) / kPairs;
    }
    errors[batch] = std::sqrt(told);
    // Four steps and one of the prior's, which varies less.
    const double pooled = std::sqrt((3 + std::pow(StepModel::kPriorDeviation / kDeviation, 2)) / 4);
    EXPECT_NEAR(std::sqrt(told / squares), pooled, 0.06) << batch;
  }
  EXPECT_LT(errors[48], errors[32]) << "between both their errors cancel";
  EXPECT_GT(errors[512], 2.5 * errors[64]);
}

TEST(JobChangeTest, ALargerBatchThatIsFasterIsTold) {
  const Profile second = Of(Training(64, {{8, 16}}));
  const Profile changed = Changed(Of(Training(32, {{10, 20}})), {.batch_size = 48}, &second);
  EXPECT_THAT(changed.change()->told[0].message, HasSubstr("The one with 64 is the faster"));
}

TEST(JobChangeTest, StepsWithoutAnEndAreOneFault) {
  const Profile profile = Of(Training(32, {{10, 20}}));
  EXPECT_THAT(
      FieldsOf(ChangedProfile(profile, {.batch_size = INT32_MAX, .accumulate = 1024}, nullptr)),
      ElementsAre("accumulate"));
  EXPECT_THAT(FieldsOf(ChangedProfile(
                  profile, {.batch_size = INT32_MAX, .compute_speed_factor = 1e-6}, nullptr)),
              ElementsAre("batch_size"));
  // No integer is too small for these, but profiles are shorter.
  const int64_t most = ProfileLimits{}.max_step_ns;
  const auto batch = static_cast<int32_t>(40 * (most / (30 * kMs)));
  EXPECT_THAT(FieldsOf(ChangedProfile(profile, {.batch_size = batch}, nullptr)),
              ElementsAre("batch_size"));
}

}  // namespace
}  // namespace stepcast::job_change_test
