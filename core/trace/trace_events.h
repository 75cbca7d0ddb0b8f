// Events of a trace that ui.perfetto.dev shows, the texts that they are made of, and the pieces in
// which a long text is handed on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "core/base/time.h"

namespace stepcast {

// A long text, cut into pieces of bounded size as it grows.
//
// Threads: none. Memory: one piece, and what is appended at once.

// Takes the next piece of a text. May block until there is room for it. Not OK: no more is wanted,
// and why.
using TextSink = absl::FunctionRef<absl::Status(std::string piece)>;

class TextPieces {
 public:
  static constexpr size_t kPieceBytes = size_t{64} << 10;

  // `sink` must outlive it.
  explicit TextPieces(TextSink sink) : sink_(sink) {}

  // Passes on every piece that is full. Once the sink has failed, does nothing.
  void Append(std::string_view text);
  // Passes on what is left. Call once, in the end.
  void Finish();
  // The error of the sink; OK where it has not failed.
  const absl::Status& status() const { return status_; }

 private:
  void PassOn();

  TextSink sink_;
  std::string piece_;
  absl::Status status_;
};

// Simulated instants as a trace writes them: microseconds, exact to the picosecond.

// The nearest picosecond. A tick is 25/63 of one, so no instant lies between two, and whole
// nanoseconds are exact.
int64_t ToPicoseconds(Instant at);

// Appends so many picoseconds as microseconds: "12.5", "0.000001". REQUIRES: picoseconds >= 0.
void AppendMicroseconds(int64_t picoseconds, std::string& json);

// Text as a JSON string (RFC 8259).
// Appends `text` in double quotes, escaped. Whatever bytes come in, valid JSON in UTF-8 goes out:
// each byte that belongs to no well-formed sequence becomes U+FFFD.
void AppendJsonString(std::string_view text, std::string& json);

// One JSON object in Chrome's trace event format, event by event. A process is told by its index.
// Threads: none.
class TraceEvents {
 public:
  explicit TraceEvents(TextSink sink) : pieces_(sink) {}

  // Call last. Not called, the text is not JSON yet.
  void End();

  // The error of the sink; from then on nothing is written.
  const absl::Status& status() const { return pieces_.status(); }
  int64_t events() const { return events_; }

 protected:
  // The thread of each process that its steps are on.
  static constexpr int32_t kStepsThread = 1;

  void BeginText() { pieces_.Append("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"); }
  // Begins an event with the fields that all have. EndEvent ends it.
  void BeginEvent(const char* phase, int32_t process, int32_t thread);
  void EndEvent();
  void WriteMetadata(const char* kind, int32_t process, int32_t thread, const std::string& name,
                     int32_t sort_index);
  void WriteStep(int32_t process, int32_t step, Instant begin, Instant end);
  void AppendTimes(Instant begin, Instant end);

  TextPieces pieces_;
  std::string event_;  // at hand; a member only to keep its memory

 private:
  int64_t events_ = 0;
};

}  // namespace stepcast
