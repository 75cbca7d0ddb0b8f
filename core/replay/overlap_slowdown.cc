#include "core/replay/overlap_slowdown.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/distributions.h"
#include "core/base/index.h"
#include "core/base/stop_check.h"

namespace stepcast {

namespace {

constexpr double kLevel = 0.95;
// Share left of an effect when it counts as taken away.
constexpr double kNoEffect = 1e-11;
constexpr int kMostTurns = 1000;
// A share of all that is rounding.
constexpr double kNothing = 1e-9;

struct Stretch {
  Instant begin;
  Instant end;
};

// The stretches of a worker's time in which some collective runs.
class CollectiveTime {
 public:
  // `sorted`: by begin.
  explicit CollectiveTime(const std::vector<Stretch>& sorted) {
    for (const Stretch& next : sorted) {
      if (!stretches_.empty() && next.begin <= stretches_.back().end) {
        stretches_.back().end = std::max(stretches_.back().end, next.end);
      } else {
        stretches_.push_back(next);
      }
    }
  }

  enum class Beside : uint8_t { kNo, kPartly, kWholly };
  Beside Of(Instant begin, Instant end) const {
    // The first that ends after the begin.
    const auto at = std::upper_bound(stretches_.begin(), stretches_.end(), begin,
                                     [](Instant now, const Stretch& s) { return now < s.end; });
    if (at == stretches_.end() || at->begin >= end) return Beside::kNo;
    return at->begin <= begin && end <= at->end ? Beside::kWholly : Beside::kPartly;
  }

 private:
  std::vector<Stretch> stretches_;  // apart, ascending
};

// A run of an operation that was all alone or all beside a collective.
struct Run {
  int32_t step = 0;
  size_t cell = 0;  // of its operation and worker
  size_t worker_step = 0;
  bool beside = false;
  double weight = 0;  // seconds that the operation takes, in the mean
  // Values less what its cell and its worker's step have in common.
  double x = 0;  // of 1 beside a collective, 0 alone
  double y = 0;  // of the logarithm of its seconds
};

// An operation of a worker: its runs alone and beside a collective.
struct Cell {
  int64_t runs[2] = {0, 0};
};

class Finder {
 public:
  Finder(const Execution& execution, StopCheck stop) : execution_(execution), pace_(stop) {}

  absl::StatusOr<std::optional<OverlapSlowdown>> Find() {
    CollectRuns();
    if (!pace_.status().ok()) return pace_.status();
    WeighRuns();
    TakeEffectsAway();
    if (!pace_.status().ok()) return pace_.status();
    return Estimate();
  }

 private:
  void CollectRuns() {
    std::vector<std::vector<Stretch>> collectives(Index(execution_.workers));
    OpIndex most = 0;
    for (const ExecutedOperation& operation : execution_.operations) {
      if (!pace_.GoesOn(1)) return;
      most = std::max(most, operation.op);
      if (operation.is_joint && operation.start < operation.end)
        collectives[Index(operation.worker)].push_back({operation.start, operation.end});
    }
    std::vector<CollectiveTime> times;
    for (std::vector<Stretch>& of_worker : collectives) {
      PacedStableSort(
          of_worker, [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; }, pace_);
      times.emplace_back(of_worker);
    }
    const size_t operations = Index(most) + 1;
    const auto cell_of = [&](const ExecutedOperation& operation) {
      return Index(operation.worker) * operations + Index(operation.op);
    };
    cells_.resize(operations * Index(execution_.workers));
    std::vector<Span> longest(cells_.size());
    for (const ExecutedOperation& operation : execution_.operations) {
      if (!pace_.GoesOn(1)) return;
      if (!IsCounted(operation)) continue;
      Span& length = longest[cell_of(operation)];
      length = std::max(length, operation.end - operation.start);
    }
    for (const ExecutedOperation& operation : execution_.operations) {
      if (!pace_.GoesOn(1)) return;
      if (!IsCounted(operation)) continue;
      const size_t cell = cell_of(operation);
      const CollectiveTime::Beside beside =
          times[Index(operation.worker)].Of(operation.start, operation.start + longest[cell]);
      if (beside == CollectiveTime::Beside::kPartly) continue;
      const bool is_beside = beside == CollectiveTime::Beside::kWholly;
      runs_.push_back(
          {.step = operation.step,
           .cell = cell,
           .worker_step = Index(operation.worker) * Index(execution_.steps) + Index(operation.step),
           .beside = is_beside,
           .x = is_beside ? 1.0 : 0.0,
           .y = std::log(ToSeconds(operation.end - operation.start))});
    }
  }

