#include "client/cli/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/characters.h"

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

}  // namespace

absl::StatusOr<uint64_t> ParseCount(std::string_view text) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size())
    return Refuse(text, "a whole number from 0 to 2^64 - 1");
  return count;
}

absl::StatusOr<double> ParseRate(std::string_view text) {
  constexpr std::string_view kRight =
      "a rate: write for instance 1Gbit/s, 125MB/s, or bytes per second";
  Parts parts;
  if (!Split(text, parts)) return Refuse(text, kRight);
  if (parts.unit.empty()) return parts.number;
  const double rate = parts.number * TakePrefix(parts.unit);
  if (!std::isfinite(rate)) return Refuse(text, kRight);
  for (const std::string_view bits : {"bit/s", "b/s", "bps", "bits/s"}) {
    if (parts.unit == bits) return rate / 8;
  }
  for (const std::string_view bytes : {"B/s", "Bps", "byte/s", "bytes/s"}) {
    if (parts.unit == bytes) return rate;
  }
  return Refuse(text, kRight);
}

absl::StatusOr<int64_t> ParseBytes(std::string_view text) {
  constexpr std::string_view kRight = "a number of bytes: write for instance 65536, 64KiB or 10MB";
  constexpr double kTooMany = 9223372036854775808.0;  // 2^63
  Parts parts;
  if (!Split(text, parts)) return Refuse(text, kRight);
  const double bytes = parts.number * TakePrefix(parts.unit);
  const bool whole = bytes == std::floor(bytes) && bytes < kTooMany;
  if (!whole || (!parts.unit.empty() && parts.unit != "B")) return Refuse(text, kRight);
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 7> kUnits{
      {{"", 1e9}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};
  constexpr double kLongest = 9e18;  // nanoseconds, 285 years
  Parts parts;
  if (Split(text, parts)) {
    for (const auto& [unit, ns] : kUnits) {
      const double length = parts.number * ns;
      if (parts.unit == unit && length <= kLongest)
        return std::chrono::nanoseconds(std::llround(length));
    }
  }
  return Refuse(text, "a length of time: write for instance 1.5, 1.5s, 250ms or 2m");
}

}  // namespace stepcast::client
