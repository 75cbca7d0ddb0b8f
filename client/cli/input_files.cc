#include "client/cli/input_files.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/texts/characters.h"
#include "client/src/error_status.h"
#include "google/rpc/error_details.pb.h"

#include "core/importing/common/byte_source.h"
#include "core/importing/file_kind.h"
#include "stepcast/error_details.h"
#include "stepcast/profile_encoding.h"

namespace stepcast::client {

namespace {

constexpr FileLimit kProfileLimit{.name = "max_profile_file_bytes",
                                  .bytes = int64_t{1} << 30,
                                  .remedy = "keep fewer steps, or write it in proto binary"};
constexpr FileLimit kTextLimit{
    .name = "max_text_file_bytes", .bytes = int64_t{256} << 20, .remedy = "is it the right file?"};
constexpr FileLimit kSecretLimit{
    .name = "max_credential_bytes", .bytes = int64_t{1} << 20, .remedy = "is it the right file?"};

absl::Status Refuse(const std::string& path, std::string_view reason, std::string_view why) {
  return MakeLocalError(absl::StatusCode::kInvalidArgument, reason,
                        absl::StrCat("cannot read ", InputAt(path).Name(), ": ", std::string(why)),
                        {{"path", path}});
}

// A recording of another program's, which says so in its first bytes.
bool IsRecording(FileKind kind) {
  switch (kind) {
    case FileKind::kLayers:
    case FileKind::kTimeline:
    case FileKind::kPyTorchTrace:
    case FileKind::kPyTorchExecutionTrace:
    case FileKind::kHorovodTimeline:
    case FileKind::kChakraJson:
    case FileKind::kChakra:
      return true;
    default:
      return false;
  }
}

FileKind KindIn(std::string_view bytes) { return KindOf(bytes.substr(0, kKindBytes)); }

absl::Status CheckKind(const std::string& path, FileKind kind) {
  const std::string refusal = RefusalOf(kind);
  return refusal.empty() ? absl::OkStatus() : Refuse(path, "FILE_UNREADABLE", refusal);
}

// True if the first byte may be that of a field of a message in binary.
bool MayBeMessage(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes.front());
  const unsigned wire_type = first & 7U;
  return (first >> 3U) != 0 && (wire_type <= 2 || wire_type == 5);
}

// `3` of `line 3`; empty: something else.
std::string LineOf(const std::string& field) {
  constexpr std::string_view kLine = "line ";
  return field.starts_with(kLine) ? field.substr(kLine.size()) : "";
}

}  // namespace

FileToRead InputAt(const std::string& path) {
  return {.path = path, .is_standard_input = path == kStandardInput};
}

bool IsFile(const std::string& path) {
  if (path == kStandardInput) return true;
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return !error && std::filesystem::exists(status) && !std::filesystem::is_directory(status);
}

std::string WhyNoFile(const std::string& path) {
  std::error_code error;
  const bool is_there =
      std::filesystem::symlink_status(path, error).type() != std::filesystem::file_type::not_found;
  const std::string why = WhyUnreadable(path);
  return is_there && !why.empty() ? absl::StrCat("cannot read \"", path, "\": ", why)
                                  : absl::StrCat("there is no file \"", path, "\"");
}

absl::StatusOr<std::string> FirstBytes(FileStream& stream) {
  constexpr size_t kRawBytes = kKindBytes;
  const absl::StatusOr<std::string_view> raw = stream.Peek(kRawBytes);
  if (!raw.ok()) return raw.status();
  TextSource source(*raw);
  GunzipSource bytes(source,
                     {.admit = [](int64_t) { return absl::OkStatus(); },
                      .damaged = [](const std::string& why) { return absl::DataLossError(why); }});
  std::string first(kKindBytes, '\0');
  size_t filled = 0;
  while (filled < first.size()) {
    const absl::StatusOr<size_t> read = bytes.Read(first.data() + filled, first.size() - filled);
    if (!read.ok() && filled == 0) return read.status();
    if (!read.ok() || *read == 0) break;
    filled += *read;
  }
  first.resize(filled);
  return first;
}

