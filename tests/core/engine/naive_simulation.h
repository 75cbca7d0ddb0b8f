// A second, naive simulation of a job, to hold the engine against: maps and lists, everything
// rescanned at every event, no rounding at all.
//
// Written from the definition alone (ICPE 2020, 3.1-3.4 and 5, with the errata) before anyone
// looked at the engine. Every running chunk keeps its own remaining work, which is reduced at every
// event, as in Algorithm 3.1. Cost: quadratic and worse, in numbers that grow with every event: for
// graphs of up to some dozens of operations over a few steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "tests/core/network/exact.h"

namespace stepcast::testing {

struct NaiveOptions {
  int steps_per_worker = 0;  // warm-up included
  int warmup_steps = 0;
  // The recorded step that a worker runs as its n-th (n from 0).
  std::function<size_t(size_t worker, size_t n)> sample;
  // With kRandom, kTic and kTac: the ranks of the transfers (by place in the naive graph) in a
  // worker's n-th step.
  std::function<std::map<size_t, int64_t>(size_t worker, size_t n)> ranks;
  // None: exact. Else called once for every chunk of some length: nanoseconds to add to its time
  // alone, to see how far such a change spreads.
  std::function<Exact()> disturbance_ns;
};

// The number of times that a run came upon what is easy to get wrong.
struct NaiveEvents {
  int instants = 0;            // at which anything happened
  int stopped_streams = 0;     // after their first window
  int rejoined_behind = 0;     // of those, with others in the queue
  int overtakings = 0;         // a transfer chosen though another came earlier
  int zero_length = 0;         // computations of no length
  int ties = 0;                // instants at which two chunks or more end
  int ties_of_one_worker = 0;  // of those, two of the same worker
  int released_together =
      0;  // instants at which one lane gets operations that different completions have released
  int stopped_at_arrival =
      0;  // instants at which a stopped stream rejoins where another operation has just arrived
  int ready_together = 0;     // instants at which one lane gets two operations or more
  int unequal_rates = 0;      // instants at which the flows of one server's link differ in rate
  int waits_for_links = 0;    // chunks that wait behind another worker's on a link that is served
                              // first come, counted at every instant
  int arrivals_together = 0;  // of those, behind one that arrived at the same instant
  int turns_ended = 0;        // on a link that is served in turns
  int waits_at_second = 0;    // of pieces that one link has passed, for the turn of another flow
  int newcomers_first = 0;    // turns of a worker that was idle, with others that were not waiting
  int uploads_while_downloading = 0;
  int sums_awaited = 0;     // downloads that only a sum kept from their lane
  int beyond_required = 0;  // steps ended by workers that had ended all of theirs
};

// One service of an operation.
struct NaiveChunk {
  size_t worker = 0;
  size_t step = 0;
  size_t operation = 0;
  int service = 0;  // of a transfer: which one, from 0
  Exact start_ns;
  Exact end_ns;
};

struct NaiveResult {
  std::vector<std::vector<Exact>> step_ends_ns;  // by worker: up to the instant at which the last
                                                 // worker ends its last required step
  std::optional<Exact>
      steps_per_second;            // none: some worker has not two completions in the interval
  std::vector<NaiveChunk> chunks;  // all that ended, in no promised order
  NaiveEvents events;
};

// REQUIRES: `scenario` was resolved for the profile.
NaiveResult SimulateNaively(const Profile& profile, const Scenario& scenario,
                            const NaiveOptions& options);

// The sum of the workers' rates, in steps per nanosecond, by the definition. completions[w]: the
// worker's offset, then the ends of its steps; the offset counts only with no warm-up.
std::optional<Exact> NaiveStepsPerNanosecond(const std::vector<std::vector<Exact>>& completions,
                                             size_t warmup, size_t required);

}  // namespace stepcast::testing
