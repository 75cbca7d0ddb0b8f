#include "client/cli/flags/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/texts/characters.h"

namespace stepcast::client {

namespace {

struct Parts {
  double number = 0;
  std::string_view unit;  // what comes after the number and spaces
};

absl::Status Refuse(std::string_view text, std::string_view right) {
  return absl::InvalidArgumentError(absl::StrCat(InQuotes(text), " is not ", std::string(right)));
}

// A finite number that is not negative, and the rest.
bool Split(std::string_view text, Parts& parts) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parts.number);
  if (error != std::errc() || !std::isfinite(parts.number) || std::signbit(parts.number))
    return false;
  parts.unit = text.substr(static_cast<size_t>(end - text.data()));
  parts.unit.remove_prefix(std::min(parts.unit.find_first_not_of(' '), parts.unit.size()));
  return true;
}

// The number as it was written.
std::string NumberOf(std::string_view text, const Parts& parts) {
  std::string_view number = text.substr(0, text.size() - parts.unit.size());
  return std::string(number.substr(0, number.find(' ')));
}

// Says that a unit is missing, and what the text could have meant.
absl::Status NoUnit(std::string_view text, const std::vector<std::string>& readings) {
  return absl::InvalidArgumentError(
      absl::StrCat(InQuotes(text), " has no unit: write ", absl::StrJoin(readings, " or ")));
}

// Takes a prefix off the unit, and returns what it stands for.
double TakePrefix(std::string_view& unit) {
  constexpr std::array<std::pair<std::string_view, double>, 12> kPrefixes{{{"Ki", 1024.0},
                                                                           {"Mi", 1048576.0},
                                                                           {"Gi", 1073741824.0},
                                                                           {"Ti", 1099511627776.0},
                                                                           {"k", 1e3},
                                                                           {"K", 1e3},
                                                                           {"M", 1e6},
                                                                           {"m", 1e6},
                                                                           {"G", 1e9},
                                                                           {"g", 1e9},
                                                                           {"T", 1e12},
                                                                           {"t", 1e12}}};
  for (const auto& [prefix, factor] : kPrefixes) {
    if (unit.substr(0, prefix.size()) != prefix) continue;
    unit.remove_prefix(prefix.size());
    return factor;
  }
  return 1;
}

// Number of the whole text, or false.
template <typename Number>
bool ParseNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

constexpr size_t kMaxCounts = 1024;

bool ParseWorkers(std::string_view text, int32_t& count) {
  return ParseNumber(text, count) && count >= 1;
}

// One count or one range.
bool ParsePart(std::string_view part, int32_t& first, int32_t& last) {
  const size_t dash = part.find('-');
  if (dash == std::string_view::npos) {
    if (!ParseWorkers(part, first)) return false;
    last = first;
    return true;
  }
  return ParseWorkers(part.substr(0, dash), first) && ParseWorkers(part.substr(dash + 1), last) &&
         first <= last;
}

constexpr size_t kMaxSteps = 64;

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

absl::StatusOr<uint64_t> ParseCount(std::string_view text) {
  uint64_t count = 0;
  if (!ParseNumber(text, count)) return Refuse(text, "a whole number from 0 to 2^64 - 1");
  return count;
}

absl::StatusOr<double> ParseShare(std::string_view text) {
  Parts parts;
  if (!Split(text, parts) || !(parts.unit.empty() || parts.unit == "%"))
    return Refuse(text, "a share: write for instance 0.25 or 25%");
  return parts.unit.empty() ? parts.number : parts.number / 100;
}

absl::StatusOr<double> ParseRate(std::string_view text) {
  constexpr std::string_view kRight = "a rate: write for instance 10Gbit/s or 125MB/s";
  Parts parts;
  if (!Split(text, parts)) return Refuse(text, kRight);
  const std::string number = NumberOf(text, parts);
  if (parts.unit.empty() && parts.number == 0) return 0;
  if (parts.unit.empty()) return NoUnit(text, {number + "Gbit/s", number + "GB/s", number + "B/s"});
  const std::string prefix(parts.unit);
  const double rate = parts.number * TakePrefix(parts.unit);
  if (!std::isfinite(rate)) return Refuse(text, kRight);
  // A prefix alone leaves open whether bits or bytes are meant.
  if (parts.unit.empty()) return NoUnit(text, {number + prefix + "bit/s", number + prefix + "B/s"});
  for (const std::string_view bits : {"bit/s", "b/s", "bps", "bits/s"}) {
    if (parts.unit == bits) return rate / 8;
  }
  for (const std::string_view bytes : {"B/s", "Bps", "byte/s", "bytes/s"}) {
    if (parts.unit == bytes) return rate;
  }
  return Refuse(text, kRight);
}

