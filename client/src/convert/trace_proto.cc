#include "client/src/convert/trace_proto.h"

#include "client/src/convert/prediction_proto.h"
#include "client/src/convert/scenario_proto.h"

namespace stepcast::client {

void ToProto(const GenerateTraceRequest& from, v1::GenerateTraceRequest& to) {
  ToProto(from.source, to);
  if (from.scenario) ToProto(*from.scenario, *to.mutable_scenario());
  ToProto(from.options, *to.mutable_options());
}

}  // namespace stepcast::client
