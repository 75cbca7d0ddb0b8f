// Counts, rates, sizes and lengths of time, and lists of counts, as people write them.
//
// Rates, sizes and lengths of time are numbers followed by a decimal (k, M, G, T) or binary (Ki,
// Mi, Gi, Ti) prefix and a unit, with or without a space between. 0 needs no unit; any other number
// without one is refused, since `25` is 25 bytes to one and 25 MiB to another. Failure:
// INVALID_ARGUMENT, with the text and what would be right.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Error.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stepcast::client {

// A whole number from 0 on, in digits only: CLI11 by itself takes -1 for 2^64 - 1.
absl::StatusOr<uint64_t> ParseCount(std::string_view text);
// Bytes per second. Units: bit/s, b/s and bps are bits; B/s and Bps are bytes.
absl::StatusOr<double> ParseRate(std::string_view text);
// Bytes: 500B, 64KiB, 64Ki, 10MB. A decimal prefix needs the B: 25M is MB to some, MiB to others.
absl::StatusOr<int64_t> ParseBytes(std::string_view text);
// Not negative: 0.25 or 25%.
absl::StatusOr<double> ParseShare(std::string_view text);
// Not negative: 250ms, 1.5h, 1h30m, 2d. Units: ns, us, ms, s, m, h, d.
absl::StatusOr<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// The same in seconds, as a message has it.
absl::StatusOr<double> ParseSeconds(std::string_view text);

// Numbers of workers, as counts and ranges separated by commas: `1-16`, `1,2,4`, `1-4,8,16`; in the
// order given, each at least 1. More than 1024, as many as one call may ask for, are refused.
absl::StatusOr<std::vector<int32_t>> ParseWorkerList(std::string_view text);

inline constexpr uint32_t kMaxConcurrency = 10'000;
inline constexpr double kMinRate = 1e-3;
inline constexpr double kMaxRate = 1e6;

// Loads on a server, one measurement after the other, separated by commas and in the order given;
// more than 64 are refused.
// Calls under way at once, each from 1 to kMaxConcurrency: `1,8,64`.
absl::StatusOr<std::vector<uint32_t>> ParseConcurrencies(std::string_view text);
// Calls a second, each from kMinRate to kMaxRate: `0.5,1000,2000`.
absl::StatusOr<std::vector<double>> ParseRates(std::string_view text);

// Options whose text is parsed by a function of ours, and options of messages.

// Adds an option whose text `parse` turns into an absl::StatusOr, and `store` keeps. A text that
// `parse` refuses is wrong usage.
template <typename Parse, typename Store>
CLI::Option* AddParsedOption(CLI::App& app, const std::string& name, const char* type,
                             const std::string& help, Parse parse, Store store) {
  const auto on_text = [name, parse = std::move(parse),
                        store = std::move(store)](const std::string& text) {
    auto value = parse(text);
    if (!value.ok()) throw CLI::ValidationError(name, std::string(value.status().message()));
    store(*std::move(value));
  };
  return app.add_option_function<std::string>(name, on_text, help)->type_name(type);
}

// Adds an option with a value of type Value, which `store` keeps: a field of a message, mostly.
template <typename Value, typename Store>
CLI::Option* AddValueOption(CLI::App& app, const std::string& name, const char* type,
                            const std::string& help, Store store) {
  return app
      .add_option_function<Value>(
          name, [store = std::move(store)](const Value& value) { store(value); }, help)
      ->type_name(type);
}

// The words that an option takes, and what each stands for.
template <typename Value>
using Choices = std::vector<std::pair<std::string, Value>>;

// The words of the choices, in their order.
template <typename Value>
std::string ChoiceWords(const Choices<Value>& choices, const char* separator) {
  return absl::StrJoin(choices, separator, [](std::string* out, const auto& choice) {
    absl::StrAppend(out, choice.first);
  });
}

// Failure: INVALID_ARGUMENT, with all the words that would be right.
template <typename Value>
absl::StatusOr<Value> ParseChoice(const std::string& text, const Choices<Value>& choices) {
  for (const auto& [word, value] : choices) {
    if (text == word) return value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is none of ", ChoiceWords(choices, ", ")));
}

// Adds an option that takes one of the choices.
template <typename Value, typename Store>
CLI::Option* AddChoiceOption(CLI::App& app, const std::string& name, const Choices<Value>& choices,
                             const std::string& help, Store store) {
  return AddParsedOption(
      app, name, ChoiceWords(choices, "|").c_str(), help,
      [choices](const std::string& text) { return ParseChoice(text, choices); }, std::move(store));
}

}  // namespace stepcast::client
