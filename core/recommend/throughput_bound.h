// Upper bounds of throughput: from the numbers of workers that are known, and from the graph alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/communication/job.h"
#include "core/engine/program.h"
#include "core/model/scenario.h"
#include "core/predict/pipeline_job.h"

namespace stepcast {

// An upper bound of a throughput curve between and beyond the numbers of workers that are known.
//
// The shape is that of an honest saturation: each worker more adds no more than the one before.
// Curves are not always so (they may fall, waver with the way workers keep in step, and rise
// again), so where a number turns out higher than this shape allowed, that much is allowed
// everywhere else, too.
// Threads: none.
// Cost: O(log n) of the numbers known.
class CurveCeiling {
 public:
  // A known number of workers and its throughput, in any unit: as high as it may be by its
  // interval.
  void Know(int32_t workers, double highest) { known_[workers] = highest; }

  // Bound of a number of workers that is not known, by the others alone; infinity: none is known.
  double At(int32_t workers) const;
  // The share by which a number that was just found is above what the others allowed; 0 where it is
  // not.
  double ExcessOf(int32_t workers, double found) const;

 private:
  std::map<int32_t, double> known_;
};

// An upper bound of throughput for every number of workers, by what the links and the processors
// can carry: known before anything is simulated.
//
// A step of one worker takes at least its longest chain of waits, and at least the work of its
// busiest lane, each at the full speed of its link, so W workers make at most W steps in that time;
// of a recording of several workers each in its own.
// A server's link carries at most its bandwidth, however many there are.
// Collectives run one after the other, each as long as it takes alone.
// All hold for every order, sharing and start. (That W workers make at most W times what one does
// is no bound: a delay may shorten a step, as Graham showed of list schedules.)
// Threads: immutable.
// Cost: linear in the graph and its recorded steps, once for all numbers of workers.
class ThroughputBound {
 public:
  // No bound.
  ThroughputBound() = default;
  // REQUIRES: the program is this scenario's, with as many workers as are asked about at most where
  // they share updates.
  ThroughputBound(const JobProgram& job, const Scenario& scenario);
  // Bound of a pipeline: MostStepsPerSecond, of which chance may leave a little more.
  ThroughputBound(PipelinePlan plan, const Scenario& scenario);

  // In the long run. A measurement may report more by chance, of the recorded steps it samples, and
  // by the steps at the ends of the counted time, which count whole though they lie partly outside:
  // about 2 of those counted. Never falls with `workers`.
  double StepsPerSecond(int32_t workers) const;

 private:
  double CollectivesAlone(int32_t workers) const;

  std::vector<double> alone_;  // steps per second of one worker, by recorded worker
  double links_ = 0;
  Scenario scenario_;
  std::vector<PlannedCollective> collectives_;
  std::optional<PipelinePlan> plan_;
};

}  // namespace stepcast
