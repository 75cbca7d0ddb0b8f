// The parts of the plain engine's state, and what it asks of a job before it runs. Threads: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

#include "core/base/bounded_list.h"
#include "core/base/time.h"
#include "core/engine/job_graph.h"
#include "core/engine/lane_queues.h"
#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "core/engine/step_sampler.h"
#include "core/network/link_level.h"

namespace stepcast {

struct PlainRunState {
  struct WorkerState {
    const Program* program = nullptr;
    StepSampler sampler;
    double compute_speed = 1;
    int32_t step = 0;      // completed
    int32_t recorded = 0;  // the recorded step this one was sampled from
    OpIndex operations_left = 0;
    Instant step_begin;
    BoundedList<ChunkRecord> trace{0};  // of the current step, where one is wanted
    LevelClock clock;                   // of its computation, where transfers slow it down
  };
  struct Running {
    Chunk chunk;
    Instant start;
  };
  // The chunks of a lane that its network has and has not delivered, in their order.
  struct OnTheirWay {
    std::deque<Running> chunks;
    size_t gathered = 0;  // of the first of them
    Instant last;         // delivery
  };
  // The flow of a link: worker x `lanes` + `index`, of a network.
  struct Route {
    size_t network = 0;
    int32_t lanes = 0;
    int32_t index = 0;
  };
  struct WorkerLane {
    int32_t worker = 0;
    LaneIndex lane = 0;
  };

  // True if workers that begin a step at one instant have the same of it, and of all steps after
  // it, whatever was before.
  static bool AreAlike(const JobGraph& job, const RunOptions& options) {
    const auto& speeds = job.compute_speeds;
    return job.workers() > 1 && job.programs.size() == 1 && !job.joint.ops.empty() &&
           (job.step_count() == 1 || job.drawing != StepDrawing::kIndependent) &&
           std::adjacent_find(speeds.begin(), speeds.end(), std::not_equal_to<>()) ==
               speeds.end() &&
           job.rankings.empty() && job.networks.empty() && job.couplings.empty() &&
           job.peer_edges.empty() && job.gatherings.empty() && options.scaling == nullptr &&
           options.trace == nullptr && options.fastest_path != EnginePath::kPlain;
  }
  static OpIndex LargestOf(const JobGraph& job) {
    OpIndex size = 0;
    for (const auto& program : job.programs) size = std::max(size, program->size());
    return size;
  }
};

}  // namespace stepcast
