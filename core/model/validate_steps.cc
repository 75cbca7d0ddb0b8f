#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "core/base/message_text.h"
#include "core/model/validate_profile.h"

namespace stepcast {

namespace {

// Rules of one worker's steps, whose path is `path`.
class RecordedStepRules {
 public:
  RecordedStepRules(const ProfileDraft& draft, const std::vector<RecordedStep>& steps,
                    std::string path, const ProfileLimits& limits, FaultList& faults)
      : draft_(draft), steps_(steps), path_(std::move(path)), limits_(limits), faults_(faults) {}

  void Check() {
    for (const Operation& operation : draft_.operations)
      has_transfer_ = has_transfer_ || IsTransfer(operation.resource);
    for (size_t i = 0; i < steps_.size() && !faults_.full(); ++i) CheckStep(i);
  }

 private:
  void CheckStep(size_t index) {
    const RecordedStep& step = steps_[index];
    const bool starts = CheckStepLength(index, "start_ns", step.start_ns);
    const bool ends = CheckStepLength(index, "end_ns", step.end_ns);
    if (!starts || !ends) return;
    bool takes_time = has_transfer_;
    bool sound = true;
    for (size_t i = 0; i < draft_.operations.size(); ++i) {
      const int64_t start = step.start_ns[i];
      const int64_t end = step.end_ns[i];
      // A collective's recorded time is not used: of one worker it takes none.
      takes_time =
          takes_time || (end > start && draft_.operations[i].resource != Resource::kCollective);
      if (start >= 0 && end >= start && end <= limits_.max_step_ns) continue;
      sound = false;
      AddTimeFault(index, i);
      if (faults_.full()) return;
    }
    if (sound && !takes_time)
      faults_.Add(absl::StrCat(path_, "[", index, "]"),
                  "takes no time: no transfer, and no computation ends after it starts");
  }

  bool CheckStepLength(size_t index, const char* field, const std::vector<int64_t>& times) {
    if (times.size() == draft_.operations.size()) return true;
    faults_.Add(absl::StrCat(path_, "[", index, "].", field),
                absl::StrCat(times.size(), " times for ", draft_.operations.size(), " operations"));
    return false;
  }

  void AddTimeFault(size_t step, size_t operation) {
    const int64_t start = steps_[step].start_ns[operation];
    const int64_t end = steps_[step].end_ns[operation];
    const std::string start_path = absl::StrCat(path_, "[", step, "].start_ns[", operation, "]");
    const std::string end_path = absl::StrCat(path_, "[", step, "].end_ns[", operation, "]");
    if (start < 0) faults_.Add(start_path, absl::StrCat(start, " is a negative time"));
    if (start > limits_.max_step_ns)
      faults_.Add(start_path, OverLimit(start, "max_step_ns", limits_.max_step_ns));
    if (end < 0) {
      faults_.Add(end_path, absl::StrCat(end, " is a negative time"));
    } else if (end < start) {
      faults_.Add(end_path, absl::StrCat(end, " is before the start at ", start));
    } else if (end > limits_.max_step_ns && start <= limits_.max_step_ns) {
      faults_.Add(end_path, OverLimit(end, "max_step_ns", limits_.max_step_ns));
    }
  }

  const ProfileDraft& draft_;
  const std::vector<RecordedStep>& steps_;
  const std::string path_;
  const ProfileLimits& limits_;
  FaultList& faults_;
  bool has_transfer_ = false;
};

// True if so many times are within the limits; else a fault at `path`.
bool CheckRecordedTimes(const char* path, size_t operations, size_t steps, size_t workers,
                        const ProfileLimits& limits, FaultList& faults) {
  const auto of_step = static_cast<int64_t>(std::max<size_t>(1, operations * workers));
  if (of_step <= limits.max_recorded_times / static_cast<int64_t>(std::max<size_t>(1, steps)))
    return true;
  faults.Add(path,
             absl::StrCat(operations, " operations in ", steps, " steps",
                          workers > 1 ? absl::StrCat(" of ", workers, " workers") : "",
                          " are above the limit max_recorded_times = ", limits.max_recorded_times));
  return false;
}

// The recording of several workers, one after the other.
class JobRecordingRules {
 public:
  // Readings of a clock are no farther from 0, nor from each other, in nanoseconds: 9.7 hours.
  static constexpr int64_t kMaxReadingNs = int64_t{1} << 61;
  static constexpr int64_t kMaxLengthNs = int64_t{1} << 45;

