#include "stepcast/profile_encoding.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <utf8cpp/utf8.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/src/error_status.h"

namespace stepcast::client {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Request = v1::UploadProfileRequest;

constexpr std::string_view kWhitespace = " \t\r\n";

// A profile names the resource of every operation, which in the binary form is a byte from 1 to 4:
// such a byte is in every binary profile and in no text.
bool IsText(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : kWhitespace.find(c) != std::string_view::npos;
  });
}

// A text without UTF-8's byte order mark, which many editors write.
std::string_view WithoutMark(std::string_view bytes) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return bytes.substr(bytes.substr(0, kMark.size()) == kMark ? kMark.size() : 0);
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
              : Unreadable("proto binary",
                           absl::StrCat("the ", bytes.size(),
                                        " bytes are not a serialised message of it"));
}

absl::Status ParseMessage(std::string_view bytes, Request::Encoding encoding,
                          v1::Profile& profile) {
  switch (encoding) {
    case Request::JSON:
      return ParseJson(WithoutMark(bytes), profile);
    case Request::TEXT:
      return ParseText(WithoutMark(bytes), profile);
    default:
      return ParseBinary(bytes, profile);
  }
}

// The path of the first text that is not UTF-8 in a message, for instance "operations[3].name";
// empty: all are.
std::string FirstBrokenText(const Message& message);

std::string BrokenTextIn(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const int size = field.is_repeated() ? reflection.FieldSize(message, &field) : 1;
  for (int i = 0; i < size; ++i) {
    std::string path = field.name();
    if (field.is_repeated() && !field.is_map()) absl::StrAppend(&path, "[", i, "]");
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      const std::string text = field.is_repeated()
                                   ? reflection.GetRepeatedString(message, &field, i)
                                   : reflection.GetString(message, &field);
      if (!utf8::is_valid(text.begin(), text.end())) return path;
      continue;
    }
    const std::string inner =
        FirstBrokenText(field.is_repeated() ? reflection.GetRepeatedMessage(message, &field, i)
                                            : reflection.GetMessage(message, &field));
    if (!inner.empty()) return field.is_map() ? path : absl::StrCat(path, ".", inner);
  }
  return "";
}

std::string FirstBrokenText(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
        field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      continue;
    if (std::string path = BrokenTextIn(message, *field); !path.empty()) return path;
  }
  return "";
}

}  // namespace

Request::Encoding DetectProfileEncoding(std::string_view bytes) {
  if (!IsText(bytes)) return Request::BINARY;
  bytes = WithoutMark(bytes);
  const size_t first = bytes.find_first_not_of(kWhitespace);
  return first != std::string_view::npos && bytes[first] == '{' ? Request::JSON : Request::TEXT;
}

absl::StatusOr<v1::Profile> ParseProfile(std::string_view bytes, Request::Encoding encoding) {
  if (encoding == Request::ENCODING_UNSPECIFIED) encoding = DetectProfileEncoding(bytes);
  v1::Profile profile;
  if (absl::Status status = ParseMessage(bytes, encoding, profile); !status.ok()) return status;
  // Protobuf sees to this in its other two forms.
  if (encoding != Request::TEXT) return profile;
  if (const std::string path = FirstBrokenText(profile); !path.empty())
    return Unreadable("proto text", absl::StrCat(path, " is not UTF-8"));
  return profile;
}

}  // namespace stepcast::client
