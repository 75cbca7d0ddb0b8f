// Models of training with parameter servers that know less than the simulation: formulas from the
// phases or totals of one worker's step, and models without contention, measured on one worker's
// recorded steps.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/predict/replications.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The queueing model of asynchronous training: workers that take turns at two shared links.
//
// Source: Lin, Paolieri, Chou, Golubchik: "A Model-Based Approach to Streamlining Distributed
// Training for Asynchronous SGD", MASCOTS 2018, of which ICPE 2020 (sections 1, 4.4 and 6) says: a
// queueing model whose parameters are the durations of the four phases of one worker's step, one
// after the other. The equations are not printed there. Taken here: a closed network of W
// customers; both links are shared equally by who is on them (ICPE 2020, 3.1), and nobody waits for
// a worker's or the server's computation (3.2.3). Its mean value analysis is exact whatever the
// durations' distribution (Baskett et al. 1975; Reiser and Lavenberg 1980). Threads: pure function.

// Mean seconds of the phases of one worker's step.
struct PhaseSeconds {
  double downlink = 0;
  double worker = 0;
  double uplink = 0;
  double parameter_server = 0;

  double Sum() const { return downlink + worker + uplink + parameter_server; }
};

// Steps per second of 1 to max_workers workers. One worker: 1 / Sum(). No number makes more than
// the longer link phase allows, 1 / its seconds. REQUIRES: no phase is negative, Sum() > 0. Cost:
// linear in max_workers.
std::vector<double> ClosedNetworkStepsPerSecond(const PhaseSeconds& phases, int32_t max_workers);

// Cynthia's formula for asynchronous training.
//
// Source: Zheng et al.: "Cynthia: Cost-Efficient Cloud Resource Provisioning for Predictable
// Distributed Deep Neural Network Training", ICPP 2019, as ICPE 2020 prints it in section 1:
// examples per second of W workers with batches of K are W K / (T_P max(1, W U_1) + 2 T_C). How U_1
// is measured is left open there. Taken here: the part of one worker's step, T_P + 2 T_C, in which
// the busiest server's link carries something, which is what makes halving T_C "affect utilization
// U_1 and throughput" (section 4.4). With U_1 W above 1 and W without bound the formula tends to 1
// / (T_P U_1) steps per second, which may be more than the link can carry: that is the model's.
// Threads: pure functions.
struct CynthiaInputs {
  double computation_seconds = 0;  // T_P: a batch on the worker
  double transfer_seconds = 0;  // T_C: the model, or its updates, over the worker's link; the mean
                                // of the two where they differ
  double busiest_server_share = 1;  // of the bytes of a step; 1 with one server

  // U_1, from 0 to 1. REQUIRES, here and below: a step takes time.
  double NetworkUtilization() const;
  // With T_C reduced to half, the two directions being resources of their own (ICPE 2020,
  // section 4.4).
  CynthiaInputs Halved() const;
};

// Steps per second of all workers together.
double CynthiaStepsPerSecond(const CynthiaInputs& inputs, int32_t workers);

// The replay of the recorded steps, one after the other, by one worker, or by several that meet in
// collectives and so go through the same steps together.
struct RecordedRun {
  Span length;  // of all steps together
  SimulationStatistics simulation;
};

// REQUIRES: scenario was resolved for this profile, and has one worker or is of collectives;
// `ranked` is its graph.
// `trace` may be null. Failure: as Simulate.
absl::StatusOr<RecordedRun> RunRecordedSteps(const Profile& profile, const Scenario& scenario,
                                             const RankedGraph& ranked, TraceSink* trace,
                                             StopCheck stop);

// The inputs of coarse models: phases and totals of one worker's step in a scenario.
struct CoarseProfile {
  PhaseSeconds phases;  // of simulated transfers: recorded ones hold waiting and parsing, too (ICPE
                        // 2020, section 2)
  CynthiaInputs cynthia;  // parsing on the worker is computation (3.2.1)
  SimulationStatistics simulation;
};

// Means over the recorded steps, gone through once, one after the other.
// REQUIRES: scenario was resolved for this profile and has one worker. Failure: as Simulate.
absl::StatusOr<CoarseProfile> MeasureCoarseProfile(const Profile& profile, const Scenario& scenario,
                                                   StopCheck stop);

// A model in the manner of Daydream: the graph of one worker, with one coarse operation for each
// tensor that travels.
//
// Source: Zhu et al.: "Daydream", ATC 2020, as dPRO (Hu et al., MLSys 2022, sections 2.2 and 7)
// describes it: a tensor takes its size over the bandwidth, in the graph of one worker; how it
// waits and is sent is not modelled. The bandwidth of one of several workers is left open there.
// Taken here: each has its W-th part of the server's link for itself, always, and its own link
// whole; no parsing, no switching between streams. Run by our engine. Threads: pure function.
struct CoarseTensorsAnswer {
  double steps_per_second = 0;  // of all workers together; infinite where a step takes no time
  SimulationStatistics simulation;
};

// REQUIRES: scenario was resolved for this profile and has one worker. Failure: as Simulate.
absl::StatusOr<CoarseTensorsAnswer> PredictByCoarseTensors(const Profile& profile,
                                                           const Scenario& scenario,
                                                           int32_t workers, StopCheck stop);

}  // namespace stepcast
