#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/model/multi_rank_recording.h"
#include "core/model/validate_profile.h"

namespace stepcast::validate_steps_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two workers, two steps of a computation and an all-reduce.
ProfileDraft RecordedDraft() {
  ProfileDraft draft{.batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e8}};
  draft.operations = {{.name = "backward", .resource = Resource::kWorker},
                      {.name = "gradient",
                       .resource = Resource::kCollective,
                       .size_bytes = 1000,
                       .waiting_for = {0},
                       .collective = Collective::kAllReduce}};
  draft.steps = {{.start_ns = {0, 10}, .end_ns = {10, 10}},
                 {.start_ns = {0, 12}, .end_ns = {12, 12}}};
  draft.recording = JobRecording{
      .collectives = {{.kind = Collective::kAllReduce, .size_bytes = 1000}},
      .workers = {
          {.name = "rank 0",
           .steps = {},
           .step_begins_ns = {100, 120},
           .step_ends_ns = {118, 140},
           .runs = {{.start_ns = 110, .end_ns = 118}, {.start_ns = 132, .end_ns = 140}}},
          {.name = "rank 1",
           .steps = {{.start_ns = {0, 14}, .end_ns = {14, 14}},
                     {.start_ns = {0, 16}, .end_ns = {16, 16}}},
           .step_begins_ns = {-900, -880},
           .step_ends_ns = {-882, -860},
           .runs = {{.start_ns = -886, .end_ns = -882}, {.start_ns = -864, .end_ns = -860}}}}};
  return draft;
}

TEST(ValidateStepsTest, ARecordingOfSeveralWorkersIsReadBackAsItWas) {
  const ProfileDraft draft = RecordedDraft();
  EXPECT_THAT(ValidateProfile(draft, {}), IsEmpty());
  const Profile profile = Profile::Create(draft).value();
  EXPECT_EQ(profile.recorded_workers(), 2);
  EXPECT_EQ(profile.steps_of(0), draft.steps);
  EXPECT_EQ(profile.steps_of(1), draft.recording->workers[1].steps);
  const MultiRankRecording recording = RecordingOf(profile, NeverStop).value();
  EXPECT_EQ(JobRecordingOf(recording, {profile.steps_of(0), profile.steps_of(1)}),
            *draft.recording);
  EXPECT_EQ(*profile.recording(), *draft.recording);
  EXPECT_EQ(recording.run(1, 0, 1).start_ns, -864);
  EXPECT_THAT(recording.workers, ElementsAre("rank 0", "rank 1"));
  // Whoever came last needed 4 ns in both steps.
  EXPECT_THAT(CollectiveSecondsOf(*draft.recording, NeverStop).value(), ElementsAre(4e-9));
  const std::vector<MeasuredCollective> points = MeasuredCollectivesOf(*draft.recording);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points.front(),
            (MeasuredCollective{.workers = 2, .size_bytes = 1000, .seconds = 4e-9}));
}

TEST(ValidateStepsTest, WorkersCanBeTakenOutAndRepeated) {
  const Profile profile = Profile::Create(RecordedDraft()).value();
  const Profile alone = profile.OfWorker(1);
  EXPECT_EQ(alone.recorded_workers(), 1);
  EXPECT_EQ(alone.steps(), profile.steps_of(1));
  EXPECT_EQ(alone.mean_step_ns(), 15);
  EXPECT_EQ(alone.recording(), nullptr);
  const Profile others = profile.OfWorkers({1, 0, 1});
  EXPECT_EQ(others.recorded_workers(), 3);
  EXPECT_EQ(others.steps(), profile.steps_of(1));
  EXPECT_EQ(others.steps_of(1), profile.steps());
  EXPECT_EQ(others.steps_of(2), profile.steps_of(1));
  EXPECT_EQ(others.mean_step_ns(), 15);
  EXPECT_EQ(others.OfWorker(1).steps(), profile.steps());
}