  // REQUIRES: the draft has a recording.
  JobRecordingRules(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults)
      : draft_(draft), recording_(*draft.recording), limits_(limits), faults_(faults) {}

  void Check(bool has_collectives) {
    const std::vector<WorkerRecording>& workers = recording_.workers;
    if (workers.size() < 2 || workers.size() > kMaxRecordedWorkers) {
      faults_.Add("recording.workers",
                  absl::StrCat(workers.size(), " are not from 2 to ", kMaxRecordedWorkers));
      return;
    }
    CheckCollectives(has_collectives);
    CheckJobWorkers(has_collectives);
    if (const double slowdown = recording_.overlap_slowdown;
        !(slowdown >= 1 && slowdown <= kMaxOverlapSlowdown)) {
      faults_.Add("recording.overlap_slowdown",
                  absl::StrCat(slowdown, " is not from 1 to ", kMaxOverlapSlowdown));
    } else if (slowdown != 1 && !has_collectives) {
      faults_.Add("recording.overlap_slowdown",
                  absl::StrCat(slowdown, ", where no collectives run beside anything"));
    }
    if (const double slowdown = recording_.collective_slowdown;
        !(slowdown >= 1 && slowdown <= kMaxCollectiveSlowdown)) {
      faults_.Add("recording.collective_slowdown",
                  absl::StrCat(slowdown, " is not from 1 to ", kMaxCollectiveSlowdown));
    } else if (slowdown != 1 && recording_.computing_ns.empty()) {
      faults_.Add("recording.collective_slowdown",
                  absl::StrCat(slowdown, ", without the computing_ns that it is of"));
    }
    if (!CheckRecordedTimes("recording.workers", draft_.operations.size(), draft_.steps.size(),
                            workers.size(), limits_, faults_) ||
        !CheckRuns()) {
      return;
    }
    absl::flat_hash_map<absl::string_view, size_t> names;
    for (size_t i = 0; i < workers.size() && !faults_.full(); ++i) {
      const std::string path = absl::StrCat("recording.workers[", i, "]");
      CheckName(path, workers[i].name);
      const auto [found, is_new] = names.try_emplace(workers[i].name, i);
      if (!is_new) {
        faults_.Add(path + ".name",
                    absl::StrCat(Quoted(workers[i].name), " is already recording.workers[",
                                 found->second, "]"));
      }
      CheckWorker(path, i);
    }
    if (faults_.empty()) CheckComputing();
  }

 private:
  void CheckName(const std::string& path, const std::string& name) {
    if (name.empty()) faults_.Add(path + ".name", "a worker needs a name");
    if (name.size() > limits_.max_text_bytes)
      faults_.Add(path + ".name", TooLong(name, "max_text_bytes", limits_.max_text_bytes));
  }

  void CheckJobWorkers(bool has_collectives) {
    const int32_t workers = recording_.job_workers;
    if (workers == 0) return;
    const auto recorded = static_cast<int32_t>(recording_.workers.size());
    if (workers < recorded || workers > kMaxJobWorkers) {
      faults_.Add("recording.job_workers", absl::StrCat(workers, " is not from the ", recorded,
                                                        " that were recorded to ", kMaxJobWorkers));
    } else if (workers > recorded && !has_collectives) {
      faults_.Add("recording.job_workers",
                  absl::StrCat(workers, ", of which ", recorded,
                               " were recorded: where workers meet at parameter servers all are "
                               "needed, since the others take their share of the links"));
    }
  }

