#include "core/engine/job_graph.h"

#include <algorithm>

namespace stepcast {

bool JobGraph::StepsStandAlone() const {
  const bool meets_at_ends =
      std::all_of(couplings.begin(), couplings.end(),
                  [](const Coupling& coupling) { return coupling.op == kStepEnd; });
  const bool draws_apart = drawing != StepDrawing::kJoint;
  return programs.size() == 1 && meets_at_ends && peer_edges.empty() && gatherings.empty() &&
         joint.ops.empty() && draws_apart && !slows_computation();
}

}  // namespace stepcast
