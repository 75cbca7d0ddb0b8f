// An observer that counts callers who were turned away, and logs them, at most so many a second:
// who tries many tokens must not fill the disk.
#pragma once

#include <string>

#include "server/app/log.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/metrics/call_metrics.h"
#include "server/rpc/call_gate.h"

namespace stepcast::server {

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
