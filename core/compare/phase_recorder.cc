#include "core/compare/phase_recorder.h"

#include <algorithm>

#include "core/communication/parameter_servers.h"

namespace stepcast {

void PhaseRecorder::OnStep(std::span<const ChunkRecord> chunks) {
  Instant step_end = step_start_;
  Instant downlink_end = step_start_;
  Instant uplink_start = kEndOfTime;
  Instant uplink_end = step_start_;
  for (const ChunkRecord& chunk : chunks) {
    step_end = std::max(step_end, chunk.end);
    const Resource resource = ServerLanes::ResourceOf(graph_, chunk.op);
    if (resource == Resource::kDownlink) downlink_end = std::max(downlink_end, chunk.end);
    if (resource == Resource::kUplink) {
      uplink_start = std::min(uplink_start, chunk.start);
      uplink_end = std::max(uplink_end, chunk.end);
    }
  }
  // Without an upload the worker computes to the end.
  uplink_start = std::clamp(uplink_start, downlink_end, step_end);
  uplink_end = std::max(uplink_end, uplink_start);
  sum_.downlink += ToSeconds(downlink_end - step_start_);
  sum_.worker += ToSeconds(uplink_start - downlink_end);
  sum_.uplink += ToSeconds(uplink_end - uplink_start);
  sum_.parameter_server += ToSeconds(step_end - uplink_end);
  step_start_ = step_end;
  ++steps_;
}

PhaseSeconds PhaseRecorder::Mean() const {
  const auto steps = static_cast<double>(steps_);
  return {.downlink = sum_.downlink / steps,
          .worker = sum_.worker / steps,
          .uplink = sum_.uplink / steps,
          .parameter_server = sum_.parameter_server / steps};
}

}  // namespace stepcast
