#include "client/cli/measurement_file.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace stepcast::client {

namespace {

// The packaged absl::string_view is not std::string_view.
absl::string_view AsAbsl(std::string_view text) { return {text.data(), text.size()}; }

bool IsSkipped(absl::string_view line) { return line.empty() || line[0] == '#'; }

bool HasSeparator(absl::string_view line) {
  return line.find_first_of(",;\t") != absl::string_view::npos;
}

absl::StatusOr<ParsingMeasurement> ParseLine(absl::string_view line, int number) {
  const std::vector<absl::string_view> cells = absl::StrSplit(line, absl::ByAnyChar(",;\t"));
  ParsingMeasurement measurement;
  if (cells.size() == 2 && absl::SimpleAtoi(cells[0], &measurement.size_bytes) &&
      absl::SimpleAtod(cells[1], &measurement.seconds)) {
    return measurement;
  }
  constexpr size_t kShown = 60;
  return absl::InvalidArgumentError(absl::StrCat("line ", number,
                                                 " is not \"size_bytes,seconds\": \"",
                                                 absl::CHexEscape(line.substr(0, kShown)), "\""));
}

}  // namespace

bool LooksLikeMeasurements(std::string_view text) {
  for (const absl::string_view raw : absl::StrSplit(AsAbsl(text), '\n')) {
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (IsSkipped(line)) continue;
    if (line.find_first_of("{:") != absl::string_view::npos) return false;
    return HasSeparator(line) && (absl::ascii_isdigit(static_cast<unsigned char>(line[0])) ||
                                  absl::ascii_isalpha(static_cast<unsigned char>(line[0])) ||
                                  line[0] == '-' || line[0] == '+');
  }
  return false;
}

absl::StatusOr<std::vector<ParsingMeasurement>> ParseMeasurements(std::string_view text) {
  std::vector<ParsingMeasurement> measurements;
  int number = 0;
  bool is_first = true;
  for (const absl::string_view raw : absl::StrSplit(AsAbsl(text), '\n')) {
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    ++number;
    if (IsSkipped(line)) continue;
    const bool is_title = is_first && absl::ascii_isalpha(static_cast<unsigned char>(line[0]));
    is_first = false;
    if (is_title) continue;
    const absl::StatusOr<ParsingMeasurement> measurement = ParseLine(line, number);
    if (!measurement.ok()) return measurement.status();
    measurements.push_back(*measurement);
  }
  return measurements;
}

}  // namespace stepcast::client
