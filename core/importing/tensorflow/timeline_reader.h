// The JSON of a TensorFlow timeline, read event by event.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"
#include "core/model/profile.h"

namespace stepcast {

// Something that took time.
struct TimelineEvent {
  int64_t process = 0;
  int64_t start_ns = 0;
  int64_t length_ns = 0;
  std::string node;
  std::string op;
  std::vector<std::string> inputs;
};

struct Timeline {
  std::map<int64_t, std::string> processes;  // by number, their names
  std::vector<TimelineEvent> events;
};

// Both forms of Chrome's traces: an object with traceEvents, or the list alone. Of an event only
// what a Timeline has is kept, and only of those with a length. Failure: INVALID_ARGUMENT, reason
// IMPORT_INVALID, at `recording`, where the text is no such JSON, an event has no number for a
// time, or a limit is passed; what the source or `stop` fails with.
absl::StatusOr<Timeline> ReadTimeline(ByteSource& source, const ProfileLimits& limits,
                                      StopCheck stop);

}  // namespace stepcast
