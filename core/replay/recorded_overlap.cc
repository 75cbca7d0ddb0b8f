#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/time.h"
#include "core/replay/execution.h"
#include "core/replay/overlap_slowdown.h"
#include "core/replay/recorded_job.h"

namespace stepcast {

namespace {

// The lengths of computations without what collectives beside them cost, by worker, step and
// operation of the profile.
class FreedLengths : public TraceSink {
 public:
  FreedLengths(const Profile& profile, const Program& program, double slowdown)
      : program_(program), kept_(1 / slowdown) {
    for (int32_t worker = 0; worker < profile.recorded_workers(); ++worker) {
      std::vector<std::vector<int64_t>>& steps = ns_.emplace_back();
      for (const RecordedStep& step : profile.steps_of(worker)) {
        std::vector<int64_t>& lengths = steps.emplace_back();
        for (size_t i = 0; i < step.start_ns.size(); ++i)
          lengths.push_back(step.end_ns[i] - step.start_ns[i]);
      }
    }
  }

  void OnStep(std::span<const ChunkRecord> chunks) override {
    beside_.clear();
    for (const ChunkRecord& chunk : chunks) {
      if (IsJoint(chunk) && chunk.start < chunk.end) beside_.emplace_back(chunk.start, chunk.end);
    }
    std::sort(beside_.begin(), beside_.end());
    for (const ChunkRecord& chunk : chunks) {
      if (IsJoint(chunk) || Index(chunk.step) >= ns_[Index(chunk.worker)].size()) continue;
      const double overlap_ns = ToSeconds(OverlapOf(chunk.start, chunk.end)) * 1e9;
      int64_t& length =
          ns_[Index(chunk.worker)][Index(chunk.step)][Index(program_.source(chunk.op))];
      length = std::max<int64_t>(0, length - std::llround(overlap_ns * (1 - kept_)));
    }
  }

  const std::vector<int64_t>& of(size_t worker, size_t step) const { return ns_[worker][step]; }

 private:
  bool IsJoint(const ChunkRecord& chunk) const {
    return program_.lanes().IsJoint(program_.lane(chunk.op));
  }

  // The part of it that some collective runs beside.
  Span OverlapOf(Instant begin, Instant end) const {
    Span sum{};
    Instant counted = begin;
    for (const auto& [start, until] : beside_) {
      if (start >= end) break;
      const Instant from = std::max(start, counted);
      const Instant to = std::min(until, end);
      if (from >= to) continue;
      sum = sum + (to - from);
      counted = to;
    }
    return sum;
  }

  const Program& program_;
  const double kept_;
  std::vector<std::vector<std::vector<int64_t>>> ns_;
  std::vector<std::pair<Instant, Instant>> beside_;  // of the step at hand, by start
};

// The step with other lengths: what was recorded between an operation and the last of those that it
// waits for, or that its stream ran before it, stays.
RecordedStep WithLengths(const std::vector<Operation>& operations, const RecordedStep& recorded,
                         const std::vector<int64_t>& lengths_ns) {
  std::vector<size_t> order(operations.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(recorded.start_ns[a], recorded.end_ns[a]) <
           std::pair(recorded.start_ns[b], recorded.end_ns[b]);
  });
  struct Ends {
    int64_t recorded_ns = 0;
    int64_t ns = 0;
  };
  std::map<int32_t, Ends> streams;
  RecordedStep step{.start_ns = std::vector<int64_t>(operations.size()),
                    .end_ns = std::vector<int64_t>(operations.size())};
  for (const size_t i : order) {
    const Operation& operation = operations[i];
    Ends before;
    const auto wait = [&before](int64_t recorded_ns, int64_t ns) {
      before.recorded_ns = std::max(before.recorded_ns, recorded_ns);
      before.ns = std::max(before.ns, ns);
    };
    for (const int32_t earlier : operation.waiting_for)
      wait(recorded.end_ns[Index(earlier)], step.end_ns[Index(earlier)]);
    const bool has_stream = operation.resource == Resource::kWorker;
    if (has_stream) wait(streams[operation.stream].recorded_ns, streams[operation.stream].ns);
    const int64_t gap = recorded.start_ns[i] - before.recorded_ns;
    step.start_ns[i] = std::max<int64_t>(0, before.ns + gap);
    step.end_ns[i] = step.start_ns[i] + lengths_ns[i];
    if (has_stream) streams[operation.stream] = {recorded.end_ns[i], step.end_ns[i]};
  }
  return step;
}

// Replay of the first steps; none where a single one is too large.
absl::StatusOr<std::optional<Execution>> ReplayOf(const RecordedJob& made, StopCheck stop) {
  absl::StatusOr<Execution> execution = Execute(made.job, OptionsToFollow(made), stop);
  if (DetailsOf(execution.status()).reason == kExecutionTooLarge) return std::nullopt;
  if (!execution.ok()) return execution.status();
  return *std::move(execution);
}

}  // namespace

