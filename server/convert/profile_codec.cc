#include "server/convert/profile_codec.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/importing/file_kind.h"
#include "server/convert/any_message.h"
#include "server/convert/profile_convert.h"
#include "server/convert/sha256.h"

namespace stepcast::server {

namespace {

namespace pb = google::protobuf;

// The contract's messages are four deep.
constexpr int kMaxNesting = 16;

std::string DigestOf(v1::Profile message) {
  message.clear_display_name();
  message.clear_labels();
  return Sha256Hex(DeterministicBytes(message));
}

bool ParseBinary(std::string_view bytes, v1::Profile& message) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return false;
  const auto* data = static_cast<const uint8_t*>(static_cast<const void*>(bytes.data()));
  pb::io::CodedInputStream stream(data, static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxNesting);
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

// The first error of the parser of the text form.
class FirstError final : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (text_.empty())
      text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", Quoted(message));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::Status Malformed(std::string_view form, std::string_view why) {
  return FaultsError(
      "PROFILE_MALFORMED",
      {{.field = "chunk",
        .description = std::string("the bytes are no Profile in ").append(form).append(why)}});
}

absl::Status ParseJson(std::string_view bytes, v1::Profile& message) {
  pb::util::JsonParseOptions options;
  options.ignore_unknown_fields = false;
  const auto status =
      pb::util::JsonStringToMessage({bytes.data(), bytes.size()}, &message, options);
  if (status.ok()) return absl::OkStatus();
  if (const std::string not_number = NotNumberIn(bytes); !not_number.empty())
    return Malformed("proto JSON: ", not_number);
  return Malformed("proto JSON: ", Quoted({status.message().data(), status.message().size()}));
}

absl::Status ParseText(std::string_view bytes, v1::Profile& message) {
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxNesting);
  pb::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  if (parser.Parse(&stream, &message)) return absl::OkStatus();
  return Malformed("proto text form: ", error.text());
}

// Error about bytes that are not a profile: what they look like, where that is told.
absl::Status SayWhatItLooksLike(const absl::Status& malformed, FileKind kind) {
  if (malformed.ok() || kind == FileKind::kProfileJson || kind == FileKind::kProfileText ||
      kind == FileKind::kBinary)
    return malformed;
  std::string description = DetailsOf(malformed).faults.front().description;
  description.append("; it looks like ").append(TextOf(kind));
  return FaultsError("PROFILE_MALFORMED",
                     {{.field = "chunk", .description = std::move(description)}});
}

absl::Status Parse(ProfileEncoding encoding, std::string_view bytes, v1::Profile& message) {
  switch (encoding) {
    case ProfileEncoding::kJson:
      return ParseJson(bytes, message);
    case ProfileEncoding::kText:
      return ParseText(bytes, message);
    case ProfileEncoding::kBinary:
      break;
  }
  if (!ParseBinary(bytes, message)) return Malformed("binary form", "");
  const std::vector<Fault> unknown = UnknownFields(message);
  if (unknown.empty()) return absl::OkStatus();
  const Fault& first = unknown.front();
  return Malformed("binary form: ",
                   absl::StrCat(first.field, first.field.empty() ? "" : ": ", first.description));
}

absl::Status Corrupt(std::string_view why) {
  return MakeError(absl::StatusCode::kDataLoss,
                   std::string("the stored profile cannot be read: ").append(why),
                   {.reason = "PROFILE_CORRUPT"});
}

// A stored profile kept the limits that were in force then, which later ones must not make
// unreadable.
ProfileLimits NoLimits() {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr size_t kMaxSize = std::numeric_limits<size_t>::max();
  return {.max_operations = kMax,
          .max_steps = kMax,
          .max_recorded_times = kMax,
          .max_dependencies = kMax,
          .max_parameter_servers = kMax,
          .max_batch_size = kMax,
          .max_transfer_bytes = kMax,
          .max_step_ns = kMax,
          .max_name_bytes = kMaxSize,
          .max_text_bytes = kMaxSize,
          .max_labels = kMaxSize,
          .max_label_key_bytes = kMaxSize};
}

}  // namespace

EncodedProfile EncodeProfile(const Profile& profile) {
  v1::Profile message = ToWire(profile.content());
  std::string content = DeterministicBytes(message);
  return {.content = std::move(content), .digest = DigestOf(std::move(message))};
}

std::string DigestOf(const Profile& profile) { return DigestOf(ToWire(profile.content())); }

absl::StatusOr<Profile> DecodeProfile(std::string_view content) {
  v1::Profile message;
  if (!ParseBinary(content, message)) return Corrupt("it is no Profile message");
  ProfileInput input = FromWire(message);
  if (!input.faults.empty()) return Corrupt(input.faults.front().description);
  absl::StatusOr<Profile> profile = Profile::Create(std::move(input.draft), NoLimits());
  if (!profile.ok())
    return Corrupt({profile.status().message().data(), profile.status().message().size()});
  return profile;
}

absl::StatusOr<ProfileInput> ReadProfile(ProfileEncoding encoding, std::string_view bytes) {
  v1::Profile message;
  const FileKind kind = KindOf(bytes.substr(0, kKindBytes));
  // Before they are parsed: a few bytes of an image may be unknown fields of a message.
  if (std::string refusal = RefusalOf(kind); !refusal.empty()) {
    return FaultsError("PROFILE_MALFORMED",
                       {{.field = "chunk", .description = std::move(refusal)}});
  }
  const std::string_view text = encoding == ProfileEncoding::kBinary ? bytes : WithoutMark(bytes);
  const absl::Status parsed = Parse(encoding, text, message);
  if (!parsed.ok()) return SayWhatItLooksLike(parsed, kind);
  return FromWire(message);
}

}  // namespace stepcast::server
