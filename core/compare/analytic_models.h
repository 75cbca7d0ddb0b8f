// Formulas for the throughput of asynchronous training, from the phases or totals of one worker's
// step.
#pragma once

#include <cstdint>
#include <vector>

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

// Of all workers together.
double CynthiaStepsPerSecond(const CynthiaInputs& inputs, int32_t workers);

}  // namespace stepcast
