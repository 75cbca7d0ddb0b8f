// The parts of one step of a job, before simulating: the profile's operations with the
// scenario's servers, parsing and speeds.
//
// Written from the definition alone (ICPE 2020, 3.2.1, 3.4 and 5), as a second opinion on
// Program: plain structs, nothing packed or shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "tests/core/network/exact.h"

namespace stepcast::testing {

struct NaiveOperation {
  std::string name;  // of the profile's operation; empty: parsing
  Resource resource = Resource::kUnspecified;
  int server = 0;                        // 0 for kWorker
  int64_t bytes = 0;                     // transfers
  std::vector<Exact> durations_ns;       // computations, at speed 1: one a recorded step
  std::vector<int64_t> recorded_end_ns;  // one a recorded step; transfers
  std::set<size_t> waiting_for;
  // Where servers sum, of a download: what has to be over on every worker, in the same step or in
  // the one before.
  std::set<size_t> sum_of;
  bool sum_of_last_step = false;
};

// In graph order, each parsing directly after its transfer.
std::vector<NaiveOperation> MakeNaiveGraph(const Profile& profile, const Scenario& scenario);

}  // namespace stepcast::testing
