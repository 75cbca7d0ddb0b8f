#include "server/app/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace stepcast::server {

namespace {

spdlog::level::level_enum LevelOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

// In double quotes; a JSON string where the text is UTF-8, which messages of this service are.
std::string QuotedJson(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr char kDigits[] = "0123456789abcdef";
      out.append("\\u00").append({kDigits[c >> 4], kDigits[c & 15]});
    } else {
      out.push_back(c);
    }
  }
  return out.append("\"");
}

bool IsPlain(std::string_view text) {
  const auto plain = [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '"' && c != '=';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), plain);
}

}  // namespace

class Log::Sink {
 public:
  explicit Sink(const LogOptions& options)
      : logger("stepcastd", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    constexpr char kJsonPattern[] = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})";
    constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";
    logger.set_pattern(options.format == LogFormat::kJson ? kJsonPattern : kTextPattern);
    logger.set_level(LevelOf(options.level));
    logger.flush_on(spdlog::level::trace);
  }

  spdlog::logger logger;
};

Log::Log(const LogOptions& options)
    : format_(options.format), level_(options.level), sink_(std::make_unique<Sink>(options)) {}

Log::~Log() = default;

std::string Log::Line(std::string_view event, const Fields& fields) const {
  const bool json = format_ == LogFormat::kJson;
  std::string line = json ? absl::StrCat("\"event\":", QuotedJson(event)) : std::string(event);
  for (const Field& field : fields) {
    if (json) {
      absl::StrAppend(&line, ",", QuotedJson(field.key), ":", QuotedJson(field.value));
    } else {
      line.append(" ").append(field.key).append("=").append(
          IsPlain(field.value) ? field.value : QuotedJson(field.value));
    }
  }
  return line;
}

bool Log::Writes(LogLevel level) const {
  return level_.load(std::memory_order_relaxed) <= level && level != LogLevel::kOff;
}

LogLevel Log::SetLevel(LogLevel level) {
  sink_->logger.set_level(LevelOf(level));
  return level_.exchange(level);
}

void Log::Debug(std::string_view event, const Fields& fields) {
  sink_->logger.debug(Line(event, fields));
}

void Log::Info(std::string_view event, const Fields& fields) {
  sink_->logger.info(Line(event, fields));
}

void Log::Warning(std::string_view event, const Fields& fields) {
  sink_->logger.warn(Line(event, fields));
}

void Log::Error(std::string_view event, const Fields& fields) {
  sink_->logger.error(Line(event, fields));
}

}  // namespace stepcast::server
