// Random jobs whose steps run in phases, to hold the fast engine against the plain one: full of
// ties, zero lengths, windows and unlike workers.
#pragma once

#include <cstdint>

#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast::testing {

struct PhaseCase {
  Profile profile;
  Scenario scenario;
  RunOptions options;
  JobGraph job;
  bool has_cut = false;  // a loss between forward and backward computation
};

// The same case for the same seed, everywhere, in graph order.
PhaseCase MakePhaseCase(uint64_t seed);
// The same case but for the order of its transfers: fixed ranks of some of them, ranks by recorded
// step, or a new order in every step.
PhaseCase MakeOrderedPhaseCase(uint64_t seed);
// A case whose links serve first come first; every other one with an order.
PhaseCase MakeFirstComePhaseCase(uint64_t seed);
// A case whose workers' own links may bind, some of them narrower than a server's; every other one
// with an order.
PhaseCase MakeNarrowPhaseCase(uint64_t seed);
// A case with one server whose links are shared in turns, from a sliver of a chunk to several of
// them; every other one with an order.
PhaseCase MakeTurnsPhaseCase(uint64_t seed);

}  // namespace stepcast::testing