absl::StatusOr<std::optional<OverlapSlowdown>> OverlapSlowdownOf(
    const MultiRankRecording& recording, const std::vector<NodeClock>& clocks, StopCheck stop) {
  const absl::StatusOr<RecordedJob> made = RecordedJobOf(recording, clocks, stop);
  if (!made.ok()) return made.status();
  const absl::StatusOr<std::optional<Execution>> replay = ReplayOf(*made, stop);
  if (!replay.ok()) return replay.status();
  if (!replay->has_value()) return std::nullopt;
  return FindOverlapSlowdown(**replay, stop);
}

absl::StatusOr<std::optional<CollectiveSlowdown>> CollectiveSlowdownOf(
    const MultiRankRecording& recording, const std::vector<NodeClock>& clocks, StopCheck stop) {
  const absl::StatusOr<RecordedJob> made = RecordedJobOf(recording, clocks, stop);
  if (!made.ok()) return made.status();
  const absl::StatusOr<std::optional<Execution>> replay = ReplayOf(*made, stop);
  if (!replay.ok()) return replay.status();
  if (!replay->has_value()) return std::nullopt;
  return FindCollectiveSlowdown(recording.profile, made->program.collectives, **replay, stop);
}

absl::StatusOr<Profile> FreeOfContention(const MultiRankRecording& recording,
                                         const std::vector<NodeClock>& clocks, double slowdown,
                                         const ProfileLimits& limits, StopCheck stop) {
  assert(recording.profile.recording()->overlap_slowdown == 1);
  const absl::StatusOr<RecordedJob> made = RecordedJobOf(recording, clocks, stop);
  if (!made.ok()) return made.status();
  absl::StatusOr<std::vector<int64_t>> beside =
      ComputingBesideCollectives(recording.profile, made->program.collectives, stop);
  if (!beside.ok()) return beside.status();
  ProfileDraft draft = recording.profile.content();
  draft.recording->collective_slowdown = slowdown;
  draft.recording->computing_ns = *std::move(beside);
  return Profile::Create(std::move(draft), limits);
}

absl::StatusOr<Profile> FreeOfOverlap(const MultiRankRecording& recording,
                                      const std::vector<NodeClock>& clocks, double slowdown,
                                      const ProfileLimits& limits, StopCheck stop) {
  assert(recording.profile.recording()->overlap_slowdown == 1);
  const absl::StatusOr<RecordedJob> made = RecordedJobOf(recording, clocks, stop);
  if (!made.ok()) return made.status();
  const Profile& profile = recording.profile;
  FreedLengths lengths(profile, *made->program.program, slowdown);
  RunOptions options = made->options;
  options.keep_step_ends = false;
  options.trace = &lengths;
  const absl::StatusOr<RunResult> result = Simulate(made->job, options, stop);
  if (!result.ok()) return result.status();
  ProfileDraft draft = profile.content();
  if (draft.recording->computing_ns.empty()) {
    absl::StatusOr<std::vector<int64_t>> beside =
        ComputingBesideCollectives(profile, made->program.collectives, stop);
    if (!beside.ok()) return beside.status();
    draft.recording->computing_ns = *std::move(beside);
  }
  draft.recording->overlap_slowdown = slowdown;
  PacedStopCheck pace(stop);
  for (size_t worker = 0; worker < recording.workers.size(); ++worker) {
    std::vector<RecordedStep>& steps =
        worker == 0 ? draft.steps : draft.recording->workers[worker].steps;
    for (size_t step = 0; step < steps.size(); ++step) {
      if (!pace.GoesOn(static_cast<int64_t>(draft.operations.size()))) return pace.status();
      steps[step] = WithLengths(draft.operations, steps[step], lengths.of(worker, step));
    }
  }
  return Profile::Create(std::move(draft), limits);
}

}  // namespace stepcast