  void CheckCollectives(bool has_collectives) {
    const std::vector<LaunchedCollective>& collectives = recording_.collectives;
    if (collectives.empty() && has_collectives) {
      faults_.Add("recording.collectives",
                  "a recording of several workers that meet in collectives needs at least one");
    } else if (!collectives.empty() && !has_collectives) {
      faults_.Add("recording.collectives", absl::StrCat(collectives.size(),
                                                        ", where the profile's workers meet at "
                                                        "parameter servers"));
    }
    for (size_t i = 0; i < collectives.size() && !faults_.full(); ++i) {
      const std::string path = absl::StrCat("recording.collectives[", i, "]");
      if (collectives[i].kind == Collective::kUnspecified)
        faults_.Add(path + ".kind", "a recorded collective needs a kind");
      if (collectives[i].size_bytes < 0)
        faults_.Add(path + ".size_bytes",
                    absl::StrCat(collectives[i].size_bytes, " is a negative size"));
      if (collectives[i].size_bytes > limits_.max_transfer_bytes)
        faults_.Add(path + ".size_bytes", OverLimit(collectives[i].size_bytes, "max_transfer_bytes",
                                                    limits_.max_transfer_bytes));
    }
  }

  bool CheckRuns() {
    const size_t of_collective = recording_.workers.size() * draft_.steps.size();
    if (recording_.collectives.size() <= kMaxCollectiveRuns / std::max<size_t>(1, of_collective))
      return true;
    faults_.Add(
        "recording.collectives",
        absl::StrCat(recording_.collectives.size(), " in ", draft_.steps.size(), " steps of ",
                     recording_.workers.size(), " workers are together above the limit of ",
                     kMaxCollectiveRuns, ": record fewer steps"));
    return false;
  }

  // REQUIRES: all else of the recording is sound.
  void CheckComputing() {
    const std::vector<int64_t>& beside = recording_.computing_ns;
    if (beside.empty()) return;
    const size_t collectives = recording_.collectives.size();
    if (beside.size() != draft_.steps.size() * collectives) {
      faults_.Add(
          "recording.computing_ns",
          absl::StrCat(beside.size(), " where ", draft_.steps.size() * collectives, " belong to ",
                       draft_.steps.size(), " steps and ", collectives, " collectives"));
      return;
    }
    for (size_t i = 0; i < beside.size(); ++i) {
      const int64_t most = recording_.ShortestNsOf(i / collectives, i % collectives);
      if (beside[i] >= 0 && beside[i] <= most) continue;
      faults_.Add(absl::StrCat("recording.computing_ns[", i, "]"),
                  absl::StrCat(beside[i], " is not from 0 to the ", most,
                               " that the collective took the worker that came last"));
      return;
    }
  }