TEST(ValidateStepsTest, EveryRuleOfARecordingHasItsPath) {
  using Change = std::function<void(ProfileDraft&, JobRecording&)>;
  const std::vector<std::pair<std::string, Change>> cases = {
      {"recording.workers", [](auto&, auto& r) { r.workers.pop_back(); }},
      {"recording.workers", [](auto&, auto& r) { r.workers.resize(129); }},
      {"recording.job_workers", [](auto&, auto& r) { r.job_workers = 1; }},
      {"recording.job_workers", [](auto&, auto& r) { r.job_workers = kMaxJobWorkers + 1; }},
      {"recording.job_workers", [](auto&, auto& r) { r.job_workers = -1; }},
      {"recording.collectives",
       [](auto&, auto& r) {
         r.collectives.clear();
         for (WorkerRecording& worker : r.workers) worker.runs.clear();
       }},
      {"recording.collectives[0].kind",
       [](auto&, auto& r) { r.collectives[0].kind = Collective::kUnspecified; }},
      {"recording.collectives[0].size_bytes",
       [](auto&, auto& r) { r.collectives[0].size_bytes = -1; }},
      {"recording.collectives[0].size_bytes",
       [](auto&, auto& r) { r.collectives[0].size_bytes = INT64_MAX; }},
      {"recording.workers[0].name", [](auto&, auto& r) { r.workers[0].name.clear(); }},
      {"recording.workers[1].name", [](auto&, auto& r) { r.workers[1].name = "rank 0"; }},
      {"recording.workers[1].name",
       [](auto&, auto& r) { r.workers[1].name = std::string(257, 'x'); }},
      {"recording.workers[0].steps", [](auto& d, auto& r) { r.workers[0].steps = d.steps; }},
      {"recording.workers[1].steps", [](auto&, auto& r) { r.workers[1].steps.pop_back(); }},
      {"recording.workers[1].steps[1].end_ns",
       [](auto&, auto& r) { r.workers[1].steps[1].end_ns.pop_back(); }},
      {"recording.workers[1].steps[0].start_ns[0]",
       [](auto&, auto& r) { r.workers[1].steps[0].start_ns[0] = -1; }},
      {"recording.workers[1].steps[0]",
       [](auto&, auto& r) { r.workers[1].steps[0].end_ns[0] = 0; }},
      {"recording.workers[1].step_begins_ns",
       [](auto&, auto& r) { r.workers[1].step_begins_ns.pop_back(); }},
      {"recording.workers[0].step_ends_ns",
       [](auto&, auto& r) { r.workers[0].step_ends_ns.push_back(200); }},
      {"recording.workers[0].runs", [](auto&, auto& r) { r.workers[0].runs.pop_back(); }},
      {"recording.workers[0].step_ends_ns[1]",
       [](auto&, auto& r) { r.workers[0].step_ends_ns[1] = 119; }},
      {"recording.workers[1].step_begins_ns[1]",
       [](auto&, auto& r) { r.workers[1].step_begins_ns[1] = -901; }},
      {"recording.workers[1].runs[0]", [](auto&, auto& r) { r.workers[1].runs[0].end_ns = -887; }},
      {"recording.workers[1].runs[1]",
       [](auto&, auto& r) { r.workers[1].runs[1].end_ns = (int64_t{1} << 61) + 1; }},
      {"recording.workers[0]",
       [](auto&, auto& r) { r.workers[0].runs[1].end_ns = int64_t{1} << 46; }},
      {"recording.workers[1].step_ends_ns",
       [](auto&, auto& r) {
         r.workers[1].step_begins_ns = {5, 5};
         r.workers[1].step_ends_ns = {5, 5};
       }},
  };
  for (const auto& [path, change] : cases) {
    SCOPED_TRACE(path);
    ProfileDraft draft = RecordedDraft();
    change(draft, *draft.recording);
    const std::vector<Fault> faults = ValidateProfile(draft, {});
    ASSERT_FALSE(faults.empty());
    EXPECT_EQ(faults.front().field, path) << faults.front().description;
    EXPECT_FALSE(Profile::Create(draft).ok());
  }
}

TEST(ValidateStepsTest, ARecordingIsHeldToTheLimitsAllWorkersTogether) {
  const ProfileDraft draft = RecordedDraft();
  EXPECT_THAT(ValidateProfile(draft, {.max_recorded_times = 8}), IsEmpty());
  const std::vector<Fault> times = ValidateProfile(draft, {.max_recorded_times = 7});
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times.front().field, "recording.workers");
  EXPECT_THAT(times.front().description, HasSubstr("2 operations in 2 steps of 2 workers"));
}

TEST(ValidateStepsTest, TooManyRunsAreOneFault) {
  ProfileDraft draft = RecordedDraft();
  draft.recording->collectives.assign(kMaxCollectiveRuns / 4 + 1,
                                      {.kind = Collective::kAllReduce, .size_bytes = 1});
  const std::vector<Fault> faults = ValidateProfile(draft, {});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults.front().field, "recording.collectives");
  EXPECT_THAT(faults.front().description,
              HasSubstr("500001 in 2 steps of 2 workers are together above the limit of 2000000"));
}

TEST(ValidateStepsTest, ARecordingOfWorkersWithParameterServersHasNoCollectives) {
  ProfileDraft draft = RecordedDraft();
  draft.operations[1] = {.name = "push",
                         .resource = Resource::kUplink,
                         .size_bytes = 1000,
                         .waiting_for = {0},
                         .parameter = "w"};
  const std::vector<Fault> faults = ValidateProfile(draft, {});
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults.front().field, "recording.collectives");
}

}  // namespace
}  // namespace stepcast::validate_steps_test
