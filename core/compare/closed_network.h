// The queueing model of asynchronous training: workers that take turns at two shared links.
//
// Source: Lin, Paolieri, Chou, Golubchik: "A Model-Based Approach to Streamlining Distributed
// Training for Asynchronous SGD", MASCOTS 2018, of which ICPE 2020 (sections 1, 4.4 and 6) says: a
// queueing model whose parameters are the durations of the four phases of one worker's step, one
// after the other. The equations are not printed there. Taken here: a closed network of W
// customers; both links are shared equally by who is on them (ICPE 2020, 3.1), and nobody waits for
// a worker's or the server's computation (3.2.3). Its mean value analysis is exact whatever the
// durations' distribution (Baskett et al. 1975; Reiser and Lavenberg 1980). Threads: pure function.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

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

}  // namespace stepcast
