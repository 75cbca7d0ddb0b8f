#include "core/calibrate/clock_skew.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/random.h"

namespace stepcast::clock_skew_test {
namespace {

// Per step: 6 downloads, each with a computation that waits for it and for the last one, its upload
// and its update; each download reads what an update of the server prepared. Everything waits a
// little.
ProfileDraft Recording(Random& random, int steps) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  for (int32_t i = 0; i < 6; ++i) {
    const int32_t first = 5 * i;
    const auto add = [&](Resource resource, std::vector<int32_t> waits) {
      draft.operations.push_back(
          {.name = "op" + std::to_string(draft.operations.size()),
           .resource = resource,
           .size_bytes =
               resource == Resource::kDownlink || resource == Resource::kUplink ? 1000 : 0,
           .waiting_for = std::move(waits)});
    };
    add(Resource::kParameterServer, {});
    add(Resource::kDownlink, {first});
    add(Resource::kWorker,
        i == 0 ? std::vector<int32_t>{first + 1} : std::vector<int32_t>{first + 1, first - 3});
    add(Resource::kUplink, {first + 2});
    add(Resource::kParameterServer, {first + 3});
  }
  for (int s = 0; s < steps; ++s) {
    RecordedStep& step = draft.steps.emplace_back();
    for (const Operation& operation : draft.operations) {
      int64_t ready = 20'000'000;
      for (const int32_t waited : operation.waiting_for)
        ready = std::max(ready, step.end_ns[static_cast<size_t>(waited)]);
      step.start_ns.push_back(ready + static_cast<int64_t>(random.Below(50'000)));
      step.end_ns.push_back(step.start_ns.back() + 1 + static_cast<int64_t>(random.Below(100'000)));
    }
  }
  return draft;
}

bool IsServers(Resource resource, bool is_end, ClockSplit split) {
  if (resource == Resource::kParameterServer) return true;
  return split == ClockSplit::kTransferEnds &&
         resource == (is_end ? Resource::kUplink : Resource::kDownlink);
}

void Shift(ProfileDraft& draft, ClockSplit split, int64_t ahead_ns) {
  for (RecordedStep& step : draft.steps) {
    for (size_t i = 0; i < draft.operations.size(); ++i) {
      if (IsServers(draft.operations[i].resource, false, split)) step.start_ns[i] += ahead_ns;
      if (IsServers(draft.operations[i].resource, true, split)) step.end_ns[i] += ahead_ns;
    }
  }
}

bool IsPossible(const ProfileDraft& draft, const RecordedStep& step) {
  for (size_t i = 0; i < draft.operations.size(); ++i) {
    if (step.start_ns[i] < 0 || step.end_ns[i] < step.start_ns[i]) return false;
    for (const int32_t waited : draft.operations[i].waiting_for) {
      if (step.start_ns[i] < step.end_ns[static_cast<size_t>(waited)]) return false;
    }
  }
  return true;
}

TEST(ClockSkewTest, OneClockHasNoSkewAndIsLeftAsItIs) {
  Random random({1});
  const ProfileDraft draft = Recording(random, 10);
  const ClockSkew skew = ClockSkew::Measure(draft, NeverStop).value();
  EXPECT_EQ(skew.orders(), 10 * (30 + 29));
  EXPECT_EQ(skew.impossible_orders(), 0);
  EXPECT_EQ(skew.server_ahead_ns(), 0);
  for (const RecordedStep& step : draft.steps) EXPECT_EQ(skew.Corrected(draft, step), step);
}

// The least wait between the clocks is all that is left of the offset: what is possible cannot be
// told from what is so.
TEST(ClockSkewTest, AnOffsetIsFoundToTheLeastWaitAndTakenOff) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random({seed});
    ProfileDraft draft = Recording(random, 10);
    const ClockSplit split =
        seed % 2 == 0 ? ClockSplit::kServerOperations : ClockSplit::kTransferEnds;
    const auto size = 500'000 + static_cast<int64_t>(random.Below(5'000'000));
    const int64_t ahead = random.Below(2) == 0 ? size : -size;
    Shift(draft, split, ahead);
    const ClockSkew skew = ClockSkew::Measure(draft, NeverStop).value();
    EXPECT_GT(skew.impossible_orders(), 0);
    EXPECT_EQ(skew.split(), split);
    EXPECT_NEAR(static_cast<double>(skew.server_ahead_ns()), static_cast<double>(ahead), 60'000);
    EXPECT_LT(skew.clamped_orders(), skew.impossible_orders());
    EXPECT_LT(skew.worst_clamped_ns(), 60'000);
    for (const RecordedStep& step : draft.steps)
      EXPECT_TRUE(IsPossible(draft, skew.Corrected(draft, step)));
  }
}

TEST(ClockSkewTest, AStepThatContradictsItselfIsClampedAndDoesNotHideTheOthers) {
  Random random({3});
  ProfileDraft draft = Recording(random, 20);
  Shift(draft, ClockSplit::kServerOperations, 2'000'000);
  // An update 9 ms before its upload's end.
  draft.steps[4].start_ns[4] = draft.steps[4].end_ns[3] - 9'000'000;
  const ClockSkew skew = ClockSkew::Measure(draft, NeverStop).value();
  EXPECT_NEAR(static_cast<double>(skew.server_ahead_ns()), 2e6, 60'000);
  EXPECT_GE(skew.clamped_orders(), 1);
  EXPECT_NEAR(static_cast<double>(skew.worst_clamped_ns()), 11e6, 200'000);
  EXPECT_TRUE(IsPossible(draft, skew.Corrected(draft, draft.steps[4])));
}

// The step's first operation is the server's, whose clock is ahead: in the worker's time it lies
// before the step's recorded start.
TEST(ClockSkewTest, NothingIsMovedBeforeTheStepsStart) {
  Random random({6});
  ProfileDraft draft = Recording(random, 5);
  Shift(draft, ClockSplit::kServerOperations, 2'000'000);
  for (RecordedStep& step : draft.steps) {
    const int64_t first = *std::min_element(step.start_ns.begin(), step.start_ns.end());
    for (int64_t& at : step.start_ns) at -= first;
    for (int64_t& at : step.end_ns) at -= first;
  }
  const ClockSkew skew = ClockSkew::Measure(draft, NeverStop).value();
  for (const RecordedStep& step : draft.steps) {
    const RecordedStep corrected = skew.Corrected(draft, step);
    EXPECT_TRUE(IsPossible(draft, corrected));
    EXPECT_EQ(*std::min_element(corrected.start_ns.begin(), corrected.start_ns.end()), 0);
  }
}

TEST(ClockSkewTest, RoundingIsNoSkew) {
  Random random({4});
  ProfileDraft draft = Recording(random, 3);
  draft.steps[0].start_ns[1] = draft.steps[0].end_ns[0] - kClockToleranceNs;
  EXPECT_EQ(ClockSkew::Measure(draft, NeverStop)->impossible_orders(), 0);
  draft.steps[0].start_ns[1] -= 1;
  EXPECT_EQ(ClockSkew::Measure(draft, NeverStop)->impossible_orders(), 1);
}

TEST(ClockSkewTest, StopsWhenTold) {
  Random random({5});
  EXPECT_EQ(ClockSkew::Measure(Recording(random, 1), [] { return absl::CancelledError(); })
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stepcast::clock_skew_test
