// A reader of JSON that takes a text value by value, so that it never holds the whole of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"

namespace stepcast {

// The base of a reader of one kind of recording, which says by places what it needs of a text.
//
// Places: a reader is outside of everything (kTop) or in one of the objects and lists it has
// entered, each of which it calls by a number of its own from 1. What it does not enter is passed
// over with all that is in it, and it hears nothing of that.
// Memory: a block of the text, and the longest text or number in it, which is bounded.
class JsonReader {
 public:
  virtual ~JsonReader() = default;
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

 protected:
  static constexpr int kTop = 0;
  static constexpr int kPassOver = -1;

  // `max_depth`: of objects and lists in what is passed over.
  explicit JsonReader(int max_depth) : max_depth_(max_depth) {}

  // Reads a whole text, once. Failure: INVALID_ARGUMENT, reason IMPORT_INVALID, at `recording`,
  // with the byte, where it is no JSON, is cut short, is nested too deep or has a text, a number or
  // space longer than a mebibyte; the first Fail; what the source or `stop` fails with.
  absl::Status Read(ByteSource& source, StopCheck stop);

  // An object, or a list, begins in place(): the place that it is, or kPassOver.
  virtual int BeginObject() = 0;
  virtual int BeginList() = 0;
  // The place that was entered last ends; place() is still it.
  virtual void End() {}
  // The values found in place(), under key() where that is an object. `whole`: a number without a
  // fraction, those above int64's largest as that.
  virtual void Text(std::string& value) = 0;
  virtual void Number(double value, std::optional<int64_t> whole) = 0;
  virtual void Boolean(bool) {}
  // A key in place(), where not all of it is to be kept as it is.
  virtual void TakeKey(const std::string& key, std::string& kept) { kept = key; }
  // True where a text that ends in place() is no fault.
  virtual bool MayEnd() const { return false; }

  int place() const { return places_.back(); }
  std::string_view key() const { return key_; }
  bool ended_early() const { return ended_early_; }  // where it may

  // The reading ends after the first of these; the fault is at `recording`.
  void Fail(absl::Status status);
  void Fail(std::string description);
  // The description follows the byte that has been reached.
  void FailAtByte(const std::string& description);

 private:
  class Events;

  const int max_depth_;
  absl::Status status_;
  std::vector<int> places_ = {kTop};
  int passed_over_ = 0;  // objects and lists that are open of what is passed over
  std::string key_;
  int64_t position_ = 0;
  bool ended_early_ = false;
};

}  // namespace stepcast
