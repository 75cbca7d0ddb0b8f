// Writes calls that failed for the server's own reasons to its log.
#pragma once

#include <string_view>

#include "server/app/log.h"
#include "server/rpc/call_environment.h"

namespace stepcast::server {

class FailureLog final : public FailureObserver {
 public:
  // Borrows the log.
  explicit FailureLog(Log& log) : log_(log) {}
  void OnFailure(std::string_view method, const absl::Status& status) override;

 private:
  Log& log_;
};

}  // namespace stepcast::server
