// The flags of a job that differs from the recorded one: Scenario.change.
#pragma once

#include "stepcast/v1/scenario.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stepcast::client {

// The scenario outlives the parse.
void DeclareChangeFlags(CLI::App& app, v1::Scenario& scenario);

}  // namespace stepcast::client
