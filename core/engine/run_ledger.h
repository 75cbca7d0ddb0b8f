// The account of a run, whichever engine makes it: its steps, its counted time, its usage.
//
// Threads: none. Memory: some numbers a worker, whatever the number of steps, but for the step ends
// where they are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/engine/job_graph.h"
#include "core/engine/meetings.h"
#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "core/engine/throughput_estimator.h"
#include "core/engine/usage_meter.h"

namespace stepcast {

class RunLedger {
 public:
  // Both must outlive it.
  RunLedger(const JobGraph& job, const RunOptions& options)
      : job_(job),
        options_(options),
        estimator_(job.workers(), options.warmup_steps, options.steps_per_worker, options.until),
        meetings_(job, options.warmup_steps) {
    if (options.keep_step_ends) result_.step_ends.resize(Index(job.workers()));
    if (!job.joint.ops.empty()) result_.completions = CompletionSeries(job.workers());
    UsageWindow::Totals nothing{.by_lane =
                                    std::vector<UsageWindow::Ticks>(Index(job.lanes().count()))};
    if (Lasts()) window_.Begin(Instant{}, std::move(nothing));
  }

  // True if the run ends at an instant of its own, `options.until`.
  bool Lasts() const { return options_.until < kEndOfTime; }
  // True if nothing that happens at `next` belongs to the run any more.
  bool EndsBefore(Instant next) const { return Lasts() && next > options_.until; }
  bool Done() const { return !Lasts() && estimator_.Done(); }

  // All workers are at the same, and what is told of the first is of all from now on.
  void Merge() { alike_ = job_.workers(); }

  // The worker's first step begins.
  void OnStart(int32_t worker, Instant now) { estimator_.OnStart(worker, now); }
  void OnStepEnd(int32_t worker, Instant begin, Instant now) {
    for (int32_t w = worker; w < worker + alike_; ++w) {
      estimator_.OnStepEnd(w, begin, now);
      result_.completions.Add(now);
      if (options_.keep_step_ends) result_.step_ends[Index(w)].push_back(now);
    }
    if (meetings_.Couples(worker, kStepEnd)) meetings_.Arrive(worker, kStepEnd, now);
  }
  // True if what all workers are at is a step of which only the number counts: whose ends begin or
  // end no part of the run.
  bool IsPlainRound() const { return estimator_.IsPlainRound(); }
  // All workers end such a step, the last one now; by worker. Does what OnStepEnd and OnInstantDone
  // would, one by one. REQUIRES: IsPlainRound(); joint operations, and no couplings.
  void OnRoundEnd(std::span<const Instant> begins, std::span<const Instant> ends, Instant now) {
    estimator_.OnRoundEnd(begins, ends);
    result_.completions.Add(now, static_cast<int64_t>(ends.size()));
    for (size_t w = 0; options_.keep_step_ends && w < ends.size(); ++w)
      result_.step_ends[w].push_back(ends[w]);
  }
  // The engine passes them on when they are full.
  Meetings& meetings() { return meetings_; }
  const Meetings& meetings() const { return meetings_; }

  // Call when all of an instant has happened. `totals` gives what has been done by then, and is
  // asked once in a run.
  template <typename TotalsNow>
  void OnInstantDone(Instant now, TotalsNow totals) {
    if (estimator_.BeginsAt(now)) window_.Begin(now, totals());
  }

  // The run has ended. Call once.
  RunResult Finish(Instant now, UsageWindow::Totals totals) {
    window_.End(now, std::move(totals));
    result_.measured = estimator_.measured();
    result_.steps_per_second = result_.measured ? estimator_.StepsPerSecond() : 0;
    result_.counted_from = estimator_.begin();
    result_.counted = now - estimator_.begin();
    result_.step_times = estimator_.step_times();
    result_.first_half_steps_per_second = estimator_.FirstHalfStepsPerSecond();
    result_.second_half_steps_per_second = estimator_.SecondHalfStepsPerSecond(now);
    result_.utilization = window_.Utilization(job_.lanes(), job_.workers());
    result_.exposed_communication_fraction = window_.ExposedFraction(job_.workers());
    result_.waiting_fraction = window_.WaitingFraction(job_.workers());
    result_.straggler_fraction = meetings_.StragglerFraction();
    return std::move(result_);
  }

 private:
  const JobGraph& job_;
  const RunOptions& options_;
  ThroughputEstimator estimator_;
  Meetings meetings_;
  int32_t alike_ = 1;
  UsageWindow window_;
  RunResult result_;
};

}  // namespace stepcast
