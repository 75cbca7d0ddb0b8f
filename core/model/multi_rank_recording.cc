#include "core/model/multi_rank_recording.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepcast {

std::string NameOfCollective(Collective kind, size_t place) {
  const char* name = "all_reduce";
  if (kind == Collective::kBroadcast) name = "broadcast";
  if (kind == Collective::kReduceScatter) name = "reduce_scatter";
  if (kind == Collective::kAllGather) name = "all_gather";
  return absl::StrCat(name, "/", place);
}

absl::StatusOr<MultiRankRecording> RecordingOf(const Profile& profile, StopCheck stop) {
  PacedStopCheck pace(stop);
  const JobRecording& stored = *profile.recording();
  MultiRankRecording recording{.profile = profile, .job_workers = stored.job_workers};
  recording.step_numbers.resize(profile.steps().size());
  std::iota(recording.step_numbers.begin(), recording.step_numbers.end(), 0);
  for (size_t i = 0; i < stored.collectives.size(); ++i) {
    recording.collectives.push_back({.name = NameOfCollective(stored.collectives[i].kind, i),
                                     .kind = stored.collectives[i].kind,
                                     .size_bytes = stored.collectives[i].size_bytes});
  }
  for (size_t worker = 0; worker < stored.workers.size(); ++worker) {
    const WorkerRecording& part = stored.workers[worker];
    recording.workers.push_back(part.name);
    recording.step_begins_ns.push_back(part.step_begins_ns);
    recording.step_ends_ns.push_back(part.step_ends_ns);
    recording.server_shifts_ns.push_back(part.server_shifts_ns);
  }
  recording.runs.reserve(profile.steps().size() * stored.collectives.size() *
                         stored.workers.size());
  for (size_t step = 0; step < profile.steps().size(); ++step) {
    for (size_t i = 0; i < stored.collectives.size(); ++i) {
      if (!pace.GoesOn(static_cast<int64_t>(stored.workers.size()))) return pace.status();
      for (size_t worker = 0; worker < stored.workers.size(); ++worker)
        recording.runs.push_back(stored.run(step, i, worker));
    }
  }
  return recording;
}

absl::StatusOr<std::vector<double>> CollectiveSecondsOf(const JobRecording& recording,
                                                        StopCheck stop) {
  if (recording.collectives.empty()) return std::vector<double>();
  PacedStopCheck pace(stop);
  const size_t collectives = recording.collectives.size();
  const size_t steps = recording.workers.front().runs.size() / collectives;
  std::vector<double> seconds;
  for (size_t i = 0; i < collectives; ++i) {
    double sum = 0;
    for (size_t step = 0; step < steps; ++step) {
      if (!pace.GoesOn(static_cast<int64_t>(recording.workers.size()))) return pace.status();
      sum += recording.AloneNsOf(step, i);
    }
    seconds.push_back(sum / static_cast<double>(steps) * 1e-9);
  }
  return seconds;
}

absl::StatusOr<int32_t> CollectivesAtOnce(const JobRecording& recording, StopCheck stop) {
  PacedStopCheck pace(stop);
  constexpr int64_t kResolutionNs = 2000;
  const size_t collectives = recording.collectives.size();
  std::vector<CollectiveRun> runs;
  std::vector<int64_t> ends;  // of those that are under way
  size_t most = 1;
  for (const WorkerRecording& worker : recording.workers) {
    for (size_t first = 0; first < worker.runs.size(); first += collectives) {
      if (!pace.GoesOn(static_cast<int64_t>(collectives))) return pace.status();
      const auto begin = worker.runs.begin() + static_cast<std::ptrdiff_t>(first);
      runs.assign(begin, begin + static_cast<std::ptrdiff_t>(collectives));
      std::stable_sort(
          runs.begin(), runs.end(),
          [](const CollectiveRun& a, const CollectiveRun& b) { return a.start_ns < b.start_ns; });
      ends.clear();
      for (const CollectiveRun& run : runs) {
        std::erase_if(ends, [&](int64_t end) { return end <= run.start_ns + kResolutionNs; });
        if (run.end_ns <= run.start_ns + kResolutionNs) continue;
        ends.push_back(run.end_ns);
        most = std::max(most, ends.size());
      }
    }
  }
  return static_cast<int32_t>(most);
}

std::vector<MeasuredCollective> MeasuredCollectivesOf(const JobRecording& recording) {
  const std::vector<double> seconds = CollectiveSecondsOf(recording, NeverStop).value();
  std::map<std::pair<Collective, int64_t>, std::pair<double, int>> sums;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const LaunchedCollective& what = recording.collectives[i];
    auto& [sum, count] = sums[{what.kind, std::max<int64_t>(1, what.size_bytes)}];
    sum += seconds[i];
    ++count;
  }
  std::vector<MeasuredCollective> points;
  points.reserve(sums.size());
  for (const auto& [what, sum] : sums) {
    points.push_back({.kind = what.first,
                      .workers = recording.size(),
                      .size_bytes = what.second,
                      .seconds = std::max(1e-9, sum.first / sum.second)});
  }
  return points;
}

JobRecording JobRecordingOf(const MultiRankRecording& recording,
                            std::vector<std::vector<RecordedStep>> steps) {
  JobRecording stored;
  stored.job_workers = recording.job_workers;
  for (const MatchedCollective& collective : recording.collectives)
    stored.collectives.push_back({.kind = collective.kind, .size_bytes = collective.size_bytes});
  for (int32_t worker = 0; worker < recording.worker_count(); ++worker) {
    WorkerRecording& part = stored.workers.emplace_back();
    part.name = recording.workers[Index(worker)];
    if (worker > 0) part.steps = std::move(steps[Index(worker)]);
    part.step_begins_ns = recording.step_begins_ns[Index(worker)];
    part.step_ends_ns = recording.step_ends_ns[Index(worker)];
    if (!recording.server_shifts_ns.empty())
      part.server_shifts_ns = recording.server_shifts_ns[Index(worker)];
    for (int32_t step = 0; step < recording.step_count(); ++step) {
      for (size_t i = 0; i < recording.collectives.size(); ++i)
        part.runs.push_back(recording.run(step, i, worker));
    }
  }
  return stored;
}

}  // namespace stepcast
