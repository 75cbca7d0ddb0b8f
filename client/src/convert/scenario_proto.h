// Scenarios and simulation options between structs and messages.
//
// ToProto fills a message that is empty before; FromProto fills a struct that is
// default-constructed before.
#pragma once

#include "stepcast/scenario.h"
#include "stepcast/simulation_options.h"
#include "stepcast/v1/scenario.pb.h"

namespace stepcast::client {

void ToProto(const WorkerGroup& from, v1::WorkerGroup& to);
void FromProto(const v1::WorkerGroup& from, WorkerGroup& to);

void ToProto(const Scenario& from, v1::Scenario& to);
void FromProto(const v1::Scenario& from, Scenario& to);

void ToProto(const SimulationOptions& from, v1::SimulationOptions& to);
void FromProto(const v1::SimulationOptions& from, SimulationOptions& to);

}  // namespace stepcast::client