absl::StatusOr<int64_t> ParseBytes(std::string_view text) {
  constexpr std::string_view kRight = "a number of bytes: write for instance 64KiB, 10MB or 500B";
  constexpr double kTooMany = 9223372036854775808.0;  // 2^63
  constexpr double kKibibyte = 1024;
  Parts parts;
  if (!Split(text, parts)) return Refuse(text, kRight);
  const std::string number = NumberOf(text, parts);
  if (parts.unit.empty() && parts.number == 0) return 0;
  if (parts.unit.empty()) {
    const bool large = parts.number >= kKibibyte && std::fmod(parts.number, kKibibyte) == 0;
    return NoUnit(text, {number + (parts.number == std::floor(parts.number) ? "B" : "KiB"),
                         large ? absl::StrCat(parts.number / kKibibyte, "KiB") : number + "MiB"});
  }
  const std::string prefix(parts.unit);
  const double bytes = parts.number * TakePrefix(parts.unit);
  const bool binary = prefix.size() == 2 && prefix.back() == 'i';
  // 25M is 25,000,000 to some and 25 MiB to others.
  if (parts.unit.empty() && !binary)
    return NoUnit(text, {number + prefix + "B", number + prefix + "iB"});
  const bool whole = bytes == std::floor(bytes) && bytes < kTooMany;
  if (!whole || (!parts.unit.empty() && parts.unit != "B")) return Refuse(text, kRight);
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 7> kUnits{{{"ns", 1},
                                                                       {"us", 1e3},
                                                                       {"ms", 1e6},
                                                                       {"s", 1e9},
                                                                       {"m", 60e9},
                                                                       {"h", 3600e9},
                                                                       {"d", 86400e9}}};
  constexpr double kLongest = 9e18;  // nanoseconds, 285 years
  constexpr std::string_view kRight =
      "a length of time: write for instance 20us, 250ms, 1.5s or 2m";
  Parts parts;
  if (!Split(text, parts)) return Refuse(text, kRight);
  if (parts.unit.empty() && parts.number == 0) return std::chrono::nanoseconds(0);
  const std::string number = NumberOf(text, parts);
  if (parts.unit.empty()) return NoUnit(text, {number + "us", number + "ms", number + "s"});
  // The parts of 1h30m are from the largest unit to the smallest.
  double sum = 0;
  double last = std::numeric_limits<double>::infinity();
  while (true) {
    const std::string_view name = parts.unit.substr(0, parts.unit.find_first_of("0123456789."));
    const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                   [&](const auto& each) { return each.first == name; });
    if (unit == kUnits.end() || unit->second >= last) return Refuse(text, kRight);
    last = unit->second;
    sum += parts.number * last;
    const std::string_view rest = parts.unit.substr(name.size());
    if (rest.empty()) break;
    if (!Split(rest, parts)) return Refuse(text, kRight);
  }
  if (!(sum <= kLongest)) return Refuse(text, kRight);
  return std::chrono::nanoseconds(std::llround(sum));
}

absl::StatusOr<double> ParseSeconds(std::string_view text) {
  const absl::StatusOr<std::chrono::nanoseconds> time = ParseDuration(text);
  if (!time.ok()) return time.status();
  return static_cast<double>(time->count()) / 1e9;
}

absl::StatusOr<std::vector<int32_t>> ParseWorkerList(std::string_view text) {
  std::vector<int32_t> counts;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, comma - at);
    at = comma + 1;
    int32_t first = 0;
    int32_t last = 0;
    if (!ParsePart(part, first, last)) {
      return absl::InvalidArgumentError(absl::StrCat(
          InQuotes(part), " is not a number of workers: write for instance 1-16 or 1,2,4"));
    }
    if (counts.size() + static_cast<size_t>(last - first) + 1 > kMaxCounts) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", kMaxCounts, " numbers of workers"));
    }
    for (int32_t count = first; count <= last; ++count) counts.push_back(count);
  }
  return counts;
}

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
