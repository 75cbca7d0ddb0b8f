#include "client/cli/load_steps.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "absl/strings/str_cat.h"

namespace stepcast::client {

namespace {

constexpr size_t kMaxSteps = 64;

// Of the whole text, or false.
template <typename Number>
bool ParseNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// `fits` is false of what is not a number, too.
template <typename Number, typename Fits>
absl::StatusOr<std::vector<Number>> ParseList(std::string_view text, const std::string& right,
                                              const Fits& fits) {
  std::vector<Number> numbers;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, comma - at);
    at = comma + 1;
    Number number{};
    if (!ParseNumber(part, number) || !fits(number))
      return absl::InvalidArgumentError(absl::StrCat("\"", std::string(part), "\" is not ", right));
    if (numbers.size() == kMaxSteps)
      return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxSteps, " numbers"));
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> ParseConcurrencies(std::string_view text) {
  return ParseList<uint32_t>(text, absl::StrCat("a number of calls from 1 to ", kMaxConcurrency),
                             [](uint32_t count) { return count >= 1 && count <= kMaxConcurrency; });
}

absl::StatusOr<std::vector<double>> ParseRates(std::string_view text) {
  return ParseList<double>(
      text, absl::StrCat("a number of calls a second from ", kMinRate, " to ", kMaxRate),
      [](double rate) { return rate >= kMinRate && rate <= kMaxRate; });
}

}  // namespace stepcast::client
