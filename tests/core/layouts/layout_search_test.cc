#include "core/layouts/layout_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/predict/pipeline_prediction.h"

namespace stepcast::layout_search_test {
namespace {

// Layers of unequal times, each with a gradient, that keep what they compute.
Profile Layers(int32_t count) {
  ProfileDraft draft{.batch_size = 2, .platform = {.bandwidth_bytes_per_second = 5e9}};
  RecordedStep step;
  int64_t now = 0;
  const auto add = [&](Operation operation, int64_t length) {
    draft.operations.push_back(std::move(operation));
    step.start_ns.push_back(now);
    now += length;
    step.end_ns.push_back(now);
    return static_cast<int32_t>(draft.operations.size()) - 1;
  };
  std::vector<int32_t> before;
  const auto ns = [](int32_t layer) { return 1'000'000 + layer * 37 % 11 * 100'000; };
  for (int32_t layer = 0; layer < count; ++layer)
    before = {add({.name = "forward/" + std::to_string(layer),
                   .resource = Resource::kWorker,
                   .waiting_for = before,
                   .kept_bytes = 100'000'000,
                   .pass = Pass::kForward,
                   .output_bytes = 4'000'000},
                  ns(layer))};
  for (int32_t layer = count; layer-- > 0;) {
    before = {add({.name = "backward/" + std::to_string(layer),
                   .resource = Resource::kWorker,
                   .waiting_for = before,
                   .pass = Pass::kBackward},
                  2 * ns(layer))};
    add({.name = "gradient/" + std::to_string(layer),
         .resource = Resource::kCollective,
         .size_bytes = 20'000'000,
         .waiting_for = before,
         .collective = Collective::kAllReduce},
        0);
  }
  draft.steps = {step};
  return Profile::Create(std::move(draft)).value();
}

TEST(LayoutSearchTest, NoLayoutThatIsPrunedIsFasterThanTheBest) {
  const Profile profile = Layers(12);
  const absl::StatusOr<LayoutQuery> query =
      ResolveLayouts(profile, {.devices = 12, .micro_batches = 24, .max_layouts = 1});
  ASSERT_TRUE(query.ok()) << query.status();
  const absl::StatusOr<LayoutAnswer> answer =
      RecommendLayout(profile, *query, NeverStop, InOrder(), {});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_GT(answer->pruned, 0);
  const PipelinePredictor predictor(profile, query->options);
  for (const LayoutCandidate& candidate : WeighLayouts(profile, *query, NeverStop)->candidates) {
    const auto made = predictor.Predict(
        candidate.scenario, PlanPipeline(profile, candidate.scenario), NeverStop, InOrder());
    ASSERT_TRUE(made.ok());
    EXPECT_LE(made->prediction.examples_per_second,
              answer->layouts[0].prediction.examples_per_second);
    // A single run's chance may beat the mean by a little.
    EXPECT_LE(made->prediction.examples_per_second, candidate.bound * 1.02);
  }
}

TEST(LayoutSearchTest, MemoryRefusesWhatNeedsMore) {
  const Profile profile = Layers(12);
  const auto ask = [&](int64_t memory) {
    const absl::StatusOr<LayoutQuery> query =
        ResolveLayouts(profile, {.devices = 12, .memory_bytes = memory, .micro_batches = 24});
    return WeighLayouts(profile, query.value(), NeverStop);
  };
  const size_t all = ask(0)->candidates.size();
  const absl::StatusOr<WeighedLayouts> some = ask(900'000'000);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_LT(some->candidates.size(), all);
  for (const LayoutCandidate& candidate : some->candidates)
    EXPECT_LE(candidate.memory_bytes, 900'000'000);
  EXPECT_TRUE(std::any_of(some->refused.begin(), some->refused.end(), [](const auto& refused) {
    return refused.reason.rfind("memory_bytes: device ", 0) == 0;
  }));
  EXPECT_FALSE(ask(1000).ok());
}

// By hand: one device of 12 layers with one forward in flight keeps 1.2 GB, and four times 240 MB.
TEST(LayoutSearchTest, MemoryIsWhatIsKeptAndTheParameters) {
  const Profile profile = Layers(12);
  const absl::StatusOr<LayoutQuery> query = ResolveLayouts(
      profile,
      {.devices = 1, .micro_batches = 3, .schedules = {PipelineSchedule::kOneForwardOneBackward}});
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(WeighLayouts(profile, *query, NeverStop)->candidates.at(0).memory_bytes,
            1'200'000'000 + 4 * 240'000'000);
}

}  // namespace
}  // namespace stepcast::layout_search_test
