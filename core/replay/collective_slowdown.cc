#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/distributions.h"
#include "core/base/index.h"
#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/replay/overlap_slowdown.h"

namespace stepcast {

namespace {

constexpr double kContentionLevel = 0.95;
// A share of all that is rounding.
constexpr double kRoundingShare = 1e-9;
// An interval of logarithms that is not halved any more.
constexpr double kNarrow = 1e-12;
// The first step of logarithms from the best one, to where the interval ends.
constexpr double kStride = 0.05;

// Stretches of time, in whatever unit, merged where they touch.
class Stretches {
 public:
  using Stretch = std::pair<int64_t, int64_t>;

  // False: `pace` told to stop.
  bool Take(std::vector<Stretch> all, PacedStopCheck& pace) {
    if (!PacedStableSort(
            all, [](const Stretch& a, const Stretch& b) { return a.first < b.first; }, pace)) {
      return false;
    }
    for (const Stretch& next : all) {
      if (next.first >= next.second) continue;
      if (!merged_.empty() && next.first <= merged_.back().second) {
        merged_.back().second = std::max(merged_.back().second, next.second);
      } else {
        merged_.push_back(next);
      }
    }
    return true;
  }

  // Calls visit(begin, end) with the parts that lie between two instants, ascending.
  template <typename Visit>
  void VisitWithin(int64_t begin, int64_t end, Visit visit) const {
    auto at = std::upper_bound(merged_.begin(), merged_.end(), begin,
                               [](int64_t now, const Stretch& s) { return now < s.second; });
    for (; at != merged_.end() && at->first < end; ++at)
      visit(std::max(at->first, begin), std::min(at->second, end));
  }
  int64_t LengthWithin(int64_t begin, int64_t end) const {
    int64_t sum = 0;
    VisitWithin(begin, end, [&sum](int64_t from, int64_t to) { sum += to - from; });
    return sum;
  }

 private:
  std::vector<Stretch> merged_;  // apart, ascending
};

// A collective as it ran in a step.
struct ContendingRun {
  double alone = 0;     // seconds
  double beside = 0;    // seconds while some worker computed
  double expected = 0;  // share of that in the replay
};

// Tells the slow-down from runs by step and collective.
class SlowdownFit {
 public:
  SlowdownFit(const std::vector<ContendingRun>& runs, size_t collectives, PacedStopCheck& pace)
      : runs_(runs),
        collectives_(collectives),
        steps_(runs.size() / collectives),
        weights_(collectives),
        expected_(runs.size()),
        scores_(steps_),
        pace_(pace) {}

  std::optional<CollectiveSlowdown> Estimate() {
    for (size_t i = 0; i < runs_.size(); ++i) {
      weights_[i % collectives_] += runs_[i].alone + runs_[i].beside;
      expected_[i] = runs_[i].expected;
    }
    TakeEffectsAway(expected_);
    if (!TellsEnough()) return std::nullopt;
    const double most = std::log(kMostContention);
    if (!(StudentAt(-most) > 0 && StudentAt(most) < 0)) return std::nullopt;
    const double best = Crossing(-most, most, 0);
    const std::optional<double> lower = FirstBeyond(best, -kStride);
    const std::optional<double> upper = FirstBeyond(best, kStride);
    if (!lower.has_value() || !upper.has_value()) return std::nullopt;
    CollectiveSlowdown found;
    found.slowdown = std::exp(best);
    found.interval = {
        .lower = std::exp(*lower), .upper = std::exp(*upper), .level = kContentionLevel};
    found.runs = static_cast<int64_t>(runs_.size());
    found.collectives = static_cast<int32_t>(collectives_);
    double all = 0;
    for (const ContendingRun& run : runs_) {
      all += run.alone + run.beside;
      found.computing_fraction += run.beside;
    }
    found.computing_fraction /= all;
    return found;
  }

