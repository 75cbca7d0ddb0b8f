#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/advise/communication_tuning.h"
#include "core/advise/optimize_job.h"
#include "core/advise/recomputation.h"
#include "core/base/error.h"

namespace stepcast {

namespace {

constexpr double kBytesOfGigabyte = 1e9;

// The best of the plans that fit, so far.
struct BestPlan {
  std::optional<MemoryPlan> plan;
  std::optional<ShortRuns> simulated;
};

// True where it is known to take a shorter step. With the same random choices, one by one.
bool IsShorter(const ShortRuns& one, const ShortRuns& other, double confidence_level) {
  const Gain gain = GainOf(one.runs, other.runs, one.prediction.simulation_interval,
                           other.prediction.simulation_interval, confidence_level);
  return !gain.is_none && gain.mean > 0;
}

// The source of what operations keep.
const char* KeptText(const Profile& recorded, const StrategyQuery& query) {
  if (query.memory_is_requests)
    return "operations keep what memory.kept_outputs says until all after them are undone";
  if (recorded.framework() == kZooFramework) {
    return "every layer's output is kept in float32, of the zoo's shapes, until its backward "
           "operation has ended";
  }
  if (recorded.framework() == kPytorchFramework) {
    return "the forward pass keeps what autograd saves of the operations that were recorded, by "
           "the shapes of their inputs, each tensor once: an input is the latest tensor of its "
           "shape that nothing has read yet";
  }
  return "operations keep the profile's kept_bytes until all after them are undone";
}

std::vector<std::string> AssumptionsOf(const Profile& recorded, const StrategyQuery& query,
                                       const Recomputation& again) {
  std::vector<std::string> assumptions;
  assumptions.push_back(KeptText(recorded, query));
  assumptions.push_back(absl::StrFormat(
      "%g copies of every parameter (itself, its gradient and the optimizer's state), of the "
      "size of its gradient",
      query.memory->parameter_copies));
  assumptions.push_back(absl::StrCat(
      UndonePairsOf(recorded).empty()
          ? "gradients of outputs are not counted, since what keeps them has no backward/NAME"
          : "while an operation is undone, the gradients of its output and of the one before it "
            "are held",
      "; workspaces of kernels, buckets and fragmentation are not counted"));
  if (again.Most(Recomputed::kSegments) > 1) {
    assumptions.push_back(
        "what is computed again takes as long as it did, and starts from the one kept output "
        "before it: connections that skip it are not counted");
  }
  if (again.Most(Recomputed::kCheapOutputs) > 0 && recorded.framework() == kZooFramework) {
    assumptions.push_back(
        "what is cheap takes the time of its arithmetic alone, as all of the zoo does: a device "
        "that moves its bytes takes longer (BERT Base of dPRO's Table 4 by 12 % of a step)");
  }
  assumptions.push_back(query.half_batch_told);
  return assumptions;
}

absl::Status Unreachable(const MemoryReport& report) {
  double least = report.before.bytes();
  std::string why;
  for (const TriedMemoryPass& tried : report.tried) {
    if (tried.memory.bytes() > 0) least = std::min(least, tried.memory.bytes());
    absl::StrAppend(&why, "; ", NameOf(tried.pass), tried.recomputes.empty() ? "" : " of ",
                    tried.recomputes, ": ", tried.why_not);
  }
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      absl::StrFormat("memory.budget_bytes is %d, but a step needs %.0f bytes, and the least "
                      "that recomputation or gradient accumulation brings it to is %.0f%s",
                      *report.budget_bytes, report.before.bytes(), least, why),
      {.reason = "MEMORY_BUDGET_UNREACHABLE",
       .metadata = {{"budget_bytes", absl::StrCat(*report.budget_bytes)},
                    {"least_bytes", absl::StrFormat("%.0f", least)}}});
}

// Puts a tried pass into the report, and in the place of the best so far where it is faster.
void Consider(MemoryPass pass, absl::StatusOr<MemoryPlan> plan, SimulateShortly simulate,
              double confidence_level, MemoryReport& report, BestPlan& best) {
  TriedMemoryPass& tried = report.tried.emplace_back();
  tried.pass = pass;
  if (!plan.ok()) {
    tried.why_not = std::string(plan.status().message());
    return;
  }
  tried.memory = plan->memory;
  tried.recomputes = plan->recomputes;
  if (plan->memory.bytes() > static_cast<double>(*report.budget_bytes)) {
    tried.why_not = absl::StrFormat("needs %.4g GB", plan->memory.bytes() / kBytesOfGigabyte);
    return;
  }
  std::optional<ShortRuns> simulated = simulate(plan->profile);
  if (simulated.has_value()) tried.step_seconds = simulated->prediction.step_time.mean;
  const bool is_better =
      !best.plan.has_value() ||
      (simulated.has_value() &&
       (!best.simulated.has_value() || IsShorter(*simulated, *best.simulated, confidence_level)));
  if (is_better) best = {.plan = *std::move(plan), .simulated = std::move(simulated)};
}

}  // namespace

absl::StatusOr<MemoryPlan> ChooseMemoryPass(const Profile& recorded, const StrategyQuery& query,
                                            StopCheck stop, SimulateShortly simulate,
                                            std::optional<MemoryReport>& told) {
  MemoryPlan as_is{.pass = MemoryPass::kNone, .profile = recorded, .memory = {}};
  if (!query.memory.has_value()) return as_is;
  const MemoryModel& model = *query.memory;
  as_is.memory = EstimateMemory(recorded, model);
  MemoryReport& report = told.emplace();
  report.before = as_is.memory;
  report.budget_bytes = query.memory_budget_bytes;
  const Recomputation again(recorded, model);
  report.assumptions = AssumptionsOf(recorded, query, again);
  if (!query.memory_budget_bytes.has_value() ||
      as_is.memory.bytes() <= static_cast<double>(*query.memory_budget_bytes)) {
    report.after = as_is.memory;
    return as_is;
  }
  const auto budget = static_cast<double>(*query.memory_budget_bytes);
  BestPlan best;
  for (const Recomputed what : {Recomputed::kCheapOutputs, Recomputed::kSegments}) {
    absl::StatusOr<MemoryPlan> plan = again.Fitting(what, budget, stop);
    if (!plan.ok() && !absl::IsFailedPrecondition(plan.status())) return plan.status();
    Consider(MemoryPass::kRecomputation, std::move(plan), simulate, query.options.confidence_level,
             report, best);
    if (absl::Status status = stop(); !status.ok()) return status;
  }
  Consider(MemoryPass::kGradientAccumulation, Accumulate(recorded, model, query.half_batch_shares),
           simulate, query.options.confidence_level, report, best);
  if (!best.plan.has_value()) return Unreachable(report);
  report.pass = best.plan->pass;
  report.recomputed = best.plan->recomputed;
  report.after = best.plan->memory;
  return *std::move(best.plan);
}

}  // namespace stepcast
