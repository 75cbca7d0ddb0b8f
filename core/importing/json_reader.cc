#include "core/importing/json_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

#include "core/importing/recording_options.h"

namespace stepcast {

namespace {

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
    bool operator==(const Iterator& other) const { return IsAtEnd() == other.IsAtEnd(); }

   private:
    bool IsAtEnd() const { return bytes_ == nullptr || bytes_->IsAtEnd(); }

    JsonBytes* bytes_ = nullptr;
  };

  // Asks `stop` before each block that it reads. Borrows both.
  JsonBytes(ByteSource& source, StopCheck stop) : source_(source), stop_(stop) {}

  Iterator begin() { return Iterator(*this); }
  static Iterator end() { return {}; }
  bool IsAtEnd() { return at_ == size_ && !Fill(); }

  int64_t position() const { return before_ + static_cast<int64_t>(at_); }
  // The parser has taken a whole text, number or bracket.
  void EndToken() { token_from_ = position(); }
  // The error of the source or the stop check; RESOURCE_EXHAUSTED: a token is too long.
  const absl::Status& status() const { return status_; }

 private:
  bool Fill() {
    if (!status_.ok()) return false;
    if (position() - token_from_ > kMaxTokenBytes) {
      status_ = absl::ResourceExhaustedError(
          "a text, a number or the space between two is longer than a mebibyte");
      return false;
    }
    status_ = stop_();
    if (!status_.ok()) return false;
    before_ += static_cast<int64_t>(size_);
    if (size_ > 0) last_ = buffer_[size_ - 1];
    at_ = size_ = 0;
    // The possible begin of a missing value is held back until what follows is there.
    size_t filled = held_.copy(buffer_.data(), buffer_.size());
    size_t read_bytes = 1;
    while (read_bytes > 0 && filled == held_.size()) {
      const absl::StatusOr<size_t> read =
          source_.Read(buffer_.data() + filled, buffer_.size() - filled);
      status_ = read.status();
      if (!read.ok()) return false;
      read_bytes = *read;
      filled += read_bytes;
      const std::string_view text(buffer_.data(), filled);
      held_ = text.substr(read_bytes == 0 ? filled : BeginOfMissing(text));
    }
    GiveMissingValues(std::string_view(buffer_.data(), filled));
    size_ = filled - held_.size();
    return size_ > 0;
  }

  // PyTorch of 2024 wrote `"Process Group Description": ,`.
  static constexpr std::string_view kMissing = "\": ,";
  // The begin of a part of it that a text ends in; else the text's end.
  static size_t BeginOfMissing(std::string_view text) {
    for (size_t part = kMissing.size() - 1; part > 0; --part) {
      if (text.size() >= part && text.substr(text.size() - part) == kMissing.substr(0, part))
        return text.size() - part;
    }
    return text.size();
  }
  // Eight bytes at a time, since most parts of a file have none: a search for a quote or a comma
  // stops at each.
  static bool HasSpaceBeforeComma(std::string_view text) {
    constexpr uint64_t kOnes = 0x0101010101010101;
    size_t at = 0;
    for (; at + sizeof(uint64_t) < text.size(); at += sizeof(uint64_t)) {
      uint64_t first = 0;
      uint64_t second = 0;
      std::memcpy(&first, text.data() + at, sizeof(first));
      std::memcpy(&second, text.data() + at + 1, sizeof(second));
      const uint64_t differs = (first ^ (kOnes * ' ')) | (second ^ (kOnes * ','));
      if (((differs - kOnes) & ~differs & (kOnes << 7)) != 0) return true;
    }
    return text.find(" ,", at) != std::string_view::npos;
  }
  // A key without a value becomes one with 0, in the place of the space. After its quote a text
  // would begin, were it not the end of a key's.
  void GiveMissingValues(std::string_view text) {
    if (!HasSpaceBeforeComma(text)) return;
    for (size_t at = text.find(kMissing); at != std::string_view::npos;
         at = text.find(kMissing, at + 1)) {
      const char before = at > 0 ? text[at - 1] : last_;
      if (absl::ascii_isalnum(static_cast<unsigned char>(before))) buffer_[at + 2] = '0';
    }
  }

  ByteSource& source_;
  StopCheck stop_;
  std::array<char, size_t{64} << 10> buffer_;
  size_t at_ = 0;
  size_t size_ = 0;
  int64_t before_ = 0;  // the buffer
  int64_t token_from_ = 0;
  std::string held_;
  char last_ = 0;  // before the buffer
  absl::Status status_;
};

// A fault where `token`, as far as it was read and with what stands before it, ends in the
// beginning of NaN or an infinity, which Python writes and JSON does not have.
//
// Control characters within a text, as PyTorch writes some names of Python functions, and bytes
// that are not UTF-8 are others.
std::string FaultOfToken(std::string_view token, std::string_view error) {
  if (error.find("control character") != std::string_view::npos) {
    return "a control character in a text, which JSON does not have (a known fault of PyTorch's "
           "profiler): remove it, or record without with_stack";
  }
  if (error.find("ill-formed UTF-8") != std::string_view::npos)
    return "a text with bytes that are not UTF-8, which JSON does not have: write it as UTF-8";
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  token.remove_prefix(token.find_last_not_of(kLetters) + 1);  // npos + 1 is 0
  if (token == "N" || token == "na")
    return "NaN, which is not a number of JSON: what wrote the file measured nothing there";
  if (token == "I" || token == "i")
    return "Infinity, which is not a number of JSON: what wrote the file measured nothing there";
  return "no JSON, or one that is cut short";
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
    if (!reader_.ended_early_) reader_.FailAtByte(FaultOfToken(token, error.what()));
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
