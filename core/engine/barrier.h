// Where the workers of a synchronous job wait for each other at the end of each step.
//
// Threads: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/time.h"

namespace stepcast {

class Barrier {
 public:
  // Iterations up to `warmup` do not count for StragglerFraction.
  Barrier(int32_t workers, int32_t warmup) : workers_(workers), warmup_(warmup) {}

  void Arrive(Instant now) {
    if (waiting_++ == 0) first_ = now;
  }
  bool Full() const { return waiting_ == workers_; }
  // REQUIRES: Full().
  void Pass(Instant now) {
    waiting_ = 0;
    if (++iterations_ > warmup_)
      straggler_fraction_ =
          std::max(straggler_fraction_, ToSeconds(now - first_) / ToSeconds(now - last_));
    last_ = now;
  }
  // The largest share of an iteration that its first worker has waited for its last one.
  double StragglerFraction() const { return straggler_fraction_; }

 private:
  const int32_t workers_;
  const int32_t warmup_;
  int32_t waiting_ = 0;
  int64_t iterations_ = 0;
  Instant first_;
  Instant last_;
  double straggler_fraction_ = 0;
};

}  // namespace stepcast
