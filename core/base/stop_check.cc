#include "core/base/stop_check.h"

#include "core/base/error.h"

namespace stepcast {

namespace {

constexpr char kReason[] = "TIME_BUDGET_SPENT";

}  // namespace

absl::Status TimeBudgetSpent() {
  return MakeError(
      absl::StatusCode::kDeadlineExceeded,
      "the time budget is spent and there is no answer yet; allow more or ask for fewer steps",
      {.reason = kReason});
}

bool IsTimeBudgetSpent(const absl::Status& status) {
  return status.code() == absl::StatusCode::kDeadlineExceeded &&
         DetailsOf(status).reason == kReason;
}

}  // namespace stepcast
