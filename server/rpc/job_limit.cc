#include "server/rpc/job_limit.h"

#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

JobLimit::JobLimit(const CallEnvironment& environment)
    : clock_(&environment.clock),
      max_seconds_(environment.max_job_seconds),
      end_ns_(clock_->MonotonicNs() + static_cast<int64_t>(max_seconds_ * kNsPerSecond)) {}

absl::Status JobLimit::Check() const {
  if (clock_->MonotonicNs() < end_ns_) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kDeadlineExceeded,
      absl::StrCat("the computation has reached the limit max_job_seconds = ", max_seconds_),
      {.reason = "JOB_TOO_LONG",
       .metadata = {{"max_job_seconds", absl::StrCat(max_seconds_)}},
       .quota_subject = "max_job_seconds"});
}

}  // namespace stepcast::server
