#include "core/importing/common/json_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

#include "core/base/message_text.h"
#include "core/importing/common/recording_import.h"

namespace stepcast {

namespace {

// Characters that end a number or a word.
constexpr std::string_view kWordEnds = " \t\r\n\":,[]{}";

// The bytes of a JSON text for a parser that takes one after the other.
//
// Failure ends the bytes early: see status().
class JsonBytes {
 public:
  // A parser keeps what it has of a text or number, so none may be longer; nor may the space
  // between two of them.
  static constexpr int64_t kMaxTokenBytes = 1 << 20;

  // A parser's input iterator, in the form of the standard's. The default is the end.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = char;

    Iterator() = default;
    explicit Iterator(JsonBytes& bytes) : bytes_(&bytes) {}
    char operator*() const { return bytes_->buffer_[bytes_->at_]; }
    Iterator& operator++() {
      ++bytes_->at_;
      return *this;
    }
    // A parser compares with the end alone.
    bool operator==(const Iterator& /*end*/) const { return bytes_->IsAtEnd(); }

   private:
    JsonBytes* bytes_ = nullptr;
  };

  // Asks `stop` before each block that it reads. Borrows both.
  JsonBytes(ByteSource& source, StopCheck stop) : source_(source), stop_(stop) {}

  Iterator begin() { return Iterator(*this); }
  static Iterator end() { return {}; }
  bool IsAtEnd() { return at_ == size_ && !Fill(); }

  // The rest of a word that was begun, or a part of it that tells it.
  std::string TakeWord() {
    constexpr size_t kMostBytes = 16;
    std::string word;
    for (Iterator byte = begin(); word.size() < kMostBytes && !IsAtEnd(); ++byte) {
      if (kWordEnds.find(*byte) != std::string_view::npos) break;
      word += *byte;
    }
    return word;
  }

  int64_t position() const { return before_ + static_cast<int64_t>(at_); }
  // The parser has taken a whole text, number or bracket.
  void EndToken() { token_from_ = position(); }
  // The error of the source or the stop check; RESOURCE_EXHAUSTED: a token is too long.
  const absl::Status& status() const { return status_; }

 private:
  bool Fill() {
    if (!status_.ok()) return false;
    if (size_ < filled_) {
      // A value is missing here; the byte before was taken already.
      at_ = size_ - 1;
      buffer_[at_] = '0';
      size_ = EndOfMissing(size_ + 1);
      return true;
    }
    if (position() - token_from_ > kMaxTokenBytes) {
      status_ = absl::ResourceExhaustedError(
          "a text, a number or the space between two is longer than a mebibyte");
      return false;
    }
    status_ = stop_();
    if (!status_.ok()) return false;
    before_ += static_cast<int64_t>(filled_);
    at_ = size_ = filled_ = 0;
    // A comma that is not yet decided on is held back until its next byte is there.
    size_t there = held_.copy(buffer_.data(), buffer_.size());
    size_t read_bytes = 1;
    while (read_bytes > 0 && filled_ == 0) {
      const absl::StatusOr<size_t> read =
          source_.Read(buffer_.data() + there, buffer_.size() - there);
      status_ = read.status();
      if (!read.ok()) return false;
      read_bytes = *read;
      there += read_bytes;
      filled_ = MendEscapes(there, /*is_all=*/read_bytes == 0);
      if (read_bytes > 0) filled_ = std::min(filled_, BeginOfMissing({buffer_.data(), there}));
    }
    held_.assign(buffer_.data() + filled_, there - filled_);
    size_ = EndOfMissing(1);
    return size_ > 0;
  }

  // A backslash that begins no escape, as the paths of Windows have, becomes a slash. The result is
  // where an escape begins that the bytes do not end; else their end.
  size_t MendEscapes(size_t size, bool is_all) {
    const std::string_view text(buffer_.data(), size);
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr size_t kDigits = 4;
    for (size_t at = text.find('\\'); at < size; at = text.find('\\', at)) {
      const bool has_number = at + 1 < size && text[at + 1] == 'u';
      const size_t need = has_number ? 2 + kDigits : 2;
      if (at + need > size && !is_all) return at;
      const std::string_view escape = text.substr(at + 1, need - 1);
      const bool is_escape =
          has_number ? escape.size() == 1 + kDigits &&
                           std::all_of(escape.begin() + 1, escape.end(),
                                       [](unsigned char c) { return absl::ascii_isxdigit(c); })
                     : escape.empty() || kEscapes.find(escape[0]) != std::string_view::npos;
      if (!is_escape) buffer_[at] = '/';
      at += is_escape ? need : 1;
    }
    return size;
  }

