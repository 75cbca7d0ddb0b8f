// The operations of a profile, and their times in each step, from recorded nodes.
//
// Downloads are called `recv/` and uploads `send/`, followed by the node that sent the tensor;
// computations are called as their nodes. Where two would be called the same both get the tensor's
// full name, or their devices, too. The operations stand in the order in which they started in the
// first step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "core/importing/tensorflow/graph_dependencies.h"
#include "core/importing/tensorflow/recorded_rows.h"
#include "core/importing/tensorflow/step_clock.h"
#include "core/importing/tensorflow/tensorflow_graph.h"
#include "core/model/profile.h"

namespace stepcast {

// Names each operation by the node it was recorded as, so that no two are called the same: see
// above. The names do not depend on the order of the nodes.
void NameOperations(const RecordedRows& rows, const std::vector<int32_t>& recorded,
                    std::vector<Operation>& operations);

struct RecordedOperations {
  std::vector<Operation> operations;
  std::vector<RecordedStep> steps;
  std::vector<RepairedStep> clocks_of_steps;  // parallel to the steps
  std::string worker_job;                     // of the worker's device; empty: it has none
  int32_t worker_task = 0;                    // likewise
  int32_t parameter_servers = 0;
  int64_t empty_transfers = 0;    // of no bytes, counted as one
  int64_t without_parameter = 0;  // transfers of which no variable is known
  ClockRepairs clocks;
};

// Takes the chosen nodes and steps, whose recorded times it gives back as it goes, so that they are
// not there twice. Fails where the operations are of several workers or of too many servers, or a
// tensor has no size.
absl::StatusOr<RecordedOperations> MakeOperations(RecordedRows& rows, const TensorflowGraph& graph,
                                                  const StepChoice& choice,
                                                  const Platform& platform,
                                                  const ProfileLimits& limits, KeptReadings kept);

}  // namespace stepcast