absl::StatusOr<std::unique_ptr<FileStream>> OpenInput(const std::string& path) {
  absl::StatusOr<std::unique_ptr<FileStream>> stream = FileStream::Open(InputAt(path));
  if (!stream.ok()) return stream;
  const absl::StatusOr<std::string> first = FirstBytes(**stream);
  if (absl::IsDataLoss(first.status()))
    return Refuse(path, "FILE_UNREADABLE", std::string(first.status().message()));
  if (!first.ok()) return first.status();
  if (absl::Status status = CheckKind(path, KindOf(*first)); !status.ok()) return status;
  return stream;
}

absl::StatusOr<std::string> ReadTextInput(const std::string& path, std::string_view what) {
  absl::StatusOr<std::string> text =
      ReadWhole(InputAt(path), kTextLimit, [&path, what](std::string_view first) {
        const FileKind kind = KindIn(first);
        if (kind != FileKind::kBinary && !IsRecording(kind)) return CheckKind(path, kind);
        return Refuse(path, "FILE_UNREADABLE",
                      absl::StrCat("it looks like ", std::string(TextOf(kind)), ", and not ",
                                   std::string(what)));
      });
  if (text.ok()) text->erase(0, text->size() - WithoutMark(*text).size());
  return text;
}

absl::StatusOr<std::string> ReadSecretInput(const std::string& path) {
  return ReadWhole(InputAt(path), kSecretLimit,
                   [&path](std::string_view first) { return CheckKind(path, KindIn(first)); });
}

absl::StatusOr<std::string> ReadProfileBytes(const std::string& path) {
  return ReadWhole(InputAt(path), kProfileLimit, [&path](std::string_view first) {
    const FileKind kind = KindIn(first);
    if (kind == FileKind::kBinary && !MayBeMessage(first))
      return Refuse(path, "PROFILE_UNREADABLE", "it is neither text nor a serialised message");
    if (!IsRecording(kind)) return CheckKind(path, kind);
    return Refuse(path, "PROFILE_UNREADABLE",
                  absl::StrCat("it looks like ", std::string(TextOf(kind)),
                               ", not a profile: stepcast profile import makes one of it"));
  });
}

absl::StatusOr<v1::Profile> ReadProfileInput(const std::string& path) {
  const absl::StatusOr<std::string> bytes = ReadProfileBytes(path);
  if (!bytes.ok()) return bytes.status();
  return ParseProfileInput(*bytes, path);
}

absl::StatusOr<v1::Profile> ParseProfileInput(std::string_view bytes, const std::string& path) {
  absl::StatusOr<v1::Profile> profile = ParseProfile(bytes);
  if (profile.ok()) return profile;
  const FileKind kind = KindIn(bytes);
  const std::string not_number = kind == FileKind::kProfileJson ? NotNumberIn(bytes) : "";
  if (!not_number.empty()) return Refuse(path, "PROFILE_UNREADABLE", not_number);
  const bool is_likely = kind == FileKind::kProfileJson || kind == FileKind::kProfileText;
  return Refuse(
      path, "PROFILE_UNREADABLE",
      absl::StrCat(std::string(profile.status().message()),
                   is_likely ? "" : absl::StrCat("; it looks like ", std::string(TextOf(kind)))));
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  absl::Status named(status.code(), absl::StrCat(InputAt(path).Name(), ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { named.SetPayload(type, payload); });
  return named;
}

absl::Status NamingFiles(const absl::Status& status,
                         const std::map<std::string, std::string>& names) {
  const auto name_of = [&names](const std::string& field) -> std::string {
    const auto known = names.find(field);
    if (known != names.end()) return known->second;
    const auto recording = names.find("recording");
    const std::string line = LineOf(field);
    return line.empty() || recording == names.end()
               ? field
               : absl::StrCat(recording->second, ", line ", line);
  };
  std::string message(status.message());
  const std::string field = message.substr(0, message.find(": "));
  if (field.size() < message.size()) message.replace(0, field.size(), name_of(field));
  absl::Status named(status.code(), message);
  const std::string bad_request_type =
      "type.googleapis.com/" + google::rpc::BadRequest::descriptor()->full_name();
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    google::rpc::BadRequest bad;
    if (type != bad_request_type || !bad.ParseFromString(std::string(payload)))
      return named.SetPayload(type, payload);
    for (auto& violation : *bad.mutable_field_violations())
      violation.set_field(name_of(violation.field()));
    named.SetPayload(type, absl::Cord(bad.SerializeAsString()));
  });
  return named;
}

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
    // The size is behind the last space, since it has none.
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
