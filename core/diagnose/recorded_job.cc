#include "core/diagnose/recorded_job.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/communication/job.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

namespace {

// The time that the last worker needed, mean over the steps.
std::vector<Span> LengthsOf(const MultiRankRecording& recording) {
  std::vector<Span> lengths;
  for (size_t i = 0; i < recording.collectives.size(); ++i) {
    double sum = 0;
    for (int32_t step = 0; step < recording.step_count(); ++step) {
      int64_t shortest = INT64_MAX;
      for (int32_t worker = 0; worker < recording.worker_count(); ++worker) {
        const CollectiveRun& run = recording.run(step, i, worker);
        shortest = std::min(shortest, run.end_ns - run.start_ns);
      }
      sum += static_cast<double>(shortest);
    }
    const double mean = sum / static_cast<double>(recording.step_count());
    lengths.push_back(FromSeconds(std::clamp(mean * 1e-9, 0.0, 1e6)));
  }
  return lengths;
}

absl::Status Unmatched(const std::string& description) {
  return MakeError(absl::StatusCode::kFailedPrecondition, description,
                   {.reason = "COLLECTIVES_UNMATCHED"});
}

absl::Status CheckCollectives(const std::vector<PlannedCollective>& planned,
                              const std::vector<MatchedCollective>& recorded) {
  if (planned.size() != recorded.size()) {
    return Unmatched(absl::StrCat("a step of the profile has ", planned.size(),
                                  " collectives, and ", recorded.size(), " were recorded"));
  }
  for (size_t i = 0; i < planned.size(); ++i) {
    if (planned[i].kind != recorded[i].kind) {
      return Unmatched(absl::StrCat("collective ", i, " of a step, of ", planned[i].bytes,
                                    " bytes, was recorded as ", recorded[i].name, " of ",
                                    recorded[i].size_bytes, " bytes"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

RecordedExchanges ExchangesOf(const MultiRankRecording& recording) {
  RecordedExchanges exchanges{.nodes = recording.workers};
  for (const MatchedCollective& collective : recording.collectives)
    exchanges.families.push_back(collective.name);
  for (int32_t step = 0; step < recording.step_count(); ++step) {
    for (size_t i = 0; i < recording.collectives.size(); ++i) {
      RecordedCollective& collective = exchanges.collectives.emplace_back(RecordedCollective{
          .family = static_cast<int32_t>(i),
          .step = step,
          .ends_together = recording.collectives[i].kind != Collective::kBroadcast});
      for (int32_t worker = 0; worker < recording.worker_count(); ++worker) {
        const CollectiveRun& run = recording.run(step, i, worker);
        collective.members.push_back(
            {.node = worker, .start_ns = run.start_ns, .end_ns = run.end_ns});
      }
    }
  }
  return exchanges;
}

absl::StatusOr<RecordedJob> RecordedJobOf(const MultiRankRecording& recording,
                                          const std::vector<NodeClock>& clocks, StopCheck stop) {
  assert(clocks.size() == recording.workers.size());
  const int32_t workers = recording.worker_count();
  const absl::StatusOr<Scenario> scenario =
      ResolveScenario(recording.profile, {.workers = workers});
  if (!scenario.ok()) return scenario.status();
  RecordedJob made;
  for (int32_t worker = 0; worker < workers; ++worker) {
    ProfileDraft draft = recording.profile.content();
    draft.steps = recording.steps[Index(worker)];
    // The recording's own profile is within the limits, and so are these.
    ProfileLimits limits;
    const absl::StatusOr<Profile> profile = Profile::Create(std::move(draft), limits);
    if (!profile.ok()) return profile.status();
    const absl::StatusOr<JobProgram> program = BuildJobProgram(*profile, *scenario, stop);
    if (!program.ok()) return program.status();
    if (worker == 0) {
      if (absl::Status status = CheckCollectives(program->collectives, recording.collectives);
          !status.ok()) {
        return status;
      }
      made.job = JobOf(*program, nullptr, *scenario);
      made.job.programs.clear();
      made.job.program_of_worker.clear();
    }
    made.job.programs.push_back(program->program);
    made.job.program_of_worker.push_back(worker);
  }
  made.job.joint.lengths = LengthsOf(recording);
  made.job.joint.prepared = nullptr;  // it is of one program
  made.job.drawing = StepDrawing::kReplay;

  std::vector<int64_t> begins;
  for (size_t worker = 0; worker < clocks.size(); ++worker)
    begins.push_back(clocks[worker].ToCommon(recording.step_begins_ns[worker].front()));
  const int64_t first = *std::min_element(begins.begin(), begins.end());
  made.options = {.steps_per_worker = recording.step_count(), .keep_step_ends = true};
  double between = 0;
  for (size_t worker = 0; worker < clocks.size(); ++worker) {
    made.options.start_offsets.push_back(Nanoseconds(begins[worker] - first));
    std::vector<Span>& ends = made.recorded_ends.emplace_back();
    const std::vector<int64_t>& step_begins = recording.step_begins_ns[worker];
    const std::vector<int64_t>& step_ends = recording.step_ends_ns[worker];
    for (size_t step = 0; step < step_ends.size(); ++step) {
      ends.push_back(Nanoseconds(clocks[worker].ToCommon(step_ends[step]) - first));
      if (step > 0) between += static_cast<double>(step_begins[step] - step_ends[step - 1]);
    }
  }
  const auto joints = static_cast<double>(clocks.size()) *
                      static_cast<double>(std::max(1, recording.step_count() - 1));
  made.between_steps_seconds = between / joints / 1e9;
  return made;
}

absl::StatusOr<RecordingReplay> ReplayRecording(const MultiRankRecording& recording,
                                                const std::vector<NodeClock>& clocks,
                                                StopCheck stop) {
  const absl::StatusOr<RecordedJob> made = RecordedJobOf(recording, clocks, stop);
  if (!made.ok()) return made.status();
  const absl::StatusOr<RunResult> result = Simulate(made->job, made->options, stop);
  if (!result.ok()) return result.status();
  RecordingReplay replay{.recorded_ends = made->recorded_ends,
                         .between_steps_seconds = made->between_steps_seconds};
  const auto steps = static_cast<size_t>(recording.step_count());
  const double counted = static_cast<double>(steps) * static_cast<double>(clocks.size());
  for (size_t worker = 0; worker < clocks.size(); ++worker) {
    std::vector<Span>& ends = replay.replayed_ends.emplace_back();
    for (size_t step = 0; step < steps; ++step)
      ends.push_back(result->step_ends[worker][step] - Instant{});
    const Span begin = made->options.start_offsets[worker];
    replay.replayed_step_seconds += ToSeconds(ends.back() - begin) / counted;
    replay.recorded_step_seconds +=
        ToSeconds(replay.recorded_ends[worker].back() - begin) / counted;
  }
  return replay;
}

}  // namespace stepcast
