#include "server/rpc/call_environment.h"

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

absl::Status ByteBudget::Share::Add(int64_t bytes) {
  const int64_t max_bytes = budget_.max_bytes_;
  const int64_t now = budget_.bytes_.fetch_add(bytes) + bytes;
  if (now <= max_bytes) {
    bytes_ += bytes;
    return absl::OkStatus();
  }
  budget_.bytes_.fetch_sub(bytes);
  return MakeError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("the requests under way hold the ", max_bytes, " bytes there are for them"),
      {.reason = "MEMORY_EXHAUSTED",
       .metadata = {{"max_pending_bytes", absl::StrCat(max_bytes)}},
       .retry_delay_ms = kRetryDelayMs,
       .quota_subject = "max_pending_bytes"});
}

void ByteBudget::Share::Release() {
  budget_.bytes_.fetch_sub(bytes_);
  bytes_ = 0;
}

}  // namespace stepcast::server
