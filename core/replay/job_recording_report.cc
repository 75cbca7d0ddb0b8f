#include "core/replay/job_recording_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/index.h"

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

// The clocks of the recording's workers, and of its servers.
struct AlignedClocks {
  std::vector<NodeClock> workers;
  std::vector<ServerReport> servers;
};

// The reading of a clock at a common time. REQUIRES: drifts are small (AlignmentOptions).
int64_t ReadingOf(const NodeClock& clock, int64_t common_ns) {
  const int64_t without_drift = common_ns - clock.offset_ns;
  return without_drift -
         std::llround(clock.drift * static_cast<double>(without_drift - clock.reference_ns));
}

bool IsBounded(const NodeClock& clock) {
  return clock.least_offset_ns != -kUnboundedOffset && clock.most_offset_ns != kUnboundedOffset;
}

// With parameter servers, the recording whose steps end with the last on any clock that is known
// from both sides, as the aligned ones say, and not on the worker's alone; else as it is.
MultiRankRecording WithStepsOfServers(MultiRankRecording recording, const AlignedClocks& aligned) {
  if (aligned.servers.empty()) return recording;
  const std::vector<Operation>& operations = recording.profile.operations();
  std::map<std::string, const NodeClock*> clock_of;
  for (const ServerReport& server : aligned.servers) {
    if (IsBounded(server.clock)) clock_of[server.name] = &server.clock;
  }
  const size_t servers = Index(recording.profile.parameter_servers());
  for (size_t worker = 0; worker < recording.workers.size(); ++worker) {
    const std::vector<int64_t>& shifts = recording.server_shifts_ns[worker];
    for (size_t step = 0; step < recording.step_numbers.size(); ++step) {
      const RecordedStep& times = recording.profile.steps_of(static_cast<int32_t>(worker))[step];
      const int64_t begin = recording.step_begins_ns[worker][step];
      int64_t& end = recording.step_ends_ns[worker][step];
      for (size_t i = 0; i < operations.size(); ++i) {
        if (IsOnWorkersClock(operations[i].resource)) continue;
        const auto clock = clock_of.find(NameOfServer(operations[i].parameter_server));
        if (clock == clock_of.end()) continue;
        const size_t server = Index(operations[i].parameter_server);
        const int64_t shift = shifts.empty() ? 0 : shifts[step * servers + server];
        const int64_t reading = begin + times.end_ns[i] - shift;
        end = std::max(end, ReadingOf(aligned.workers[worker], clock->second->ToCommon(reading)));
      }
    }
  }
  return recording;
}

// JobRecordingReport::beyond_shortest_seconds. REQUIRES: a sample.
std::optional<double> BeyondShortestSeconds(const JobRecording& recording, size_t steps) {
  const size_t collectives = recording.collectives.size();
  std::map<std::pair<Collective, int64_t>, int64_t> shortest;
  for (size_t i = 0; i < steps * collectives; ++i) {
    const LaunchedCollective& what = recording.collectives[i % collectives];
    const int64_t ns = recording.ShortestNsOf(i / collectives, i % collectives);
    int64_t& least = shortest.try_emplace({what.kind, what.size_bytes}, ns).first->second;
    least = std::min(least, ns);
  }
  if (shortest.size() == steps * collectives) return std::nullopt;
  double sum_ns = 0;
  for (size_t i = 0; i < steps * collectives; ++i) {
    const LaunchedCollective& what = recording.collectives[i % collectives];
    sum_ns += static_cast<double>(recording.ShortestNsOf(i / collectives, i % collectives) -
                                  shortest.at({what.kind, what.size_bytes}));
  }
  return sum_ns / static_cast<double>(steps) * 1e-9;
}

absl::StatusOr<AlignedClocks> Align(const MultiRankRecording& recording, StopCheck stop) {
  absl::StatusOr<RecordedExchanges> exchanges = ExchangesOf(recording, stop);
  if (!exchanges.ok()) return exchanges.status();
  // A single step is too short to tell a drift from an offset, and for one to matter.
  AlignmentOptions options;
  if (recording.step_count() == 1) options.max_drift = 0;
  absl::StatusOr<ClockAlignment> aligned = AlignClocks(*exchanges, options, stop);
  if (!aligned.ok()) return AtRecording(aligned.status());
  const auto workers = static_cast<std::ptrdiff_t>(recording.workers.size());
  AlignedClocks clocks{.workers = {aligned->clocks.begin(), aligned->clocks.begin() + workers}};
  for (size_t i = recording.workers.size(); i < aligned->clocks.size(); ++i)
    clocks.servers.push_back({.name = std::move(exchanges->nodes[i]), .clock = aligned->clocks[i]});
  return clocks;
}

}  // namespace

absl::StatusOr<RecordedJob> AlignedJobOf(const MultiRankRecording& recording, StopCheck stop) {
  absl::StatusOr<AlignedClocks> aligned = Align(recording, stop);
  if (!aligned.ok()) return aligned.status();
  return RecordedJobOf(WithStepsOfServers(recording, *aligned), aligned->workers, stop);
}

absl::StatusOr<JobRecordingReport> ReportOnRecording(const MultiRankRecording& as_recorded,
                                                     StopCheck stop) {
  absl::StatusOr<AlignedClocks> aligned = Align(as_recorded, stop);
  if (!aligned.ok()) return aligned.status();
  const MultiRankRecording recording = WithStepsOfServers(as_recorded, *aligned);
  const absl::StatusOr<RecordingReplay> replay = ReplayRecording(recording, aligned->workers, stop);
  if (!replay.ok()) return replay.status();
  const std::vector<NodeClock> as_read(recording.workers.size());
  const absl::StatusOr<RecordingReplay> unaligned = ReplayRecording(recording, as_read, stop);
  if (!unaligned.ok() && !absl::IsOutOfRange(unaligned.status())) return unaligned.status();
  JobRecordingReport report{.steps = recording.step_count(),
                            .collectives = static_cast<int32_t>(recording.collectives.size()),
                            .job_workers = recording.profile.recording()->size(),
                            .recorded_step_seconds = replay->recorded_step_seconds,
                            .replayed_step_seconds = replay->replayed_step_seconds,
                            .waiting_seconds = replay->waiting_seconds};
  if (const JobRecording& stored = *recording.profile.recording(); stored.is_sample()) {
    report.beyond_shortest_seconds = BeyondShortestSeconds(stored, recording.step_numbers.size());
  }
  if (unaligned.ok()) report.unaligned_step_seconds = unaligned->replayed_step_seconds;
  const double steps = report.steps;
  report.between_steps_seconds = replay->between_steps_seconds * (steps - 1) / steps;
  report.unexplained_seconds =
      report.recorded_step_seconds - report.replayed_step_seconds - report.between_steps_seconds;
  for (size_t worker = 0; worker < recording.workers.size(); ++worker) {
    const Span begin = replay->begins[worker];
    report.workers.push_back(
        {.name = recording.workers[worker],
         .clock = aligned->workers[worker],
         .recorded_step_seconds = ToSeconds(replay->recorded_ends[worker].back() - begin) / steps,
         .replayed_step_seconds = ToSeconds(replay->replayed_ends[worker].back() - begin) / steps});
  }
  report.servers = std::move(aligned->servers);
  return report;
}

}  // namespace stepcast
