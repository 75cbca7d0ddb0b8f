#include "core/engine/upload_streams.h"

#include "core/engine/lane_schedule.h"

namespace stepcast {

bool UploadStreams::Fit(const StepGraph& graph, const PhasePlan& plan) {
  if (plan.after_cut.empty()) return false;
  for (const OpIndex op : plan.uploads) {
    if (graph.work(op).services > 1) return false;
  }
  for (size_t server = 0; server < plan.uploads_to.size(); ++server) {
    if (plan.updates_on[server].empty()) continue;
    if (!LaneSchedule(graph, plan.uploads_to[server], plan.updates_on[server], {})
             .in_order_of_arrival())
      return false;
  }
  return true;
}

}  // namespace stepcast
