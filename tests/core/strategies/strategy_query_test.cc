#include "core/strategies/strategy_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/zoo/model_zoo.h"
#include "tests/core/strategies/chain_job.h"

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
                  "memory.kept_outputs[1].bytes", "memory.parameter_copies",
                  "memory.half_batch_share", "memory.budget_bytes"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("-1"));
}

TEST(ResolveStrategiesTest, HugeProfilesAreRefusedByTheirLimit) {
  const Profile profile = ProfileOf(kJob, std::vector<double>(10, 1));
  const absl::Status status =
      ResolveStrategies(profile, {}, {.max_operations = 4, .max_recorded_times = 49}).status();
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
