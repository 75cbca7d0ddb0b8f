// A recommendation in words: one plain sentence that names the numbers.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/predict/certainty.h"
#include "core/recommend/choice_search.h"
#include "core/recommend/recommendation.h"
#include "core/recommend/recommendation_query.h"

namespace stepcast {

// `1 worker`, `2 workers`.
std::string CountText(int32_t count, std::string_view noun);

// Three digits, in the unit that suits: `0.25 s`, `3 min`, `1.5 h`, `4 d`. REQUIRES: seconds >= 0.
std::string TimeText(double seconds);

struct ReasonFacts {
  const RecommendationQuery& query;
  std::vector<TriedChoice> tried;  // in ascending order of servers, then of workers
  TriedChoice chosen;              // or nearest
  std::vector<Choice> ties;
  bool cut_short = false;
};

// The edge of what was asked about that the chosen number of workers, and of servers, lies at. None
// for one worker, than which there are no fewer, and for servers that were not to be chosen.
// kOnlyFeasible: of several that were tried no other keeps the constraints.
ChoiceEdge WorkersEdge(const ReasonFacts& facts);
ChoiceEdge ServersEdge(const ReasonFacts& facts);

// The reason for the choice that is recommended: its throughput, speed-up and efficiency, what the
// objective compares, what it takes and costs, what is as good, what a change of the running job
// means, what one worker more would change, and the bottleneck. Where it lies at the edge of what
// was asked about it says so, with how throughput came there; where nothing else was allowed it
// claims no comparison.
// It says so where throughput falls beyond its highest, by more than the intervals and a twentieth
// of a percent.
// REQUIRES: chosen keeps the constraints.
std::string ReasonFor(const ReasonFacts& facts);

// The reason why nothing is recommended: the constraints that no choice keeps, the choice that
// comes nearest, and what it misses by how much.
// REQUIRES: chosen does not keep the constraints.
std::string InfeasibleReasonFor(const ReasonFacts& facts);

}  // namespace stepcast
