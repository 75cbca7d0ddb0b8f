// The readers of what TensorFlow records: serialised RunMetadata, row by row, and the JSON of a
// timeline, event by event.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/common/wire_reader.h"
#include "core/importing/tensorflow/recorded_rows.h"
#include "core/importing/tensorflow/tensorflow_graph.h"
#include "core/model/profile.h"

namespace stepcast {

// A reader of serialised RunMetadata, one or several after each other, row by row.

// Counts of the rows that were passed over, over all steps.
struct PassedOver {
  int64_t copy_rows = 0;  // of kernels by stream, and of copies between host and GPU
  int64_t transfer_nodes =
      0;  // executions of _Send and _Recv, whose transfers have rows of their own
  int64_t other_job_rows = 0;   // of jobs that are neither worker nor server
  int64_t other_transfers = 0;  // within a machine, between servers or between workers
  int64_t empty_steps = 0;
};

// Puts every step into `rows` and every node of the partition graphs into `graph`. Failure: as
// WireReader, RecordedRows and TensorflowGraph; where a device's rows come before its name, or a
// received tensor's label cannot be read.
absl::Status ReadRunMetadata(WireReader& reader, RecordedRows& rows, TensorflowGraph& graph,
                             PassedOver& passed_over);

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
