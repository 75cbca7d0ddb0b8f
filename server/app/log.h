// The server's log: one line on stderr for each change of its state and each failure that is its
// own; none for an ordinary call.
//
// Text: `TIME LEVEL event key=value`; JSON: an object a line with time, level, event and the keys.
// Values are escaped, so a line stays a line. Threads: safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/app/server_options.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/metrics/call_metrics.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/call_gate.h"

namespace stepcast::server {

class Log {
 public:
  struct Field {
    std::string_view key;
    std::string value;
  };
  using Fields = std::vector<Field>;

  explicit Log(const LogOptions& options);
  ~Log();

  void Debug(std::string_view event, const Fields& fields = {});
  void Info(std::string_view event, const Fields& fields = {});
  void Warning(std::string_view event, const Fields& fields = {});
  void Error(std::string_view event, const Fields& fields = {});

  // True if a line of this level would be written.
  bool Writes(LogLevel level) const;
  LogLevel level() const { return level_; }
  // From now on; returns the one before.
  LogLevel SetLevel(LogLevel level);

 private:
  class Sink;

  std::string Line(std::string_view event, const Fields& fields) const;

  const LogFormat format_;
  std::atomic<LogLevel> level_;
  std::unique_ptr<Sink> sink_;
};

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
