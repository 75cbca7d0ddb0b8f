// The downloads of workers' steps in the order of their ranks, with the computation that waits for
// them.
//
// In graph order and with fixed ranks all steps have one schedule; with recorded ranks each
// recorded step has its own, made when it is first drawn; with shuffled ranks each step of each
// worker. Threads: none; it belongs to one run. Memory: about 30 bytes an operation, with recorded
// ranks of every recorded step that is drawn, up to kMostKept of them; what is beyond is made anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/time.h"
#include "core/engine/job_graph.h"
#include "core/engine/lane_schedule.h"
#include "core/engine/phase_plan.h"
#include "core/engine/program.h"

namespace stepcast {

struct DownloadSchedule {
  std::vector<PhasePlan::DownloadPhase> phases;  // by hub
  std::vector<std::vector<Span>> chunks;         // by hub, the works of all; where they are kept
  std::shared_ptr<LaneSchedule> computation;
  // By computation: the service, of one hub's, that it waits for last; -1: none. Empty where that
  // is not known when a step begins, or every chunk is asked for.
  std::vector<int32_t> last_awaited;
};

class DownloadSchedules {
 public:
  // Both must outlive it. `traced`: of a run that notes every chunk. `keeps_chunks`: of links that
  // are told them.
  DownloadSchedules(const JobGraph& job, const PhasePlan& plan, bool traced, bool keeps_chunks);

  // Schedule of a step that repeats `recorded`; `ranks`: its own, by OpIndex, null without.
  std::shared_ptr<const DownloadSchedule> Of(int32_t recorded, const int32_t* ranks);

  // Operations, of all schedules of recorded steps, that are kept at most.
  static constexpr int64_t kMostKept = int64_t{1} << 21;

 private:
  std::shared_ptr<const DownloadSchedule> Make(const int32_t* ranks);

  const Program& graph_;
  const PhasePlan& plan_;
  const bool traced_;
  const bool keeps_chunks_;
  const Ranking::Rule rule_;
  std::shared_ptr<LaneSchedule> any_order_;                    // with shuffled ranks
  std::vector<std::shared_ptr<const DownloadSchedule>> kept_;  // by recorded step, or the only one
  int64_t kept_operations_ = 0;
};

}  // namespace stepcast
