// A reader of serialised RunMetadata, one or several after each other, row by row.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

#include "core/importing/common/wire_reader.h"
#include "core/importing/tensorflow/recorded_rows.h"
#include "core/importing/tensorflow/tensorflow_graph.h"

namespace stepcast {

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

}  // namespace stepcast
