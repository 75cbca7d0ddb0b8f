// Work between two questions whether to stop, while a large recording of several workers is made a
// job: in copies of the recording.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/model/multi_rank_recording.h"
#include "core/replay/recorded_job.h"
#include "tests/support/work_count.h"

namespace stepcast::recording_stops_test {
namespace {

constexpr int kWorkers = 4;
constexpr int kSteps = 1500;
constexpr int kGradients = 200;
constexpr int64_t kUnitNs = 1000;
// A little more than there is; a whole pass over the times of all workers is more than twice that.
constexpr double kMostCopies = 0.17;

// Computations one after the other, each with a gradient, which all workers send when all have it.
Profile LargeRecording() {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  JobRecording& recording = draft.recording.emplace();
  RecordedStep step;
  for (int32_t i = 0; i < kGradients; ++i) {
    Operation compute{.name = absl::StrCat("backward ", i), .resource = Resource::kWorker};
    if (i > 0) compute.waiting_for = {2 * i - 2};
    draft.operations.push_back(std::move(compute));
    draft.operations.push_back({.name = absl::StrCat("gradient ", i),
                                .resource = Resource::kCollective,
                                .size_bytes = 1000,
                                .waiting_for = {2 * i},
                                .collective = Collective::kAllReduce});
    recording.collectives.push_back({.kind = Collective::kAllReduce, .size_bytes = 1000});
    step.start_ns.insert(step.start_ns.end(), {i * kUnitNs, (i + 1) * kUnitNs});
    step.end_ns.insert(step.end_ns.end(), {(i + 1) * kUnitNs, (i + 1) * kUnitNs});
  }
  draft.steps.assign(kSteps, step);
  for (int worker = 0; worker < kWorkers; ++worker) {
    WorkerRecording& part = recording.workers.emplace_back();
    part.name = absl::StrCat("rank ", worker);
    if (worker > 0) part.steps = draft.steps;
    for (int64_t at = 0; at < kSteps; ++at) {
      const int64_t begin = at * (kGradients + 2) * kUnitNs;
      part.step_begins_ns.push_back(begin);
      part.step_ends_ns.push_back(begin + (kGradients + 1) * kUnitNs);
      for (int64_t i = 1; i <= kGradients; ++i)
        part.runs.push_back({.start_ns = begin + i * kUnitNs, .end_ns = begin + (i + 1) * kUnitNs});
    }
  }
  return Profile::Create(std::move(draft)).value();
}

int64_t WorkOfACopy(const Profile& profile) {
  const int64_t begin = WorkSoFar();
  const auto copy = std::make_unique<const ProfileDraft>(profile.content());
  EXPECT_EQ(copy->steps.size(), static_cast<size_t>(kSteps));
  return WorkSoFar() - begin;
}

void MakeAJob(const Profile& profile, StopCheck stop) {
  const absl::StatusOr<MultiRankRecording> recording = RecordingOf(profile, stop);
  ASSERT_TRUE(recording.ok());
  const absl::StatusOr<RecordedExchanges> exchanges = ExchangesOf(*recording, stop);
  ASSERT_TRUE(exchanges.ok());
  ASSERT_TRUE(RecordedJobOf(*recording, std::vector<NodeClock>(kWorkers), stop).ok());
}

TEST(RecordingStopsTest, NothingIsCopiedOrReadAsAWholeBetweenTwoQuestions) {
  const Profile profile = LargeRecording();
  int64_t most = 0;
  int64_t asked = 0;
  int64_t last = WorkSoFar();
  const auto see = [&] {
    const int64_t now = WorkSoFar();
    most = std::max(most, now - last);
    last = now;
  };
  MakeAJob(profile, [&] {
    ++asked;
    see();
    return absl::OkStatus();
  });
  see();
  const int64_t copy = WorkOfACopy(profile);
  std::cout << asked << " questions, at most " << most << " blocks and words apart; a copy takes "
            << copy << '\n';
  EXPECT_LE(static_cast<double>(most), kMostCopies * static_cast<double>(copy));
}

TEST(RecordingStopsTest, AnyQuestionStopsIt) {
  const Profile profile = LargeRecording();
  int64_t asked = 0;
  MakeAJob(profile, [&] {
    ++asked;
    return absl::OkStatus();
  });
  ASSERT_GT(asked, 100);
  for (const int64_t refused : {int64_t{1}, asked / 4, asked / 2, asked - 1}) {
    int64_t left = refused;
    const auto stop = [&left] {
      return --left > 0 ? absl::OkStatus() : absl::CancelledError("enough");
    };
    const absl::StatusOr<MultiRankRecording> recording = RecordingOf(profile, stop);
    absl::Status status = recording.status();
    if (status.ok()) status = ExchangesOf(*recording, stop).status();
    if (status.ok())
      status = RecordedJobOf(*recording, std::vector<NodeClock>(kWorkers), stop).status();
    EXPECT_EQ(status, absl::CancelledError("enough")) << refused << " of " << asked;
    EXPECT_EQ(left, 0) << "nothing goes on after a refusal";
  }
}

}  // namespace
}  // namespace stepcast::recording_stops_test