  void CheckWorker(const std::string& path, size_t index) {
    const WorkerRecording& worker = recording_.workers[index];
    const size_t steps = draft_.steps.size();
    const auto has = [&](const char* field, size_t size, size_t wanted) {
      if (size == wanted) return true;
      faults_.Add(path + field,
                  absl::StrCat(size, " where ", wanted, " belong to ", steps, " steps and ",
                               recording_.collectives.size(), " collectives"));
      return false;
    };
    if (index == 0) {
      if (!worker.steps.empty())
        faults_.Add(path + ".steps",
                    "the first worker's are the profile's own, and not given here");
    } else if (has(".steps", worker.steps.size(), steps) && !draft_.operations.empty()) {
      RecordedStepRules(draft_, worker.steps, path + ".steps", limits_, faults_).Check();
    }
    const bool begins = has(".step_begins_ns", worker.step_begins_ns.size(), steps);
    const bool ends = has(".step_ends_ns", worker.step_ends_ns.size(), steps);
    const bool runs = has(".runs", worker.runs.size(), steps * recording_.collectives.size());
    if (!worker.server_shifts_ns.empty()) {
      const auto servers = static_cast<size_t>(std::max(0, draft_.parameter_servers));
      if (!recording_.collectives.empty()) {
        faults_.Add(path + ".server_shifts_ns", "given, where workers meet in collectives");
      } else if (worker.server_shifts_ns.size() != steps * servers) {
        faults_.Add(path + ".server_shifts_ns",
                    absl::StrCat(worker.server_shifts_ns.size(), " where ", steps * servers,
                                 " belong to ", steps, " steps and ", servers, " servers"));
      }
      for (size_t i = 0; i < worker.server_shifts_ns.size() && !faults_.full(); ++i) {
        if (std::abs(worker.server_shifts_ns[i]) <= kMaxReadingNs) continue;
        faults_.Add(absl::StrCat(path, ".server_shifts_ns[", i, "]"),
                    absl::StrCat(worker.server_shifts_ns[i], " ns is farther than 2^61 ns from 0"));
        break;
      }
    }
    if (!begins || !ends || !runs) return;
    first_ns_ = INT64_MAX;
    last_ns_ = INT64_MIN;
    bool sound = true;
    for (size_t i = 0; i < steps && sound; ++i) {
      sound =
          CheckTime(path + ".step_ends_ns", i, worker.step_begins_ns[i], worker.step_ends_ns[i]) &&
          (i == 0 || CheckOrder(path + ".step_begins_ns", i, worker.step_begins_ns)) &&
          (i == 0 || CheckOrder(path + ".step_ends_ns", i, worker.step_ends_ns));
    }
    for (size_t i = 0; i < worker.runs.size() && sound; ++i)
      sound = CheckTime(path + ".runs", i, worker.runs[i].start_ns, worker.runs[i].end_ns);
    if (sound && steps > 0 && worker.step_ends_ns.back() == worker.step_begins_ns.front())
      faults_.Add(path + ".step_ends_ns", "all steps together take no time");
    if (sound && steps > 0 && last_ns_ - first_ns_ > kMaxLengthNs) {
      faults_.Add(path, absl::StrCat("its times are ", DurationText(last_ns_ - first_ns_),
                                     " apart, more than ", DurationText(kMaxLengthNs)));
    }
  }

  bool CheckTime(const std::string& path, size_t index, int64_t start_ns, int64_t end_ns) {
    const bool near = start_ns >= -kMaxReadingNs && end_ns <= kMaxReadingNs;
    first_ns_ = std::min(first_ns_, start_ns);
    last_ns_ = std::max(last_ns_, end_ns);
    if (near && end_ns >= start_ns) return true;
    faults_.Add(absl::StrCat(path, "[", index, "]"),
                near ? absl::StrCat("the end ", end_ns, " is before the begin ", start_ns)
                     : absl::StrCat("from ", start_ns, " to ", end_ns,
                                    " ns is farther than 2^61 ns from 0"));
    return false;
  }

  bool CheckOrder(const std::string& path, size_t index, const std::vector<int64_t>& times) {
    if (times[index] >= times[index - 1]) return true;
    faults_.Add(absl::StrCat(path, "[", index, "]"),
                absl::StrCat(times[index], " is before ", times[index - 1], " of the step before"));
    return false;
  }

  const ProfileDraft& draft_;
  const JobRecording& recording_;
  const ProfileLimits& limits_;
  FaultList& faults_;
  int64_t first_ns_ = 0;  // of a worker's times
  int64_t last_ns_ = 0;
};

}  // namespace

void CheckSteps(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults) {
  const auto steps = static_cast<int64_t>(draft.steps.size());
  if (steps == 0) faults.Add("steps", "a profile needs at least one recorded step");
  if (steps > limits.max_steps) {
    faults.Add("steps", OverLimit(steps, "max_steps", limits.max_steps));
  } else if (CheckRecordedTimes("steps", draft.operations.size(), draft.steps.size(), 1, limits,
                                faults) &&
             !draft.operations.empty()) {
    RecordedStepRules(draft, draft.steps, "steps", limits, faults).Check();
  }
}

void CheckRecording(const ProfileDraft& draft, bool has_collectives, const ProfileLimits& limits,
                    FaultList& faults) {
  JobRecordingRules(draft, limits, faults).Check(has_collectives);
}

}  // namespace stepcast
