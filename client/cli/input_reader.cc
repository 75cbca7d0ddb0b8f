#include "client/cli/input_reader.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/src/error_status.h"
#include "google/rpc/error_details.pb.h"

#include "core/importing/common/byte_source.h"
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

}  // namespace stepcast::client
