#include "server/handlers/listing.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "server/convert/sha256.h"
#include "server/handlers/request_checks.h"

namespace stepcast::server {

namespace {

// Reads from left to right. The first error stays and ends every later read.
class FilterReader {
 public:
  explicit FilterReader(std::string_view text) : text_(text) {}

  absl::StatusOr<ProfileFilter> Read() {
    SkipSpace();
    while (at_ < text_.size() && error_.empty()) {
      ReadTerm();
      SkipSpace();
      if (at_ == text_.size() || !error_.empty()) break;
      if (!TakeWord("AND")) Fail("expected AND");
      SkipSpace();
      if (at_ == text_.size()) Fail("expected a term after AND");
    }
    if (error_.empty()) return std::move(filter_);
    return FaultsError(
        "REQUEST_INVALID",
        {{.field = "filter",
          .description = absl::StrCat(Quoted(text_), ", at byte ", error_at_, ": ", error_)}});
  }

 private:
  void ReadTerm() {
    if (TakeWord("model")) {
      const std::string value = ReadValue();
      if (filter_.model && *filter_.model != value)
        Fail("model is already compared with another value");
      filter_.model = value;
    } else if (TakeWord("labels")) {
      ReadLabel();
    } else {
      Fail("expected model or labels");
    }
  }

  void ReadLabel() {
    if (TakeSign(':')) {
      filter_.present_labels.push_back(ReadText(/*with_dots=*/false));
      return;
    }
    if (!TakeSign('.')) return Fail("expected . or : after labels");
    const std::string key = ReadText(/*with_dots=*/false);
    const std::string value = ReadValue();
    const auto [entry, is_new] = filter_.labels.emplace(key, value);
    if (!is_new && entry->second != value)
      Fail("this label is already compared with another value");
  }

  std::string ReadValue() {
    SkipSpace();
    if (!TakeSign('=')) {
      Fail("expected =");
      return {};
    }
    SkipSpace();
    return ReadText(/*with_dots=*/true);
  }

  std::string ReadText(bool with_dots) {
    if (!error_.empty()) return {};
    if (TakeSign('"')) return ReadString();
    const size_t start = at_;
    while (at_ < text_.size() && IsWord(text_[at_], with_dots)) ++at_;
    if (at_ == start) Fail("expected a word or a string in double quotes");
    return std::string(text_.substr(start, at_ - start));
  }

  // After the opening quote.
  std::string ReadString() {
    std::string value;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) value.push_back(text_[at_++]);
    }
    if (!TakeSign('"')) Fail("the string does not end");
    return value;
  }

  static bool IsWord(char c, bool with_dots) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '/' ||
           (with_dots && c == '.');
  }

  bool TakeSign(char sign) {
    if (at_ >= text_.size() || text_[at_] != sign) return false;
    ++at_;
    return true;
  }

  // A whole word: `models` does not begin with `model`.
  bool TakeWord(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    if (at_ + word.size() < text_.size() && IsWord(text_[at_ + word.size()], /*with_dots=*/false))
      return false;
    at_ += word.size();
    return true;
  }

  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  void Fail(std::string_view error) {
    if (!error_.empty()) return;
    error_ = error;
    error_at_ = at_;
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::string error_;
  size_t error_at_ = 0;
  ProfileFilter filter_;
};

}  // namespace

absl::StatusOr<ProfileFilter> ParseProfileFilter(std::string_view text) {
  if (text.size() > kMaxFilterBytes) {
    return FaultsError("REQUEST_INVALID",
                       {{.field = "filter",
                         .description = absl::StrCat(
                             text.size(), " bytes are above the maximum of ", kMaxFilterBytes)}});
  }
  return FilterReader(text).Read();
}

namespace {

constexpr char kVersion = '1';
constexpr size_t kFilterDigits = 16;

// The form's version, then the filter it belongs to.
std::string Binding(std::string_view filter) {
  return Sha256Hex(filter).substr(0, kFilterDigits).insert(0, 1, kVersion);
}

absl::Status Refused(std::string_view token, std::string_view why) {
  return FaultsError("REQUEST_INVALID",
                     {{.field = "page_token", .description = Quoted(token).append(why)}});
}

}  // namespace

std::string MakePageToken(std::string_view filter, std::string_view after) {
  return absl::WebSafeBase64Escape(Binding(filter).append(after));
}

absl::StatusOr<std::string> ReadPageToken(std::string_view token, std::string_view filter) {
  if (token.empty()) return std::string();
  std::string text;
  const std::string binding = Binding(filter);
  if (!absl::WebSafeBase64Unescape({token.data(), token.size()}, &text) ||
      text.size() <= binding.size() || !IsProfileId(text.substr(binding.size()))) {
    return Refused(token, " is not a token of this service");
  }
  if (text.compare(0, binding.size(), binding) != 0)
    return Refused(token, " was made with another filter");
  return text.substr(binding.size());
}

}  // namespace stepcast::server
