// Events of a trace that ui.perfetto.dev shows, and the texts that they are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "core/base/time.h"
#include "core/trace/text_pieces.h"

namespace stepcast {

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
