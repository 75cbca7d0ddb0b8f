#include "core/engine/throughput_estimator.h"

#include <cstddef>

namespace stepcast {

namespace {

double PerSecond(int64_t count, Span span) {
  return span.ticks > 0 ? static_cast<double>(count) / ToSeconds(span) : 0;
}

}  // namespace

void ThroughputEstimator::Note(int32_t worker, int64_t steps, Instant now) {
  Worker& state = workers_[static_cast<size_t>(worker)];
  state.steps = steps;
  state.last = now;
  if (steps == warmup_) ++warm_count_;
  if (steps == middle_) ++middle_count_;
  if (steps == required_) ++done_count_;
  if (!begun_) return;
  if (state.inside == 0) state.first = now;
  ++state.inside;
}

void ThroughputEstimator::OnStepEnd(int32_t worker, Instant begin, Instant now) {
  Note(worker, workers_[static_cast<size_t>(worker)].steps + 1, now);
  if (!begun_) return;
  step_times_.Add(now - begin);
  ++(middle_passed_ ? second_half_ : first_half_);
}

void ThroughputEstimator::OnRoundEnd(std::span<const Instant> begins,
                                     std::span<const Instant> ends) {
  for (size_t w = 0; w < worker_count_; ++w) {
    ++workers_[w].steps;
    workers_[w].last = ends[w];
  }
  if (!begun_) return;
  for (size_t w = 0; w < worker_count_; ++w) {
    if (workers_[w].inside++ == 0) workers_[w].first = ends[w];
    step_times_.Add(ends[w] - begins[w]);
  }
  (middle_passed_ ? second_half_ : first_half_) += static_cast<int64_t>(worker_count_);
}

bool ThroughputEstimator::EnterPhase(Instant now) {
  if (!middle_passed_ && middle_count_ == worker_count_) {
    middle_passed_ = true;
    middle_at_ = now;
  }
  if (begun_ || warm_count_ < worker_count_) return false;
  begun_ = true;
  begin_ = now;
  // Steps that have ended at this very instant are inside.
  for (Worker& worker : workers_) {
    if (worker.last != now) continue;
    worker.first = now;
    worker.inside = 1;
  }
  return true;
}

bool ThroughputEstimator::measured() const {
  if (until_ < kEndOfTime) return step_times_.count() > 0;
  for (const Worker& worker : workers_) {
    if (worker.inside < 2) return false;
  }
  return true;
}

double ThroughputEstimator::StepsPerSecond() const {
  if (until_ < kEndOfTime) return PerSecond(step_times_.count(), until_ - Instant{});
  double sum = 0;
  for (const Worker& worker : workers_)
    sum += PerSecond(worker.inside - 1, worker.last - worker.first);
  return sum;
}

double ThroughputEstimator::FirstHalfStepsPerSecond() const {
  return PerSecond(first_half_, middle_at_ - begin_);
}

double ThroughputEstimator::SecondHalfStepsPerSecond(Instant end) const {
  return PerSecond(second_half_, end - middle_at_);
}

}  // namespace stepcast
