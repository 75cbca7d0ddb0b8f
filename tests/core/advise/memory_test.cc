#include "core/advise/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/advise/strategy_query.h"
#include "core/base/error.h"
#include "core/base/index.h"
#include "core/zoo/model_zoo.h"

namespace stepcast::memory_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

MemoryModel ModelOf(const Profile& profile) {
  return ResolveStrategies(profile, {}).value().memory.value();
}

// Forward and backward of so many layers of 10 us, 1000 bytes of output and of parameters each.
Profile Layers(int layers) {
  ProfileDraft draft{.batch_size = 2, .platform = {.bandwidth_bytes_per_second = 1e9}};
  int32_t before = -1;
  std::vector<int32_t> all;
  const auto compute = [&](const std::string& name) {
    draft.operations.push_back({.name = name, .resource = Resource::kWorker});
    if (before >= 0) draft.operations.back().waiting_for = {before};
    before = static_cast<int32_t>(draft.operations.size()) - 1;
  };
  for (int i = 0; i < layers; ++i) compute(absl::StrCat("forward/", i));
  for (int i = layers - 1; i >= 0; --i) {
    compute(absl::StrCat("backward/", i));
    all.push_back(static_cast<int32_t>(draft.operations.size()));
    draft.operations.push_back({.name = absl::StrCat("all_reduce/", i),
                                .resource = Resource::kCollective,
                                .size_bytes = 1000,
                                .waiting_for = {before},
                                .collective = Collective::kAllReduce});
  }
  draft.operations.push_back(
      {.name = "optimizer", .resource = Resource::kWorker, .waiting_for = all});
  RecordedStep& step = draft.steps.emplace_back();
  int64_t now = 0;
  for (const Operation& operation : draft.operations) {
    step.start_ns.push_back(now);
    if (operation.resource == Resource::kWorker) now += 10'000;
    step.end_ns.push_back(now);
  }
  return Profile::Create(draft).value();
}

MemoryModel OutputsOf(const Profile& profile) {
  MemoryModel model{.kept_bytes = std::vector<int64_t>(profile.operations().size(), 0)};
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    if (profile.operations()[i].name.rfind("forward/", 0) == 0) model.kept_bytes[i] = 1000;
  }
  return model;
}

std::vector<double> Shares(const Profile& profile, double share) {
  return std::vector<double>(profile.operations().size(), share);
}

TEST(MemoryTest, ThePeakIsWhereTheBackwardPassBegins) {
  const Profile profile = Layers(4);
  const MemoryEstimate memory = EstimateMemory(profile, OutputsOf(profile));
  EXPECT_EQ(memory.parameter_bytes, 4 * 4000);
  // All four outputs, and the gradients of the last and of the one before it.
  EXPECT_EQ(memory.output_bytes, 6000);
}

// A recorded forward pass is one operation, whose layers are not known apart.
TEST(MemoryTest, WhatHasNoBackwardOperationOfItsNameKeepsWithoutGradients) {
  ProfileDraft draft = Layers(2).content();
  draft.operations[0].name = "forward";
  draft.operations[0].kept_bytes = 5000;
  const Profile profile = Profile::Create(draft).value();
  const MemoryModel model = ModelOf(profile);
  EXPECT_EQ(model.kept_bytes[0], 5000);
  EXPECT_EQ(EstimateMemory(profile, model).output_bytes, 5000);
  const absl::StatusOr<MemoryPlan> halved = Accumulate(profile, model, Shares(profile, 0.5));
  ASSERT_TRUE(halved.ok()) << halved.status();
  EXPECT_EQ(halved->memory.output_bytes, 2500);
  EXPECT_EQ(halved->profile.operations()[0].kept_bytes, 2500);
}

