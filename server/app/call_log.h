// An observer that writes calls to the server's log: those that failed for its own reasons, and at
// level debug every one.
#pragma once

#include "server/app/log.h"
#include "server/rpc/call_environment.h"

namespace stepcast::server {

class CallLog final : public CallObserver {
 public:
  // Borrows the log.
  explicit CallLog(Log& log) : log_(log) {}
  bool WantsEveryCall() const override { return log_.Writes(LogLevel::kDebug); }
  void OnEnd(const CallLabels& call, const absl::Status& status) override;

 private:
  Log& log_;
};

}  // namespace stepcast::server
