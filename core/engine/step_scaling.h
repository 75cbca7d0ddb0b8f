// The random lengths of steps beyond those that were recorded: factors of what a worker computes.
//
// A step repeats a recorded one with all its computations scaled by one factor, so that operations
// that were slow together stay so, and the logarithm of a step's computation is normally
// distributed around that of its recorded worker. A factor is a multiple of 1/kUnit and durations
// are rounded to nanoseconds first, so scaled times are whole ticks: a sum of scaled durations is
// the scaled sum, and the fast engines stay exact.
// Source of the model: core/model/step_model.h. Threads: immutable once made.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"

namespace stepcast {

// A duration in whole nanoseconds, not shortened to nothing.
inline Span InWholeNanoseconds(Span span) {
  if (span.ticks == 0) return span;
  return Nanoseconds(std::max<int64_t>(1, ToNanoseconds(span)));
}

class StepScaling {
 public:
  // One as a factor.
  static constexpr int64_t kUnit = kTicksPerNanosecond;
  // The largest factor, in kUnit.
  static constexpr int64_t kMaxScale = 64 * kUnit;
  // Factors are drawn from so many of equal probability.
  static constexpr int kQuantileBits = 12;

  // `logarithms`: by recorded worker and step, the logarithm of the step's computation over its
  // worker's mean. Drawn factors have mean exp(shift). `own_deviation`: of the logarithm, of each
  // worker's step by itself; `common_deviation`: of a step of all workers alike.
  StepScaling(std::vector<std::vector<double>> logarithms, double own_deviation,
              double common_deviation, double shift);

  // The factor, in kUnit, of a step that repeats that recorded one.
  int64_t Draw(Random& own, Random& common, size_t recorded_worker, int32_t step) const {
    return Scale(own.Next() >> (64 - kQuantileBits),
                 common_.empty() ? 0 : common.Next() >> (64 - kQuantileBits), recorded_worker,
                 step);
  }

  // The same at these probabilities of the two distributions, from 0 to below 1.
  int64_t At(double own, double common, size_t recorded_worker, int32_t step) const;

 private:
  int64_t Scale(uint64_t own, uint64_t common, size_t recorded_worker, int32_t step) const {
    double factor =
        quantiles_[own] * inverse_[recorded_worker % inverse_.size()][static_cast<size_t>(step)];
    if (!common_.empty()) factor *= common_[common];
    return std::clamp<int64_t>(std::llround(factor), 1, kMaxScale);
  }
  // Factors of equal probability, with that mean.
  static std::vector<double> Quantiles(double deviation, double mean);

  std::vector<double> quantiles_;             // in kUnit
  std::vector<double> common_;                // empty: none
  std::vector<std::vector<double>> inverse_;  // by recorded worker and step
};

}  // namespace stepcast
