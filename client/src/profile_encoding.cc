#include "stepcast/profile_encoding.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/src/convert/profile_proto.h"
#include "client/src/local_error.h"
#include "client/src/utf8.h"

namespace stepcast::client {

namespace {

constexpr std::string_view kWhitespace = " \t\r\n";

// A profile names the resource of every operation, which in the binary form is a byte from 1 to 4:
// such a byte is in every binary profile and in no text.
bool IsText(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : kWhitespace.find(c) != std::string_view::npos;
  });
}

// Keeps the first complaint and where it was.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty())
      text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::Status Unreadable(std::string_view form, std::string_view why) {
  return MakeLocalError(
      absl::StatusCode::kInvalidArgument, "PROFILE_UNREADABLE",
      absl::StrCat("not a profile in ", std::string(form), ": ", std::string(why)),
      {{"encoding", std::string(form)}});
}

absl::Status ParseJson(std::string_view bytes, v1::Profile& profile) {
  const auto status =
      google::protobuf::util::JsonStringToMessage({bytes.data(), bytes.size()}, &profile);
  return status.ok() ? absl::OkStatus() : Unreadable("proto JSON", status.message().ToString());
}

absl::Status ParseText(std::string_view bytes, v1::Profile& profile) {
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  return parser.ParseFromString(std::string(bytes), &profile)
             ? absl::OkStatus()
             : Unreadable("proto text", error.text());
}

absl::Status ParseBinary(std::string_view bytes, v1::Profile& profile) {
  constexpr size_t kMaxBytes = size_t{1} << 30;
  if (bytes.size() > kMaxBytes)
    return Unreadable("proto binary",
                      absl::StrCat(bytes.size(), " bytes are more than ", kMaxBytes));
  const bool read = profile.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  return read ? absl::OkStatus()
              : Unreadable("proto binary", absl::StrCat("the ", bytes.size(),
                                                        " bytes are no serialised message of it"));
}

absl::Status ParseMessage(std::string_view bytes, ProfileEncoding encoding, v1::Profile& profile) {
  switch (encoding) {
    case ProfileEncoding::kJson:
      return ParseJson(bytes, profile);
    case ProfileEncoding::kText:
      return ParseText(bytes, profile);
    default:
      return ParseBinary(bytes, profile);
  }
}

}  // namespace

ProfileEncoding DetectProfileEncoding(std::string_view bytes) {
  if (!IsText(bytes)) return ProfileEncoding::kBinary;
  const size_t first = bytes.find_first_not_of(kWhitespace);
  return first != std::string_view::npos && bytes[first] == '{' ? ProfileEncoding::kJson
                                                                : ProfileEncoding::kText;
}

absl::StatusOr<Profile> ParseProfile(std::string_view bytes, ProfileEncoding encoding) {
  if (encoding == ProfileEncoding::kUnspecified) encoding = DetectProfileEncoding(bytes);
  v1::Profile message;
  if (absl::Status status = ParseMessage(bytes, encoding, message); !status.ok()) return status;
  Profile profile;
  FromProto(message, profile);
  // Protobuf sees to this in its other two forms, but not in text.
  if (const std::string path = FirstBrokenText(profile); !path.empty())
    return Unreadable("proto text", absl::StrCat(path, " is not UTF-8"));
  return profile;
}

}  // namespace stepcast::client
