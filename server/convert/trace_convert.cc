#include "server/convert/trace_convert.h"

#include <utility>

#include "server/convert/profile_source.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::server {

GenerateTraceCall FromWire(const v1::GenerateTraceRequest& wire) {
  GenerateTraceCall call{.source = SourceOf(wire)};
  FaultList faults;
  call.draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  call.draft.options = FromWire(wire.options(), "options", faults);
  call.faults = std::move(faults).Take();
  return call;
}

}  // namespace stepcast::server