 private:
  // The least squares of both effects: every collective is in every step.
  void TakeEffectsAway(std::vector<double>& values) const {
    double weight = 0;
    for (const double of_collective : weights_) weight += of_collective;
    for (size_t c = 0; c < collectives_; ++c) {
      double sum = 0;
      for (size_t i = c; i < values.size(); i += collectives_) sum += values[i];
      for (size_t i = c; i < values.size(); i += collectives_)
        values[i] -= sum / static_cast<double>(steps_);
    }
    for (size_t first = 0; first < values.size(); first += collectives_) {
      double sum = 0;
      for (size_t c = 0; c < collectives_; ++c) sum += weights_[c] * values[first + c];
      for (size_t c = 0; c < collectives_; ++c) values[first + c] -= sum / weight;
    }
  }

  // Sets the quantile where as many steps as it takes vary in what they have beside them.
  bool TellsEnough() {
    double sum = 0;
    double squares = 0;
    double all = 0;
    for (size_t step = 0; step < steps_; ++step) {
      double of_step = 0;
      for (size_t c = 0; c < collectives_; ++c) {
        const double expected = expected_[step * collectives_ + c];
        of_step += weights_[c] * expected * expected;
        all += weights_[c];
      }
      sum += of_step;
      squares += of_step * of_step;
    }
    if (sum <= kRoundingShare * all) return false;
    const int steps = static_cast<int>(std::floor(sum * sum / squares + kRoundingShare));
    if (steps < kMinContendingSteps) return false;
    quantile_ = StudentTQuantile(steps - 1, kContentionLevel);
    return true;
  }

  // Student's t of the mean of the steps' products at that logarithm of a slow-down: it falls, and
  // is 0 where works do not go with what is expected beside them.
  double StudentAt(double log_slowdown) {
    // On a stop what follows is of no use, and dropped.
    if (!pace_.GoesOn(static_cast<int64_t>(runs_.size()))) return 0;
    const double kept = std::exp(-log_slowdown);
    work_.clear();
    for (const ContendingRun& run : runs_) work_.push_back(std::log(run.alone + run.beside * kept));
    TakeEffectsAway(work_);
    double sum = 0;
    for (size_t step = 0; step < steps_; ++step) {
      scores_[step] = 0;
      for (size_t c = 0; c < collectives_; ++c) {
        const size_t i = step * collectives_ + c;
        scores_[step] += weights_[c] * expected_[i] * work_[i];
      }
      sum += scores_[step];
    }
    const auto steps = static_cast<double>(steps_);
    const double mean = sum / steps;
    double squares = 0;
    for (const double score : scores_) squares += (score - mean) * (score - mean);
    const double error = std::sqrt(squares / (steps * (steps - 1)));
    // Without noise at the true one both are rounding.
    return mean / std::max(error, 1e-300);
  }

  // The first point beyond the quantile, from the best logarithm on; none: not within what is
  // looked for. It need not fall all the way: far off noise in what is small drowns what it says.
  std::optional<double> FirstBeyond(double best, double stride) {
    const double most = std::log(kMostContention);
    for (double at = best; std::abs(at) < most; at += stride, stride *= 2) {
      if (std::abs(StudentAt(at + stride)) < quantile_) continue;
      return stride < 0 ? Crossing(at + stride, at, quantile_)
                        : Crossing(at, at + stride, -quantile_);
    }
    return std::nullopt;
  }

  // The logarithm at which StudentAt is that. REQUIRES: it is more at the lower one, and less at
  // the higher.
  double Crossing(double low, double high, double student) {
    while (high - low > kNarrow && pace_.status().ok()) {
      const double middle = (low + high) / 2;
      (StudentAt(middle) > student ? low : high) = middle;
    }
    return (low + high) / 2;
  }

