// The bytes of a JSON text, as nlohmann's SAX parser takes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/status/status.h"

#include "core/base/stop_check.h"
#include "core/importing/byte_source.h"

namespace stepcast {

// The bytes of a JSON text for a parser that takes one after the other, so that the text is never
// held as a whole.
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
    bool operator==(const Iterator& other) const { return AtEnd() == other.AtEnd(); }

   private:
    bool AtEnd() const {
      return bytes_ == nullptr || (bytes_->at_ == bytes_->size_ && !bytes_->Fill());
    }

    JsonBytes* bytes_ = nullptr;
  };

  // Asks `stop` before each block that it reads. Borrows both.
  JsonBytes(ByteSource& source, StopCheck stop) : source_(source), stop_(stop) {}

  Iterator begin() { return Iterator(*this); }
  static Iterator end() { return {}; }

  int64_t position() const { return before_ + static_cast<int64_t>(at_); }
  // The parser has taken a whole text, number or bracket.
  void EndToken() { token_from_ = position(); }
  // The error of the source or the stop check; RESOURCE_EXHAUSTED: a token is too long.
  const absl::Status& status() const { return status_; }

 private:
  bool Fill();

  ByteSource& source_;
  StopCheck stop_;
  std::array<char, size_t{64} << 10> buffer_;
  size_t at_ = 0;
  size_t size_ = 0;
  int64_t before_ = 0;  // the buffer
  int64_t token_from_ = 0;
  absl::Status status_;
};

}  // namespace stepcast
