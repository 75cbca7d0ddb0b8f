#include "core/diagnose/job_recording_report.h"

#include <utility>

#include "core/base/error.h"

namespace stepcast {

namespace {

// An exchange's place among all of them says nothing to who gave the recording.
absl::Status AtRecording(const absl::Status& status) {
  ErrorDetails details = DetailsOf(status);
  if (details.faults.empty()) return status;
  for (Fault& fault : details.faults) fault.field = "recording";
  return MakeError(status.code(), {status.message().data(), status.message().size()},
                   std::move(details));
}

absl::StatusOr<ClockAlignment> Align(const MultiRankRecording& recording, StopCheck stop) {
  const absl::StatusOr<RecordedExchanges> exchanges = ExchangesOf(recording, stop);
  if (!exchanges.ok()) return exchanges.status();
  // A single step is too short to tell a drift from an offset, and for one to matter.
  AlignmentOptions options;
  if (recording.step_count() == 1) options.max_drift = 0;
  absl::StatusOr<ClockAlignment> aligned = AlignClocks(*exchanges, options, stop);
  if (!aligned.ok()) return AtRecording(aligned.status());
  return aligned;
}

}  // namespace

absl::StatusOr<RecordedJob> AlignedJobOf(const MultiRankRecording& recording, StopCheck stop) {
  const absl::StatusOr<ClockAlignment> aligned = Align(recording, stop);
  if (!aligned.ok()) return aligned.status();
  return RecordedJobOf(recording, aligned->clocks, stop);
}

absl::StatusOr<JobRecordingReport> ReportOnRecording(const MultiRankRecording& recording,
                                                     StopCheck stop) {
  const absl::StatusOr<ClockAlignment> aligned = Align(recording, stop);
  if (!aligned.ok()) return aligned.status();
  const absl::StatusOr<RecordingReplay> replay = ReplayRecording(recording, aligned->clocks, stop);
  if (!replay.ok()) return replay.status();
  const std::vector<NodeClock> as_read(recording.workers.size());
  const absl::StatusOr<RecordingReplay> unaligned = ReplayRecording(recording, as_read, stop);
  if (!unaligned.ok() && !absl::IsOutOfRange(unaligned.status())) return unaligned.status();
  JobRecordingReport report{.steps = recording.step_count(),
                            .collectives = static_cast<int32_t>(recording.collectives.size()),
                            .recorded_step_seconds = replay->recorded_step_seconds,
                            .replayed_step_seconds = replay->replayed_step_seconds,
                            .waiting_seconds = replay->waiting_seconds};
  if (unaligned.ok()) report.unaligned_step_seconds = unaligned->replayed_step_seconds;
  const double steps = report.steps;
  report.between_steps_seconds = replay->between_steps_seconds * (steps - 1) / steps;
  report.unexplained_seconds =
      report.recorded_step_seconds - report.replayed_step_seconds - report.between_steps_seconds;
  for (size_t worker = 0; worker < recording.workers.size(); ++worker) {
    const Span begin = replay->begins[worker];
    report.workers.push_back(
        {.name = recording.workers[worker],
         .clock = aligned->clocks[worker],
         .recorded_step_seconds = ToSeconds(replay->recorded_ends[worker].back() - begin) / steps,
         .replayed_step_seconds = ToSeconds(replay->replayed_ends[worker].back() - begin) / steps});
  }
  return report;
}

}  // namespace stepcast