  const std::vector<ContendingRun>& runs_;
  const size_t collectives_;
  const size_t steps_;
  std::vector<double> weights_;   // by collective
  std::vector<double> expected_;  // less both effects
  double quantile_ = 0;
  std::vector<double> work_;
  std::vector<double> scores_;
  PacedStopCheck& pace_;
};

// The share of each collective's time in the replay in which some worker computes, by step and
// collective.
absl::StatusOr<std::vector<double>> ExpectedShares(const Execution& replay, size_t collectives,
                                                   PacedStopCheck& pace) {
  std::vector<Stretches::Stretch> computing;
  std::vector<const ExecutedOperation*> joint;  // of the first worker
  for (const ExecutedOperation& operation : replay.operations) {
    if (!pace.GoesOn(1)) return pace.status();
    if (operation.is_joint) {
      if (operation.worker == 0) joint.push_back(&operation);
    } else if (operation.kind == PathKind::kComputation) {
      computing.emplace_back(operation.start.ticks, operation.end.ticks);
    }
  }
  Stretches merged;
  if (!merged.Take(std::move(computing), pace)) return pace.status();
  const bool sorted = PacedStableSort(
      joint,
      [](const ExecutedOperation* a, const ExecutedOperation* b) {
        return std::pair(a->step, a->op) < std::pair(b->step, b->op);
      },
      pace);
  if (!sorted) return pace.status();
  std::vector<double> shares;
  shares.reserve(joint.size());
  for (const ExecutedOperation* const operation : joint) {
    if (!pace.GoesOn(1)) return pace.status();
    const int64_t begin = operation->start.ticks;
    const int64_t end = operation->end.ticks;
    shares.push_back(begin == end ? 0
                                  : static_cast<double>(merged.LengthWithin(begin, end)) /
                                        static_cast<double>(end - begin));
  }
  shares.resize(shares.size() / collectives * collectives);
  return shares;
}

// Adds the stretches in which a worker computed in a step, on its own clock. `carried_by`: of the
// operations that are collectives, the recorded one.
void AddComputing(const Profile& profile, const std::vector<size_t>& carried_by, size_t worker,
                  size_t step, std::vector<Stretches::Stretch>& computing) {
  const std::vector<Operation>& operations = profile.operations();
  const RecordedStep& recorded = profile.steps_of(static_cast<int32_t>(worker))[step];
  const JobRecording& recording = *profile.recording();
  const int64_t begin_ns = recording.workers[worker].step_begins_ns[step];
  struct Ends {
    int64_t recorded_ns = 0;  // from the step's begin, perhaps without waits
    int64_t ns = 0;           // on the worker's clock
  };
  std::vector<size_t> order(operations.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&recorded](size_t a, size_t b) {
    return std::pair(recorded.start_ns[a], recorded.end_ns[a]) <
           std::pair(recorded.start_ns[b], recorded.end_ns[b]);
  });
  std::map<int32_t, Ends> streams;
  std::vector<int64_t> ends_ns(operations.size());
  for (const size_t i : order) {
    const Operation& operation = operations[i];
    if (operation.resource != Resource::kWorker) {
      ends_ns[i] = recording.run(step, carried_by[i], worker).end_ns;
      continue;
    }
    Ends& stream = streams.try_emplace(operation.stream, Ends{.ns = begin_ns}).first->second;
    Ends before = stream;
    for (const int32_t earlier : operation.waiting_for) {
      before.recorded_ns = std::max(before.recorded_ns, recorded.end_ns[Index(earlier)]);
      before.ns = std::max(before.ns, ends_ns[Index(earlier)]);
    }
    const int64_t gap = std::max<int64_t>(0, recorded.start_ns[i] - before.recorded_ns);
    const int64_t start = before.ns + gap;
    ends_ns[i] = start + recorded.end_ns[i] - recorded.start_ns[i];
    stream = {.recorded_ns = recorded.end_ns[i], .ns = ends_ns[i]};
    computing.emplace_back(start, ends_ns[i]);
  }
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ComputingBesideCollectives(
    const Profile& profile, const std::vector<PlannedCollective>& planned, StopCheck stop) {
  PacedStopCheck pace(stop);
  const JobRecording& recording = *profile.recording();
  std::vector<size_t> carried_by(profile.operations().size());
  for (size_t i = 0; i < planned.size(); ++i) {
    for (const int32_t member : planned[i].members) carried_by[Index(member)] = i;
  }
  std::vector<Stretches> computing(recording.workers.size());  // each on its worker's clock
  for (size_t worker = 0; worker < recording.workers.size(); ++worker) {
    std::vector<Stretches::Stretch> all;
    for (size_t step = 0; step < profile.steps().size(); ++step) {
      if (!pace.GoesOn(static_cast<int64_t>(profile.operations().size()))) return pace.status();
      AddComputing(profile, carried_by, worker, step, all);
    }
    if (!computing[worker].Take(std::move(all), pace)) return pace.status();
  }
  std::vector<int64_t> beside;
  for (size_t step = 0; step < profile.steps().size(); ++step) {
    for (size_t i = 0; i < recording.collectives.size(); ++i) {
      const int64_t length = recording.ShortestNsOf(step, i);
      std::vector<Stretches::Stretch> parts;  // counted from the collective's end
      for (size_t worker = 0; worker < recording.workers.size(); ++worker) {
        if (!pace.GoesOn(1)) return pace.status();
        const int64_t end = recording.run(step, i, worker).end_ns;
        computing[worker].VisitWithin(end - length, end, [&](int64_t from, int64_t to) {
          parts.emplace_back(from - end, to - end);
        });
      }
      Stretches of_any;
      if (!of_any.Take(std::move(parts), pace)) return pace.status();
      beside.push_back(of_any.LengthWithin(-length, 0));
    }
  }
  return beside;
}

absl::StatusOr<std::optional<CollectiveSlowdown>> FindCollectiveSlowdown(
    const Profile& profile, const std::vector<PlannedCollective>& planned, const Execution& replay,
    StopCheck stop) {
  const JobRecording& recording = *profile.recording();
  std::vector<int64_t> beside = recording.computing_ns;
  if (beside.empty()) {
    if (recording.overlap_slowdown != 1) return std::nullopt;
    absl::StatusOr<std::vector<int64_t>> measured =
        ComputingBesideCollectives(profile, planned, stop);
    if (!measured.ok()) return measured.status();
    beside = *std::move(measured);
  }
  PacedStopCheck pace(stop);
  const size_t collectives = recording.collectives.size();
  const absl::StatusOr<std::vector<double>> expected = ExpectedShares(replay, collectives, pace);
  if (!expected.ok()) return expected.status();
  const size_t steps = expected->size() / collectives;
  std::vector<size_t> told;  // collectives that take time in every step
  for (size_t i = 0; i < collectives; ++i) {
    bool takes_time = recording.collectives[i].kind != Collective::kBroadcast;
    for (size_t step = 0; step < steps && takes_time; ++step) {
      if (!pace.GoesOn(static_cast<int64_t>(recording.workers.size()))) return pace.status();
      takes_time = recording.ShortestNsOf(step, i) > 0;
    }
    if (takes_time) told.push_back(i);
  }
  if (told.size() < 2) return std::nullopt;
  std::vector<ContendingRun> runs;
  for (size_t step = 0; step < steps; ++step) {
    for (const size_t i : told) {
      if (!pace.GoesOn(static_cast<int64_t>(recording.workers.size()))) return pace.status();
      const size_t at = step * collectives + i;
      runs.push_back(
          {.alone = static_cast<double>(recording.ShortestNsOf(step, i) - beside[at]) * 1e-9,
           .beside = static_cast<double>(beside[at]) * 1e-9,
           .expected = (*expected)[at]});
    }
  }
  std::optional<CollectiveSlowdown> found =
      steps < 2 ? std::nullopt : SlowdownFit(runs, told.size(), pace).Estimate();
  if (!pace.status().ok()) return pace.status();
  return found;
}

}  // namespace stepcast
