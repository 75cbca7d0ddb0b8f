#include "core/trace/trace_lanes.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

#include "core/communication/parameter_servers.h"

namespace stepcast {

namespace {

const char* KindName(Resource kind) {
  switch (kind) {
    case Resource::kDownlink:
      return "downlink";
    case Resource::kUplink:
      return "uplink";
    case Resource::kParameterServer:
      return "parameter server";
    default:
      return "worker";
  }
}

std::string NameOf(const ServerLanes& lanes, LaneIndex lane) {
  const LaneSpec spec = lanes.Specs()[lane];
  const Resource kind = ServerLanes::ResourceOf(spec);
  if (kind == Resource::kWorker || lanes.servers == 1) return KindName(kind);
  return absl::StrCat(KindName(kind), kind == Resource::kParameterServer ? " " : " of server ",
                      spec.index);
}

std::vector<LaneIndex> InOrderOfUse(const ServerLanes& lanes) {
  std::vector<LaneIndex> order;
  order.reserve(static_cast<size_t>(lanes.count()));
  for (int32_t server = 0; server < lanes.servers; ++server)
    order.push_back(lanes.Downlink(server));
  order.push_back(ServerLanes::kWorker);
  for (int32_t server = 0; server < lanes.servers; ++server) order.push_back(lanes.Uplink(server));
  for (int32_t server = 0; server < lanes.servers; ++server) order.push_back(lanes.Server(server));
  return order;
}

}  // namespace

TraceLanes::TraceLanes(const Program& graph)
    : shown_{{.thread_id = 1, .name = "steps"}},
      thread_of_(static_cast<size_t>(graph.lanes().count()), 0) {
  for (const LaneIndex lane : InOrderOfUse(ServerLanes::Of(graph))) {
    if (graph.operations_on(lane) == 0) continue;
    const auto thread = static_cast<int32_t>(shown_.size()) + 1;
    thread_of_[static_cast<size_t>(lane)] = thread;
    shown_.push_back({.thread_id = thread, .name = NameOf(ServerLanes::Of(graph), lane)});
  }
}

}  // namespace stepcast
