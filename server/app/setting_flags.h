// The rows of a table of settings (settings.h), as its program writes them down.
//
// Each row is an option of CLI11 with its flag, its variable of the environment, its default and
// the check of its values.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"

#include "server/app/log.h"

namespace stepcast::server {

// STEPCAST_HTTP_LISTEN for --http-listen.
inline std::string VariableOf(const std::string& flag) {
  return absl::StrCat("STEPCAST_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(flag.substr(2), {{"-", "_"}})));
}

template <typename Value>
CLI::Option* AddSetting(CLI::App& app, const std::string& flag, Value& value,
                        const std::string& text) {
  return app.add_option(flag, value, text)->envname(VariableOf(flag))->capture_default_str();
}

template <typename Value>
void AddRange(CLI::App& app, const std::string& flag, Value& value, Value min, Value max,
              const std::string& text) {
  AddSetting(app, flag, value, text)->check(CLI::Range(min, max));
}

// Seconds of a length of time: 500ms, 5s, 1m30s, 2h; a bare number is of seconds. None where the
// text is none from 0 to `most` seconds.
inline std::optional<double> SecondsOf(const std::string& text, double most) {
  double seconds = 0;
  if (!absl::SimpleAtod(text, &seconds)) {
    absl::Duration length;
    if (!absl::ParseDuration(text, &length)) return std::nullopt;
    seconds = absl::ToDoubleSeconds(length);
  }
  return seconds >= 0 && seconds <= most ? std::optional(seconds) : std::nullopt;
}

inline void AddLength(CLI::App& app, const std::string& flag, double& seconds, double most,
                      const std::string& text) {
  app.add_option_function<std::string>(
         flag, [&seconds, most](const std::string& given) { seconds = *SecondsOf(given, most); },
         text + ": 500ms, 5s, 2m; a bare number is of seconds")
      ->envname(VariableOf(flag))
      ->check([most](const std::string& given) {
        return SecondsOf(given, most).has_value()
                   ? std::string()
                   : absl::StrCat("\"", given, "\" is not a length of time from 0 to ",
                                  static_cast<int64_t>(most),
                                  " seconds: write for instance 500ms, 5s or 2m");
      })
      ->type_name("TIME")
      ->default_str(absl::StrCat(seconds, "s"));
}

template <typename Value>
void AddChoice(CLI::App& app, const std::string& flag, Value& value,
               const std::map<std::string, Value>& choices, const std::string& text) {
  std::string name;
  for (const auto& [choice, meaning] : choices) {
    if (meaning == value) name = choice;
  }
  app.add_option_function<std::string>(
         flag, [&value, choices](const std::string& chosen) { value = choices.at(chosen); }, text)
      ->envname(VariableOf(flag))
      ->check(CLI::IsMember(choices))
      ->default_str(name);
}

// --log-level, whose text says what else `debug` logs, and --log-format.
inline void AddLog(CLI::App& app, LogOptions& options, const std::string& debug = "") {
  AddChoice<LogLevel>(app, "--log-level", options.level,
                      {{"debug", LogLevel::kDebug},
                       {"info", LogLevel::kInfo},
                       {"warning", LogLevel::kWarning},
                       {"error", LogLevel::kError},
                       {"off", LogLevel::kOff}},
                      "Least level that is logged, on stderr" + debug);
  AddChoice<LogFormat>(app, "--log-format", options.format,
                       {{"text", LogFormat::kText}, {"json", LogFormat::kJson}}, "Form of the log");
}

}  // namespace stepcast::server
