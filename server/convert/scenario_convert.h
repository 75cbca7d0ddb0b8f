// Conversions between the messages of scenario.proto and the core's scenario and options.
//
// `path` is where the message stands in its request; faults are unknown enum numbers and durations
// out of range. A resolved scenario or options in wire form resolves to itself again. Threads: pure
// functions.
#pragma once

#include <optional>
#include <string>

#include "google/protobuf/duration.pb.h"

#include "core/base/error.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "stepcast/v1/scenario.pb.h"

namespace stepcast::server {

PipelineDraft FromWire(const v1::Pipeline& wire, const std::string& path, FaultList& faults);
v1::Pipeline ToWire(const Pipeline& pipeline);
// The pipeline that a search tried: stages, micro-batches, schedule and chunks.
v1::Pipeline ToWire(const PipelineDraft& draft);

// 0 workers are taken as unset.
ScenarioDraft FromWire(const v1::Scenario& wire, const std::string& path, FaultList& faults);
SimulationOptionsDraft FromWire(const v1::SimulationOptions& wire, const std::string& path,
                                FaultList& faults);

// An unknown kind is unspecified, too.
MeasuredCollective FromWire(const v1::AllReduce::MeasuredCollective& wire, const std::string& path,
                            FaultList& faults);
v1::AllReduce::MeasuredCollective ToWire(const MeasuredCollective& point);

AllReduceDraft FromWire(const v1::AllReduce& wire, const std::string& path, FaultList& faults);
v1::AllReduce ToWire(const AllReduce& job);
Contention FromWire(const v1::AllReduce::Contention& wire);
v1::AllReduce::Contention ToWire(const Contention& contention);

v1::Scenario ToWire(const Scenario& scenario);
v1::SimulationOptions ToWire(const SimulationOptions& options);

// Seconds; none, and a fault, for what google.protobuf.Duration forbids (over 10,000 years, nanos
// out of range or of another sign).
std::optional<double> FromWire(const google::protobuf::Duration& wire, const std::string& path,
                               FaultList& faults);
// To the nearest nanosecond. REQUIRES: finite and within a Duration's range.
google::protobuf::Duration DurationOf(double seconds);
// The longest time that a Duration can hold.
inline constexpr double kLongestSeconds = 315'576'000'000;

}  // namespace stepcast::server
