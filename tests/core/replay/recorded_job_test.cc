// Simulated recordings of several ranks, written as PyTorch's profiler writes them: imported,
// aligned, replayed and diagnosed.
#include "core/replay/recorded_job.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/model/multi_rank_recording.h"
#include "core/replay/critical_path.h"
#include "core/replay/execution.h"
#include "tests/core/importing/rank_traces.h"

namespace stepcast::recorded_job_test {
namespace {

using testing::ImportRankTraces;
using testing::RankTraces;
using testing::RankTracesForm;
using testing::WriteRankTraces;

RankTracesForm RandomForm(uint64_t seed) {
  Random random({seed, 95});
  RankTracesForm form{.ranks = 2 + static_cast<int>(random.Below(4)),
                      .steps = 4 + static_cast<int>(random.Below(8)),
                      .elements = {},
                      .buckets = {},
                      .collective_ns = 2 * static_cast<int64_t>(1000 + random.Below(400'000)),
                      .broadcasts = random.Below(2) == 0,
                      .at_once = 1 + random.Below(3),
                      .straggler = random.Below(2) == 0 ? 1 : 1.5,
                      .seed = seed};
  for (uint64_t bucket = 1 + random.Below(4); bucket > 0; --bucket) {
    form.buckets.push_back(1 + random.Below(3));
    for (size_t i = 0; i < form.buckets.back(); ++i)
      form.elements.push_back(static_cast<int64_t>(1 + random.Below(100'000)));
  }
  return form;
}

// Of right clocks the replay ends every step of every worker at the tick at which the simulation
// that was recorded did.
TEST(RecordedJobTest, AReplayIsTheSimulationThatWasRecordedToTheTick) {
  int64_t steps = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RankTraces made = WriteRankTraces(RandomForm(seed));
    const MultiRankRecording recording = ImportRankTraces(made);
    const absl::StatusOr<RecordingReplay> replay =
        ReplayRecording(recording, std::vector<NodeClock>(recording.workers.size()), NeverStop);
    ASSERT_TRUE(replay.ok()) << replay.status();
    int64_t first = INT64_MAX;
    for (const std::vector<int64_t>& begins : made.step_begins_ns)
      first = std::min(first, begins[2]);
    for (size_t rank = 0; rank < recording.workers.size(); ++rank) {
      for (size_t step = 2; step < made.step_ends_ns[rank].size(); ++step) {
        const Span truth = Nanoseconds(made.step_ends_ns[rank][step] - first);
        ASSERT_EQ(replay->replayed_ends[rank][step - 2].ticks, truth.ticks)
            << "rank " << rank << " step " << step;
        ASSERT_EQ(replay->recorded_ends[rank][step - 2].ticks, truth.ticks);
        ++steps;
      }
    }
    EXPECT_EQ(replay->between_steps_seconds, 0);
    EXPECT_NEAR(replay->gap(), 0, 1e-12);
  }
  std::cout << steps << " steps\n";
  EXPECT_GT(steps, 5000);
}

// Clocks that are seconds apart: aligned, the recording replays within a thousandth of a step, and
// its recorded ends are those of the truth within the interval of the offset.
TEST(RecordedJobTest, ARecordingOfClocksSecondsApartIsAlignedAndReplayed) {
  double worst = 0;
  double worst_without = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RankTracesForm form = RandomForm(seed);
    Random random({seed, 96});
    form.clock_offsets_ns.push_back(0);
    for (int rank = 1; rank < form.ranks; ++rank) {
      form.clock_offsets_ns.push_back(static_cast<int64_t>(random.Below(8'000'000'000)) -
                                      4'000'000'000);
    }
    const RankTraces made = WriteRankTraces(form);
    const MultiRankRecording recording = ImportRankTraces(made);
    const absl::StatusOr<ClockAlignment> aligned =
        AlignClocks(ExchangesOf(recording, NeverStop).value(), {}, NeverStop);
    ASSERT_TRUE(aligned.ok()) << aligned.status();
    for (size_t rank = 1; rank < recording.workers.size(); ++rank) {
      const NodeClock& clock = aligned->clocks[rank];
      EXPECT_LE(clock.least_offset_ns, form.clock_offsets_ns[rank]);
      EXPECT_GE(clock.most_offset_ns, form.clock_offsets_ns[rank]);
    }
    const RecordingReplay replay = ReplayRecording(recording, aligned->clocks, NeverStop).value();
    worst = std::max(worst, std::abs(replay.gap()));
    const RecordingReplay without =
        ReplayRecording(recording, std::vector<NodeClock>(recording.workers.size()), NeverStop)
            .value();
    worst_without = std::max(worst_without, std::abs(without.gap()));
  }
  std::cout << "worst gap aligned " << worst << ", as recorded " << worst_without << "\n";
  EXPECT_LT(worst, 0.001);
  EXPECT_GT(worst_without, 1);
}

TEST(RecordedJobTest, NamesTheStragglerOfARecording) {
  const MultiRankRecording recording =
      ImportRankTraces(WriteRankTraces({.ranks = 4, .steps = 12, .straggler = 1.6}));
  const RecordedJob made = RecordedJobOf(recording, std::vector<NodeClock>(4), NeverStop).value();
  const Execution execution = Execute(made.job, made.options, NeverStop).value();
  const CriticalPath path = FindCriticalPath(execution, NeverStop).value();
  EXPECT_EQ(path.straggler, 3);
  EXPECT_EQ(recording.workers[Index(path.straggler)], "rank 3");
  EXPECT_EQ(Total(path.by_kind), path.length());
  EXPECT_GT(path.workers[3].waited_for.ticks, path.length().ticks / 10);
}

TEST(RecordedJobTest, RefusesCollectivesThatAreNotThoseOfTheProfile) {
  MultiRankRecording recording = ImportRankTraces(WriteRankTraces({.ranks = 2}));
  recording.collectives[1].kind = Collective::kBroadcast;
  const absl::StatusOr<RecordedJob> made =
      RecordedJobOf(recording, std::vector<NodeClock>(2), NeverStop);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(DetailsOf(made.status()).reason, "COLLECTIVES_UNMATCHED");
}

}  // namespace
}  // namespace stepcast::recorded_job_test
