// The choice among ways to need less memory.
//
// Source: dPRO (MLSys 2022), section 7.4: of those that fit the budget the one with the shorter
// step. Threads: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "core/advise/memory.h"
#include "core/advise/strategy_query.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/predict/throughput.h"

namespace stepcast {

// A way to need less memory that was looked at.
struct TriedMemoryPass {
  MemoryPass pass = MemoryPass::kNone;
  MemoryEstimate memory;
  double step_seconds = 0;  // 0: it does not fit, or cannot be done
  std::string why_not;      // empty: it fits
  std::string recomputes;   // of kRecomputation, in words, where it can be done
};

struct MemoryReport {
  MemoryEstimate before;
  MemoryEstimate after;
  std::optional<int64_t> budget_bytes;
  MemoryPass pass = MemoryPass::kNone;
  std::vector<std::string> recomputed;  // of kRecomputation, in the order of the forward pass
  std::vector<TriedMemoryPass> tried;
  std::vector<std::string> assumptions;  // sentences
};

// A short simulation of a job, and each of its runs, steps per second.
struct ShortRuns {
  Prediction prediction;
  std::vector<double> runs;
};

// The job that fits the query's budget and takes the shortest step by `simulate` (none: it could
// not be), unless there is no difference known to what computes less again; as recorded where that
// fits, or there is no budget. The report is left empty where nothing is known of what is kept.
// FAILED_PRECONDITION, reason MEMORY_BUDGET_UNREACHABLE, where nothing fits.
using SimulateShortly = absl::FunctionRef<std::optional<ShortRuns>(const Profile&)>;
absl::StatusOr<MemoryPlan> ChooseMemoryPass(const Profile& recorded, const StrategyQuery& query,
                                            StopCheck stop, SimulateShortly simulate,
                                            std::optional<MemoryReport>& report);

}  // namespace stepcast
