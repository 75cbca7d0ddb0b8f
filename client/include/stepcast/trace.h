// What the first steps of a job look like: request of Client::GenerateTrace.
//
// Fields, units, defaults and bounds are those of proto/stepcast/v1/prediction_service.proto, which
// says what the trace is, too.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

#include "stepcast/prediction.h"
#include "stepcast/scenario.h"
#include "stepcast/simulation_options.h"

namespace stepcast::client {

struct GenerateTraceRequest {
  ProfileSource source;
  std::optional<Scenario> scenario;  // empty: one worker, as recorded
  SimulationOptions options;         // steps_per_worker (default 5), seed and start

  friend bool operator==(const GenerateTraceRequest&, const GenerateTraceRequest&) = default;
};

// Takes the next piece of a trace, which may end within a character. Not OK: no more is wanted, and
// why.
using TracePieces = std::function<absl::Status(std::string_view piece)>;

}  // namespace stepcast::client
