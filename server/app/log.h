// The log of a server: one line on stderr for each change of its state and each failure that is its
// own; none for an ordinary call.
//
// Text: `TIME LEVEL event key=value`; JSON: an object a line with time, level, event and the keys.
// Values are escaped, so a line stays a line. Threads: safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::server {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat : uint8_t { kText, kJson };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
};

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

}  // namespace stepcast::server