  // PyTorch of 2024 wrote `"Process Group Description": ,`, others the same without a space or at
  // an object's end.
  static constexpr std::string_view kSpace = " \t\r\n";
  // The begin of what may be a part of it, with the byte before its quote, that a text ends in;
  // else the text's end.
  static size_t BeginOfMissing(std::string_view text) {
    constexpr size_t kMostSpace = 64;
    size_t at = text.find_last_not_of(kSpace) + 1;  // npos + 1 is 0
    const bool has_colon = at > 0 && text[at - 1] == ':';
    if (text.size() - at > kMostSpace || (at < text.size() && !has_colon)) return text.size();
    if (has_colon) --at;
    const bool has_quote = at > 0 && text[at - 1] == '"';
    if (has_quote) --at;
    // The end of a value is given with the bytes before it.
    const bool has_letter = at > 0 && text[at - 1] != ',' && text[at - 1] != '}';
    if (!has_quote && (has_colon || !has_letter)) return text.size();
    return at - (has_letter ? 1 : 0);
  }
  // True where a key's quote and colon stand before, and no value. A quote in a text has a
  // backslash before it.
  bool IsMissingBefore(size_t end) const {
    const std::string_view text(buffer_.data(), end);
    const size_t colon = text.find_last_not_of(kSpace);
    return colon != std::string_view::npos && colon > 1 && text[colon] == ':' &&
           text[colon - 1] == '"' && text[colon - 2] != '\\';
  }
  // The first place after `at` before which a value is missing; else the end.
  size_t EndOfMissing(size_t at) const {
    const std::string_view text(buffer_.data(), filled_);
    for (at = text.find(':', at); at < filled_; at = text.find(':', at)) {
      for (++at; at < filled_ && absl::ascii_isspace(static_cast<unsigned char>(text[at]));) ++at;
      if (at == filled_) break;
      if ((text[at] == ',' || text[at] == '}') && IsMissingBefore(at)) return at;
    }
    return filled_;
  }

  ByteSource& source_;
  StopCheck stop_;
  std::array<char, size_t{64} << 10> buffer_;
  size_t at_ = 0;
  size_t size_ = 0;     // of the buffer, up to a missing value
  size_t filled_ = 0;   // of all of it
  int64_t before_ = 0;  // the buffer
  int64_t token_from_ = 0;
  std::string held_;
  absl::Status status_;
};

// A fault where `token`, as far as it was read and with what stands before it, ends in the
// beginning of NaN or an infinity, which Python and C write and JSON does not have, or in another
// word. `rest`: what follows of the word.
//
// Control characters within a text, as PyTorch writes some names of Python functions, and bytes
// that are not UTF-8 are others.
std::string FaultOfToken(std::string_view token, std::string_view rest, std::string_view error) {
  if (error.find("control character") != std::string_view::npos) {
    return "a control character in a text, which JSON does not have (a known fault of PyTorch's "
           "profiler): remove it, or record without with_stack";
  }
  if (error.find("ill-formed UTF-8") != std::string_view::npos)
    return "a text with bytes that are not UTF-8, which JSON does not have: write it as UTF-8";
  const bool is_word = error.find("invalid literal") != std::string_view::npos ||
                       error.find("invalid number") != std::string_view::npos;
  token.remove_prefix(token.find_last_of(kWordEnds) + 1);  // npos + 1 is 0
  if (error.find("number overflow") != std::string_view::npos)
    return absl::StrCat("the number ", Quoted(token), " is larger than any that can be read");
  const std::string written = std::string(token).append(rest);
  const bool is_text = std::all_of(written.begin(), written.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  if (!is_word || !is_text || rest.empty()) return "no JSON, or one that is cut short";
  const std::string word = absl::AsciiStrToLower(written.substr(written[0] == '-' ? 1 : 0));
  const char* const number = absl::StartsWith(word, "nan")   ? "NaN"
                             : absl::StartsWith(word, "inf") ? "Infinity"
                                                             : nullptr;
  if (number == nullptr) return absl::StrCat("no JSON: ", Quoted(written), " is no value of it");
  return absl::StrCat(number,
                      ", which is not a number of JSON: what wrote the file measured "
                      "nothing there");
}

}  // namespace

// The handler of nlohmann's parser. A function that returns false ends the parsing.
class JsonReader::Events {
 public:
  using Json = nlohmann::json;

