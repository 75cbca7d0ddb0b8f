#include "server/handlers/engine_run.h"

#include <algorithm>
#include <limits>

namespace stepcast::server {

namespace {

constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

int64_t BudgetEndNs(const Clock& clock, double budget_seconds) {
  constexpr double kLongestSeconds = 1e9;  // keeps the sum in range
  if (budget_seconds <= 0) return kNoEnd;
  return clock.MonotonicNs() +
         static_cast<int64_t>(std::min(budget_seconds, kLongestSeconds) * 1e9);
}

}  // namespace

EngineRun::EngineRun(const Environment& environment, AnswerContext context)
    : environment_(environment),
      context_(std::move(context)),
      budget_end_ns_(BudgetEndNs(environment.clock, context_.options.time_budget_seconds)) {}

absl::Status EngineRun::Check(StopCheck stop) const {
  absl::Status status = stop();
  if (status.ok() && budget_end_ns_ != kNoEnd && environment_.clock.MonotonicNs() >= budget_end_ns_)
    return TimeBudgetSpent();
  return status;
}

void EngineRun::ReportUnsteady(const std::vector<Prediction>& predictions) const {
  const auto unsteady =
      std::count_if(predictions.begin(), predictions.end(),
                    [](const Prediction& prediction) { return !prediction.steady_state; });
  if (environment_.observer != nullptr && unsteady > 0)
    environment_.observer->OnUnsteady(environment_.work, unsteady);
}

void EngineRun::Report(const absl::Status& status, int64_t simulated_operations) const {
  if (environment_.observer == nullptr) return;
  environment_.observer->OnSimulation(environment_.work, status.code(), context_.engine_seconds,
                                      simulated_operations);
}

}  // namespace stepcast::server
