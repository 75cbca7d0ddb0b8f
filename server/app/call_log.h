// The observers of calls that write to the server's log.
#pragma once

#include <string>

#include "server/app/log.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/metrics/call_metrics.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/call_gate.h"

namespace stepcast::server {

// An observer that writes calls to the server's log: those that failed for its own reasons, and at
// level debug every one.
class CallLog final : public CallObserver {
 public:
  // Borrows the log.
  explicit CallLog(Log& log) : log_(log) {}
  bool WantsEveryCall() const override { return log_.Writes(LogLevel::kDebug); }
  void OnEnd(const CallLabels& call, const absl::Status& status) override;

 private:
  Log& log_;
};

// An observer that counts callers who were turned away, and logs them, at most so many a second:
// who tries many tokens must not fill the disk.
class RejectionLog final : public RejectionObserver {
 public:
  static constexpr int kLinesPerSecond = 5;

  // Borrows all three.
  RejectionLog(Log& log, RejectionMetrics& metrics, const Clock& clock)
      : log_(log), metrics_(metrics), clock_(clock) {}

  void OnRejected(const CalledMethod& method, const std::string& peer,
                  const absl::Status& status) override;

 private:
  // True if there is room for a line. `left_out`: how many there was none for since the last one.
  bool MayLog(int& left_out);

  Log& log_;
  RejectionMetrics& metrics_;
  const Clock& clock_;
  Mutex mutex_;
  int64_t second_ STEPCAST_GUARDED_BY(mutex_) = 0;
  int lines_ STEPCAST_GUARDED_BY(mutex_) = 0;
  int left_out_ STEPCAST_GUARDED_BY(mutex_) = 0;
};

}  // namespace stepcast::server