  bool IsCounted(const ExecutedOperation& operation) const {
    return !operation.is_joint && operation.kind == PathKind::kComputation &&
           operation.step >= execution_.warmup && operation.start < operation.end;
  }

  // Counts of each cell's runs either way, and each run's weight.
  void WeighRuns() {
    std::vector<double> seconds(cells_.size());
    for (const Run& run : runs_) {
      ++cells_[run.cell].runs[run.beside ? 1 : 0];
      seconds[run.cell] += std::exp(run.y);
    }
    for (Run& run : runs_) {
      const Cell& cell = cells_[run.cell];
      run.weight = seconds[run.cell] / static_cast<double>(cell.runs[0] + cell.runs[1]);
    }
  }

  // Takes the means of each group of runs away. Returns the largest one.
  double TakeMeansAway(size_t Run::*group, size_t groups) {
    struct Sums {
      double weight = 0;
      double x = 0;
      double y = 0;
    };
    std::vector<Sums> sums(groups);
    for (const Run& run : runs_) {
      Sums& of_group = sums[run.*group];
      of_group.weight += run.weight;
      of_group.x += run.weight * run.x;
      of_group.y += run.weight * run.y;
    }
    double largest = 0;
    for (Sums& of_group : sums) {
      if (of_group.weight == 0) continue;
      of_group.x /= of_group.weight;
      of_group.y /= of_group.weight;
      largest = std::max({largest, std::abs(of_group.x), std::abs(of_group.y)});
    }
    for (Run& run : runs_) {
      run.x -= sums[run.*group].x;
      run.y -= sums[run.*group].y;
    }
    return largest;
  }

  // The least squares of both effects, by turns: the other one's are not yet away at first.
  void TakeEffectsAway() {
    const size_t worker_steps = Index(execution_.workers) * Index(execution_.steps);
    double largest = 1;
    for (int turn = 0; turn < kMostTurns && largest > kNoEffect; ++turn) {
      if (!pace_.GoesOn(static_cast<int64_t>(runs_.size()))) return;
      largest = TakeMeansAway(&Run::cell, cells_.size());
      largest = std::max(largest, TakeMeansAway(&Run::worker_step, worker_steps));
    }
  }

  std::optional<OverlapSlowdown> Estimate() const {
    OverlapSlowdown found;
    for (const Cell& cell : cells_) {
      if (cell.runs[0] == 0 || cell.runs[1] == 0) continue;
      ++found.operations;
      found.runs_alone += cell.runs[0];
      found.runs_beside += cell.runs[1];
    }
    double all = 0;
    double squares = 0;
    double product = 0;
    std::vector<double> of_step(Index(execution_.steps));
    for (const Run& run : runs_) {
      all += run.weight;
      squares += run.weight * run.x * run.x;
      product += run.weight * run.x * run.y;
      of_step[Index(run.step)] += run.weight * run.x * run.x;
    }
    if (squares <= kNothing * all) return std::nullopt;
    const auto steps = static_cast<double>(std::count_if(
        of_step.begin(), of_step.end(), [&](double part) { return part > kNothing * all; }));
    if (steps < kMinOverlapSteps) return std::nullopt;
    const double mean = product / squares;
    std::vector<double> scores(Index(execution_.steps));
    for (const Run& run : runs_)
      scores[Index(run.step)] += run.weight * run.x * (run.y - mean * run.x);
    double variance = 0;
    for (const double score : scores) variance += score * score;
    variance *= steps / (steps - 1);
    const double half =
        std::sqrt(variance) / squares * StudentTQuantile(static_cast<int>(steps) - 1, kLevel);
    found.slowdown = std::exp(mean);
    found.interval = {
        .lower = std::exp(mean - half), .upper = std::exp(mean + half), .level = kLevel};
    return found;
  }

  const Execution& execution_;
  PacedStopCheck pace_;
  std::vector<Run> runs_;
  std::vector<Cell> cells_;  // by worker and operation
};

}  // namespace

absl::StatusOr<std::optional<OverlapSlowdown>> FindOverlapSlowdown(const Execution& execution,
                                                                   StopCheck stop) {
  return Finder(execution, stop).Find();
}

}  // namespace stepcast
