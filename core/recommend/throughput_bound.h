// An upper bound of throughput for every number of workers, by what the links and the processors
// can carry: known before anything is simulated.
//
// A step of one worker takes at least its longest chain of waits, and at least the work of its
// busiest lane, each at the full speed of its link, so W workers make at most W steps in that time.
// A server's link carries at most its bandwidth, however many there are.
// Both hold for every order, sharing and start. (That W workers make at most W times what one does
// is no bound: a delay may shorten a step, as Graham showed of list schedules.)
// Threads: immutable.
// Cost: linear in the graph and its recorded steps, once for all numbers of workers.
#pragma once

#include <cstdint>

#include "core/engine/program.h"

namespace stepcast {

class ThroughputBound {
 public:
  explicit ThroughputBound(const Program& graph);

  // In the long run. A measurement may report more by chance, of the recorded steps it samples, and
  // by the steps at the ends of the counted time, which count whole though they lie partly outside:
  // about 2 of those counted. Never falls with `workers`.
  double StepsPerSecond(int32_t workers) const;

 private:
  double one_worker_ = 0;  // steps per second
  double links_ = 0;
};

}  // namespace stepcast
