#include "client/cli/input_files.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/texts/characters.h"

#include "core/importing/file_kind.h"

namespace stepcast::client {

namespace {

// The packaged absl::string_view is not std::string_view.
absl::string_view AsAbsl(std::string_view text) { return {text.data(), text.size()}; }

bool IsSkipped(absl::string_view line) { return line.empty() || line[0] == '#'; }

bool HasSeparator(absl::string_view line) {
  return line.find_first_of(",;\t") != absl::string_view::npos;
}

absl::StatusOr<v1::ParsingMeasurement> ParseLine(absl::string_view line, int number) {
  const std::vector<absl::string_view> cells = absl::StrSplit(line, absl::ByAnyChar(",;\t"));
  int64_t size_bytes = 0;
  double seconds = 0;
  if (cells.size() == 2 && absl::SimpleAtoi(cells[0], &size_bytes) &&
      absl::SimpleAtod(cells[1], &seconds)) {
    v1::ParsingMeasurement measurement;
    measurement.set_size_bytes(size_bytes);
    measurement.set_seconds(seconds);
    return measurement;
  }
  constexpr size_t kShown = 60;
  return absl::InvalidArgumentError(absl::StrCat("line ", number,
                                                 " is not \"size_bytes,seconds\": \"",
                                                 absl::CHexEscape(line.substr(0, kShown)), "\""));
}

absl::Status RefuseLine(int number, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", std::string(why)));
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

absl::StatusOr<std::vector<v1::ParsingMeasurement>> ParseMeasurements(std::string_view text) {
  std::vector<v1::ParsingMeasurement> measurements;
  int number = 0;
  bool is_first = true;
  for (const absl::string_view raw : absl::StrSplit(AsAbsl(text), '\n')) {
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    ++number;
    if (IsSkipped(line)) continue;
    const bool is_title = is_first && absl::ascii_isalpha(static_cast<unsigned char>(line[0]));
    is_first = false;
    if (is_title) continue;
    const absl::StatusOr<v1::ParsingMeasurement> measurement = ParseLine(line, number);
    if (!measurement.ok()) return measurement.status();
    measurements.push_back(*measurement);
  }
  return measurements;
}

absl::StatusOr<std::map<std::string, int32_t>> ParsePriorities(std::string_view text) {
  std::map<std::string, int32_t> priorities;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const size_t tab = line.rfind('\t');
    if (tab == std::string_view::npos) return RefuseLine(number, "no tab between name and rank");
    const std::string_view rank_text = line.substr(tab + 1);
    int32_t rank = 0;
    const auto [stop, error] =
        std::from_chars(rank_text.data(), rank_text.data() + rank_text.size(), rank);
    if (error != std::errc() || stop != rank_text.data() + rank_text.size()) {
      return RefuseLine(number, absl::StrCat(InQuotes(rank_text), " is not a rank"));
    }
    const std::string name(line.substr(0, tab));
    if (!priorities.emplace(name, rank).second)
      return RefuseLine(number, absl::StrCat(InQuotes(name), " comes twice"));
  }
  return priorities;
}

absl::StatusOr<std::string> PriorityText(const v1::TransferOrderResult& order) {
  std::string text;
  for (const v1::RankedTransfer& transfer : order.transfers()) {
    const std::string& name = transfer.name();
    if (name.starts_with('#') || name.find('\n') != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("no line of a file of priorities can hold the name ", InQuotes(name),
                       ": names of transfers may neither begin with # nor have ends of lines"));
    }
    absl::StrAppend(&text, name, "\t", transfer.server_rank(), "\n");
  }
  return text;
}

absl::StatusOr<std::map<std::string, int64_t>> ParseVariableSizes(std::string_view text) {
  std::map<std::string, int64_t> sizes;
  int64_t number = 0;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    const absl::string_view content = absl::StripAsciiWhitespace(line);
    if (content.empty() || content.front() == '#') continue;
    // Of the last space on, since a size has none.
    const size_t space = content.find_last_of(" \t");
    if (space == absl::string_view::npos)
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " is not `NAME BYTES`"));
    const absl::string_view bytes = content.substr(space + 1);
    // The column is of bytes, so that a unit may be left out.
    const bool bare = bytes.find_first_not_of("0123456789") == absl::string_view::npos;
    const absl::StatusOr<int64_t> size = ParseBytes(absl::StrCat(bytes, bare ? "B" : ""));
    if (!size.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", size.status().message()));
    const std::string name(absl::StripTrailingAsciiWhitespace(content.substr(0, space)));
    if (!sizes.emplace(name, *size).second)
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", InQuotes(name), " is there twice"));
  }
  return sizes;
}

RecordingFormat DetectRecordingFormat(std::string_view first_bytes) {
  first_bytes = WithoutMark(first_bytes);
  const FileKind kind = KindOf(first_bytes);
  if (kind == FileKind::kChakra) return RecordingFormat::kChakra;
  if (kind == FileKind::kBinary || kind == FileKind::kUnknown) return RecordingFormat::kRunMetadata;
  const size_t begin = first_bytes.find_first_not_of(" \t\r\n");
  const bool json =
      begin != std::string_view::npos && (first_bytes[begin] == '{' || first_bytes[begin] == '[');
  if (kind == FileKind::kPyTorchTrace || kind == FileKind::kPyTorchExecutionTrace)
    return RecordingFormat::kPyTorch;
  if (kind == FileKind::kChakraJson) return RecordingFormat::kChakra;
  if (kind == FileKind::kHorovodTimeline) return RecordingFormat::kHorovod;
  return json && kind != FileKind::kLayers ? RecordingFormat::kTimeline : RecordingFormat::kLayers;
}

}  // namespace stepcast::client
