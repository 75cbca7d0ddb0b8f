#include "core/advise/strategy_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/model/job_change.h"
#include "core/zoo/model_zoo.h"
#include "tests/core/advise/chain_job.h"

namespace stepcast::strategy_query_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ChainJob kJob{.lengths_ns = {4000, 6000}, .gradient_bytes = {{100}, {100}}};

std::vector<std::string> FieldsOf(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
  return fields;
}

TEST(ResolveStrategiesTest, DefaultsAreEightWorkersNoCostsAndAllShortcuts) {
  const absl::StatusOr<StrategyQuery> query = ResolveStrategies(ProfileOf(kJob), {});
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->scenario.workers, 8);
  EXPECT_FALSE(query->fused_share.has_value());
  EXPECT_EQ(query->max_partitions, 16);
  EXPECT_EQ(query->shortcuts, SearchShortcuts{});
  EXPECT_FALSE(query->memory.has_value());
  EXPECT_THAT(query->baselines->methods,
              ElementsAre(TuningMethod::kAsRecorded, TuningMethod::kDdpBuckets,
                          TuningMethod::kHorovod, TuningMethod::kMgWfbp));
  EXPECT_THAT(query->baselines->bucket_caps_bytes, ElementsAre(kBucketCapBytes));
}

TEST(ResolveStrategiesTest, EveryFaultIsNamed) {
  const Profile profile = ProfileOf(kJob);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const absl::Status status =
      ResolveStrategies(
          profile,
          {.scenario = RingOf(-1, 0),
           .fused_costs = {{.operations = {"compute/0", "compute/1"}, .seconds = -1e-6},
                           {.operations = {"compute/0", "compute/9"}, .seconds = 1e-6},
                           {.operations = {"compute/0"}, .seconds = 1e-6},
                           {.operations = {}, .seconds = nan},
                           {.operations = {"compute/0", "gradient/0/0"}, .seconds = 1e-6},
                           {.operations = {"compute/1", "compute/1"}, .seconds = 1e-6},
                           {.operations = {"compute/1", "compute/0"}, .seconds = 1e-6}},
           .fused_share = 1.5,
           .max_partitions = 17,
           .memory =
               StrategyDraft::Memory{.budget_bytes = -1,
                                     .kept_outputs = {{.operation = "nobody", .bytes = 1},
                                                      {.operation = "compute/0", .bytes = -1}},
                                     .parameter_copies = 0.5,
                                     .half_batch_share = 0}})
          .status();
  EXPECT_EQ(DetailsOf(status).reason, "REQUEST_INVALID");
  EXPECT_THAT(
      FieldsOf(status),
      ElementsAre("scenario.workers", "fused_costs[0].seconds", "fused_costs[1].operations[1]",
                  "fused_costs[2].operations", "fused_costs[3].seconds",
                  "fused_costs[3].operations", "fused_costs[4].operations[1]",
                  "fused_costs[5].operations", "fused_costs[6].operations", "fused_share",
                  "max_partitions", "memory.kept_outputs[0].operation",
                  "memory.kept_outputs[1].bytes", "memory.parameter_copies", "memory.budget_bytes",
                  "memory.half_batch_share"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("-1"));
}

TEST(ResolveStrategiesTest, HugeProfilesAreRefusedByTheirLimit) {
  const Profile profile = ProfileOf(kJob, std::vector<double>(10, 1));
  const absl::Status status =
      ResolveStrategies(profile, {}, nullptr, {.max_operations = 4, .max_recorded_times = 49})
          .status();
  EXPECT_THAT(FieldsOf(status), ElementsAre("profile", "profile"));
  EXPECT_THAT(DetailsOf(status).faults[0].description, HasSubstr("max_operations = 4"));
  EXPECT_THAT(DetailsOf(status).faults[1].description, HasSubstr("50 is above the limit"));
}

TEST(ResolveStrategiesTest, ABudgetNeedsToKnowWhatIsKept) {
  const absl::Status status =
      ResolveStrategies(ProfileOf(kJob), {.memory = StrategyDraft::Memory{.budget_bytes = 5000}})
          .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(DetailsOf(status).reason, "MEMORY_UNKNOWN");
  EXPECT_THAT(std::string(status.message()), HasSubstr("5000"));
}

TEST(ResolveStrategiesTest, HalfABatchTakesWhatIsKnownOfIt) {
  ProfileDraft draft = ProfileOf(kJob).content();
  draft.batch_size = 64;
  const Profile profile = Profile::Create(draft).value();
  const auto of_batch = [&](int32_t batch, std::vector<int64_t> lengths) {
    ProfileDraft other =
        ProfileOf({.lengths_ns = std::move(lengths), .gradient_bytes = {{100}, {100}}}).content();
    other.batch_size = batch;
    return Profile::Create(other).value();
  };
  StrategyDraft asked{.memory = StrategyDraft::Memory{}};
  const StrategyQuery usual = ResolveStrategies(profile, {}).value();
  EXPECT_THAT(usual.half_batch_shares, ::testing::Each(kHalfBatchShare));
  EXPECT_THAT(usual.half_batch_told, HasSubstr("0.57 of the time of the whole one, each time, as "
                                               "dPRO's Table 4"));
  asked.memory->half_batch_share = 0.75;
  const StrategyQuery said = ResolveStrategies(profile, asked).value();
  EXPECT_THAT(said.half_batch_shares, ::testing::Each(0.75));
  EXPECT_EQ(said.half_batch_told,
            "half a batch takes 0.75 of the time of the whole one, each time");
  // A quarter of the batch takes half the time, and 5/6: half takes 2/3, and 8/9.
  asked.memory->half_batch_share.reset();
  const Profile second = of_batch(16, {2000, 5000});
  const StrategyQuery told = ResolveStrategies(profile, asked, &second).value();
  EXPECT_DOUBLE_EQ(told.half_batch_shares[0], 1 - 0.5 / 0.75 * 0.5);
  EXPECT_DOUBLE_EQ(told.half_batch_shares[2], 1 - 0.5 / 0.75 / 6);
  EXPECT_THAT(told.half_batch_told, HasSubstr("with 32 examples is drawn from recordings with 64 "
                                              "and 16"));
  // Both, the same batch, another job, a change that it knows nothing of.
  asked.memory->half_batch_share = 0.75;
  EXPECT_THAT(FieldsOf(ResolveStrategies(profile, asked, &second).status()),
              ElementsAre("memory.half_batch_share"));
  const Profile same = of_batch(64, {2000, 5000});
  EXPECT_THAT(FieldsOf(ResolveStrategies(profile, {}, &same).status()),
              ElementsAre("memory.second_profile"));
  ProfileDraft stranger = second.content();
  for (Operation& operation : stranger.operations) operation.name += " of another job";
  const Profile other = Profile::Create(stranger).value();
  EXPECT_THAT(FieldsOf(ResolveStrategies(profile, {}, &other).status()),
              ElementsAre("memory.second_profile"));
  const Profile faster = ChangedProfile(profile, {.compute_speed_factor = 2.0}, nullptr).value();
  EXPECT_THAT(FieldsOf(ResolveStrategies(faster, {}, &second).status()),
              ElementsAre("memory.second_profile"));
}

TEST(ResolveStrategiesTest, TheZoosOutputsAreKnown) {
  const Profile profile =
      BuildZooProfile("resnet18", {.batch_size = 2,
                                   .platform = {.bandwidth_bytes_per_second = 1e9},
                                   .communication = ZooCommunication::kAllReduce})
          .value();
  const absl::StatusOr<StrategyQuery> query = ResolveStrategies(profile, {});
  ASSERT_TRUE(query.ok() && query->memory.has_value());
  EXPECT_FALSE(query->memory_is_requests);
  // conv1: 112 x 112 x 64 floats, of two images.
  EXPECT_EQ(query->memory->kept_bytes[0], int64_t{112} * 112 * 64 * 4 * 2);
}

}  // namespace
}  // namespace stepcast::strategy_query_test
