// The sentences of an answer about strategies: why it is advised, what its costs rest on, and why
// there is no bound.
//
// Threads: a pure function.
#pragma once

#include "core/advise/memory_choice.h"
#include "core/advise/optimize_job.h"
#include "core/advise/strategy_query.h"

namespace stepcast {

// Fills in `cost_source`, `why_no_bound` and `reason`. REQUIRES: all else of the answer is there.
void Explain(const StrategyQuery& query, MemoryPass pass, StrategyAnswer& answer);

}  // namespace stepcast
