// The step that a timeline shows: what ran on the machine, and what each of that waited for.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

#include "core/importing/recorded_rows.h"
#include "core/importing/recording_options.h"
#include "core/importing/tensorflow_graph.h"
#include "core/importing/timeline_reader.h"
#include "core/model/profile_limits.h"

namespace stepcast {

struct TimelineStep {
  explicit TimelineStep(const ProfileLimits& limits)
      : rows(limits), graph(false, kAtRecording, limits) {}

  RecordedRows rows;        // of one step
  TensorflowGraph graph;    // of the nodes that ran
  int64_t copies = 0;       // events left out: kernels by stream, and copies between host and GPU
  int64_t bookkeeping = 0;  // events left out: of the executor itself
  int64_t outside = 0;      // inputs that nothing shown makes: fed, or folded
};

// Fails where an event is of a parameter server, or received from one: a timeline does not say
// which tensor that was.
absl::Status FillStep(const Timeline& timeline, TimelineStep& step);

}  // namespace stepcast
