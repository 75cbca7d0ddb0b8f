#include "client/cli/texts/table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <utility>

#include "absl/time/time.h"
#include "client/cli/texts/characters.h"

namespace stepcast::client {

namespace {

size_t Width(const std::string& text) {
  // Every byte but those that continue a character.
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

Table::Table(std::vector<Column> columns) {
  std::vector<std::string>& titles = rows_.emplace_back();
  for (Column& column : columns) {
    align_.push_back(column.align);
    titles.push_back(std::move(column.title));
  }
}

void Table::AddRow(std::vector<std::string> cells) {
  assert(cells.size() == align_.size());
  for (std::string& cell : cells) cell = Escaped(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::Text() const {
  std::vector<size_t> widths(align_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - Width(row[i]), ' ');
      line += align_[i] == Align::kLeft ? row[i] + padding : padding + row[i];
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

namespace {

std::string Fixed(double value, int decimals) {
  std::array<char, 400> text{};  // holds the longest double
  const int length = std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return std::string(text.data(), static_cast<size_t>(length));
}

}  // namespace

std::string NumberText(double value) {
  if (value == 0) return "0";
  if (!std::isfinite(value)) return Fixed(value, 0);
  constexpr int kDigits = 4;
  const int magnitude = static_cast<int>(std::floor(std::log10(std::fabs(value))));
  std::string text = Fixed(value, std::clamp(kDigits - 1 - magnitude, 0, 12));
  // 9.9996 has become 10.000, a digit too many.
  const double rounded = std::fabs(std::stod(text));
  if (rounded >= std::pow(10.0, magnitude + 1))
    return Fixed(value, std::clamp(kDigits - 2 - magnitude, 0, 12));
  return text;
}

std::string PercentText(double fraction) { return Fixed(fraction * 100, 1) + "%"; }

std::string DurationText(std::chrono::nanoseconds length) {
  const auto ns = static_cast<double>(length.count());
  const double size = std::fabs(ns);
  if (size < 1e3) return NumberText(ns) + " ns";
  if (size < 1e6) return NumberText(ns / 1e3) + " us";
  if (size < 1e9) return NumberText(ns / 1e6) + " ms";
  return NumberText(ns / 1e9) + " s";
}

std::string DurationText(const google::protobuf::Duration& length) {
  return DurationText(absl::ToChronoNanoseconds(absl::Seconds(length.seconds()) +
                                                absl::Nanoseconds(length.nanos())));
}

std::string LongDurationText(const google::protobuf::Duration& length) {
  constexpr double kHundred = 100;
  const double seconds = static_cast<double>(length.seconds()) + length.nanos() / 1e9;
  if (seconds < kHundred) return DurationText(length);
  const double minutes = seconds / 60;
  if (minutes < kHundred) return NumberText(minutes) + " min";
  const double hours = minutes / 60;
  return hours < kHundred ? NumberText(hours) + " h" : NumberText(hours / 24) + " d";
}

std::string SecondsText(double seconds) {
  return DurationText(std::chrono::nanoseconds(std::llround(seconds * 1e9)));
}

std::string BytesText(int64_t bytes) {
  constexpr std::array kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (std::abs(bytes) < 1024) return std::to_string(bytes) + " B";
  auto value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; std::fabs(value) >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return NumberText(value) + " " + kUnits[unit];
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%SZ", absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

}  // namespace stepcast::client