  Events(JsonReader& reader, JsonBytes& bytes) : reader_(reader), bytes_(bytes) {}

  // NOLINTBEGIN(readability-identifier-naming): the parser's names.
  bool null() {
    bytes_.EndToken();
    return true;
  }
  bool boolean(bool value) {
    return Value([&] { reader_.Boolean(value); });
  }
  bool number_integer(Json::number_integer_t value) {
    return Value([&] { reader_.Number(static_cast<double>(value), value); });
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    const auto whole = static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
    return Value([&] { reader_.Number(static_cast<double>(value), whole); });
  }
  bool number_float(Json::number_float_t value, const std::string&) {
    return Value([&] { reader_.Number(value, std::nullopt); });
  }
  bool string(std::string& value) {
    return Value([&] { reader_.Text(value); });
  }
  bool binary(Json::binary_t&) { return null(); }
  bool key(std::string& value) {
    return Value([&] { reader_.TakeKey(value, reader_.key_); });
  }
  bool start_object(size_t) {
    return Begin([&] { return reader_.BeginObject(); });
  }
  bool start_array(size_t) {
    return Begin([&] { return reader_.BeginList(); });
  }
  bool end_object() { return End(); }
  bool end_array() { return End(); }

  bool parse_error(size_t, const std::string& token, const nlohmann::detail::exception& error) {
    reader_.position_ = bytes_.position();
    reader_.ended_early_ =
        reader_.passed_over_ == 0 && reader_.MayEnd() && bytes_.IsAtEnd() && bytes_.status().ok();
    if (!reader_.ended_early_)
      reader_.FailAtByte(FaultOfToken(token, bytes_.TakeWord(), error.what()));
    return false;
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  bool Reach() {
    bytes_.EndToken();
    reader_.position_ = bytes_.position();
    return reader_.passed_over_ == 0;
  }

  template <typename Take>
  bool Value(const Take& take) {
    if (!Reach()) return true;
    take();
    return reader_.status_.ok();
  }

  template <typename Place>
  bool Begin(const Place& place) {
    const int entered = Reach() ? place() : kPassOver;
    if (entered != kPassOver) {
      reader_.places_.push_back(entered);
    } else if (++reader_.passed_over_ > reader_.max_depth_) {
      reader_.FailAtByte(absl::StrCat("nested more than ", reader_.max_depth_, " deep"));
    }
    return reader_.status_.ok();
  }

  bool End() {
    if (!Reach()) {
      --reader_.passed_over_;
      return true;
    }
    reader_.End();
    reader_.places_.pop_back();
    return reader_.status_.ok();
  }

  JsonReader& reader_;
  JsonBytes& bytes_;
};

absl::Status JsonReader::Read(ByteSource& source, StopCheck stop) {
  JsonBytes bytes(source, stop);
  Events events(*this, bytes);
  Events::Json::sax_parse(bytes.begin(), JsonBytes::end(), &events);
  if (absl::IsResourceExhausted(bytes.status()) && !status_.ok()) {
    return ImportFault(kAtRecording,
                       absl::StrCat("byte ", bytes.position(), ": ", bytes.status().message()));
  }
  return bytes.status().ok() ? status_ : bytes.status();
}

void JsonReader::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void JsonReader::Fail(std::string description) {
  Fail(ImportFault(kAtRecording, std::move(description)));
}

void JsonReader::FailAtByte(const std::string& description) {
  Fail(absl::StrCat("byte ", position_, ": ", description));
}

}  // namespace stepcast
