// The strategy for a job: what to fuse, what to cut and, where memory is short, what to compute
// again or to halve; with what it gains and how sure that is.
//
// Source: dPRO (MLSys 2022), Algorithm 1; of what is compared with it at parameter servers, BytePS
// (Jiang et al., OSDI 2020), whose documentation has parts of 4,096,000 bytes by default. Threads:
// pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "core/advise/communication_tuning.h"
#include "core/advise/memory.h"
#include "core/advise/strategy_query.h"
#include "core/advise/strategy_search.h"
#include "core/advise/tensor_route.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The choice among ways to need less memory (memory_choice.cc).
//
// Source: dPRO (MLSys 2022), section 7.4: of those that fit the budget the one with the shorter
// step.

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

// Computations to compute as one, by their names; of a memory pass: with what it adds.
struct NamedFusedOperations {
  std::vector<std::string> operations;  // in the order of their stream
  double seconds_apart = 0;             // mean of a step
  double seconds = 0;                   // as one
  bool is_estimate = false;             // its cost is not in the table
};

// Gradients to send as one, by their names.
struct NamedTensors {
  std::vector<std::string> operations;  // in graph order
  int64_t size_bytes = 0;
  int32_t partitions = 1;
};

// A strategy that was run in full, beside the others.
struct ComparedStrategy {
  // "AS_RECORDED", "NO_FUSION", "DDP_BUCKETS", "HOROVOD", "HOROVOD_64MB_5MS", "HOROVOD_128MB_1MS",
  // "MG_WFBP", "XLA_FUSE_ALL", "BYTEPS", "FOUND".
  std::string name;
  double step_seconds = 0;
  double examples_per_second = 0;
  Gain gain;  // over the job as recorded
  // Operations are fused at a cost that the query's fused_share says, and nobody measured.
  bool rests_on_share = false;
};

struct StrategyAnswer {
  Prediction as_recorded;  // speedup and scaling_efficiency are not told, here and below
  Prediction prediction;   // with the strategy
  Gain gain;               // over as_recorded
  // Nothing that was found is faster (to parameter servers: known to be): the job stays as it is,
  // and both lists are empty.
  bool keeps_as_recorded = false;
  std::vector<NamedFusedOperations> fused;
  std::vector<NamedTensors> tensors;
  // Horovod's settings, as a user writes them, where its cycles are faster than any groups that
  // were found; `tensors` is then what most often goes together. Of parameter servers BytePS's,
  // where its parts are what was found.
  std::string setting;
  bool by_layer = false;  // as in the strategy, which `prediction` has as ranks
  std::vector<ComparedStrategy> compared;
  Settled settled;                     // that what is advised is the fastest of what was compared
  bool rests_on_share = false;         // the gain, as of what is compared
  std::optional<MemoryReport> memory;  // none: nothing is known of what is kept
  SearchStatistics search;
  SearchShortcuts shortcuts;
  std::string cost_source;  // of fused operations, a sentence
  // No strategy of groups and parts alone has a shorter mean step; none where operations may be
  // fused, which `why_no_bound` says.
  std::optional<double> lower_bound_seconds;
  std::string why_no_bound;
  // The strategy is the best of the chain of means (StepChain::Best).
  bool is_chains_best = false;
  std::string reason;  // one sentence
  std::vector<Warning> warnings;
  SimulationStatistics simulation;
};

// REQUIRES: the query was resolved for this profile. A time budget that is spent leaves the best
// found so far. Failure: as PredictThroughput; FAILED_PRECONDITION, reason
// MEMORY_BUDGET_UNREACHABLE, where nothing brings the step within the budget.
absl::StatusOr<StrategyAnswer> OptimizeJob(const Profile& profile, const StrategyQuery& query,
                                           StopCheck stop, const Executor& executor = InOrder(),
                                           const KnownRuns& known = {});

// Fills in the sentences of an answer (strategy_reason.cc): `cost_source`, what its costs rest on,
// `why_no_bound` and `reason`, why it is advised. REQUIRES: all else of the answer is there.
void Explain(const StrategyQuery& query, const TensorRoute& route, MemoryPass pass,
             StrategyAnswer& answer);

}  // namespace stepcast
