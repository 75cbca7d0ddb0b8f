#include "core/engine/upload_streams.h"

#include "core/engine/lane_schedule.h"

namespace stepcast {

bool UploadStreams::Fit(const Program& graph, const PhasePlan& plan) {
  if (plan.after_cut.empty()) return false;
  for (const OpIndex op : plan.uploads) {
    if (graph.work(op).services > 1) return false;
  }
  for (size_t hub = 0; hub < plan.uploads_to.size(); ++hub) {
    if (plan.updates_on[hub].empty()) continue;
    if (!LaneSchedule(graph, plan.uploads_to[hub], plan.updates_on[hub], {}).in_order_of_arrival())
      return false;
  }
  return true;
}

}  // namespace stepcast