TEST(MemoryTest, HalvesComeOneAfterTheOtherAndOneExchangeFollows) {
  const Profile profile = Layers(2);
  const absl::StatusOr<MemoryPlan> plan =
      Accumulate(profile, OutputsOf(profile), Shares(profile, 0.6));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->memory.output_bytes,
            EstimateMemory(profile, OutputsOf(profile)).output_bytes / 2);
  const std::vector<Operation>& operations = plan->profile.operations();
  ASSERT_EQ(operations.size(), profile.operations().size() + 4);
  int collectives = 0;
  for (const Operation& operation : operations)
    collectives += operation.resource == Resource::kCollective ? 1 : 0;
  EXPECT_EQ(collectives, 2);
  EXPECT_EQ(operations[0].name, "half/forward/0");
  EXPECT_EQ(operations[4].name, "forward/0");
  EXPECT_THAT(operations[4].waiting_for, ElementsAre(3)) << "after the first half's last one";
  const RecordedStep& step = plan->profile.steps()[0];
  EXPECT_EQ(step.end_ns[3], 24'000);
  EXPECT_EQ(step.start_ns[4], 24'000);
  EXPECT_EQ(step.end_ns.back() - step.start_ns.back(), 10'000) << "the optimizer's is whole";
}

// Halves of operations that take shares of their own follow each other without gaps.
TEST(MemoryTest, EachOperationTakesItsOwnShare) {
  const Profile profile = Layers(2);
  std::vector<double> shares = Shares(profile, 0.5);
  shares[0] = 0.9;  // forward/0
  const absl::StatusOr<MemoryPlan> plan = Accumulate(profile, OutputsOf(profile), shares);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const RecordedStep& step = plan->profile.steps()[0];
  EXPECT_EQ(std::vector(step.start_ns.begin(), step.start_ns.begin() + 6),
            (std::vector<int64_t>{0, 9000, 14'000, 19'000, 24'000, 33'000}));
  EXPECT_EQ(std::vector(step.end_ns.begin(), step.end_ns.begin() + 6),
            (std::vector<int64_t>{9000, 14'000, 19'000, 24'000, 33'000, 38'000}));
  EXPECT_EQ(step.end_ns.back(), 48'000 + 10'000) << "the optimizer follows at once";
}

// A broadcast at the begin of a step, as of the statistics of batch normalisation.
TEST(MemoryTest, WhatIsBroadcastIsThereOnceForBothHalves) {
  ProfileDraft draft = Layers(2).content();
  draft.operations.push_back({.name = "broadcast",
                              .resource = Resource::kCollective,
                              .size_bytes = 10,
                              .collective = Collective::kBroadcast});
  draft.operations[0].waiting_for = {static_cast<int32_t>(draft.operations.size()) - 1};
  draft.steps[0].start_ns.push_back(0);
  draft.steps[0].end_ns.push_back(0);
  const Profile profile = Profile::Create(draft).value();
  const absl::StatusOr<MemoryPlan> plan =
      Accumulate(profile, OutputsOf(profile), Shares(profile, 0.5));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto last = static_cast<int32_t>(plan->profile.operations().size()) - 1;
  EXPECT_THAT(plan->profile.operations()[0].waiting_for, ElementsAre(last));
  EXPECT_THAT(plan->profile.operations()[4].waiting_for, ElementsAre(3, last))
      << "after the first half, too";
  // A computation that the broadcast waits for, as an import has it, is there once, too.
  draft.operations.push_back({.name = "until_broadcast", .resource = Resource::kWorker});
  draft.operations[static_cast<size_t>(last) - 4].waiting_for = {last - 3};
  for (int64_t& start : draft.steps[0].start_ns) start += 7000;
  for (int64_t& end : draft.steps[0].end_ns) end += 7000;
  draft.steps[0].start_ns.push_back(0);
  draft.steps[0].end_ns.push_back(7000);
  const Profile recorded = Profile::Create(draft).value();
  const absl::StatusOr<MemoryPlan> halves =
      Accumulate(recorded, OutputsOf(recorded), Shares(recorded, 0.5));
  ASSERT_TRUE(halves.ok()) << halves.status();
  const std::vector<Operation>& made = halves->profile.operations();
  EXPECT_EQ(made.size(), recorded.operations().size() + 4);
  EXPECT_EQ(made.back().name, "until_broadcast");
  EXPECT_THAT(made.back().waiting_for, IsEmpty());
  EXPECT_THAT(made[4].waiting_for, ElementsAre(3, last));
  EXPECT_EQ(halves->profile.steps()[0].start_ns.back(), 0);
  EXPECT_EQ(halves->profile.steps()[0].start_ns[0], 7000);
  EXPECT_EQ(halves->profile.steps()[0].start_ns[4], 7000 + 20'000);
  // What only computes after all-reduces has no halves.
  ProfileDraft after{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  after.operations = {{.name = "all_reduce",
                       .resource = Resource::kCollective,
                       .size_bytes = 10,
                       .collective = Collective::kAllReduce},
                      {.name = "compute", .resource = Resource::kWorker, .waiting_for = {0}}};
  after.steps = {{.start_ns = {0, 0}, .end_ns = {0, 10}}};
  const Profile waits = Profile::Create(after).value();
  EXPECT_EQ(
      DetailsOf(Accumulate(waits, {.kept_bytes = {0, 5}}, Shares(waits, 0.5)).status()).reason,
      "NOTHING_TO_HALVE");
}

}  // namespace
}  // namespace stepcast::memory_test
