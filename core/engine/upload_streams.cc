#include "core/engine/upload_streams.h"

namespace stepcast {

bool UploadStreams::Fit(const Program& graph, const PhasePlan& plan) {
  if (plan.after_cut.empty()) return false;
  for (const OpIndex op : plan.uploads) {
    if (graph.work(op).services > 1) return false;
  }
  for (size_t hub = 0; hub < plan.uploads_to.size(); ++hub) {
    for (const OpIndex op : plan.uploads_to[hub]) {
      if (graph.dependents(op).size() > 1) return false;
    }
    // Updates of a hub each wait for one upload alone.
    for (const OpIndex op : plan.updates_on[hub]) {
      if (graph.dependency_count(op) != 1 || !graph.dependents(op).empty()) return false;
    }
  }
  return true;
}

}  // namespace stepcast
