// Writes a profile as TensorFlow would have recorded it: serialised RunMetadata, field by field as
// TensorFlow fills it in.
//
// Each operation becomes a row of its device, each transfer a RecvTensor row of its receiver with
// its label and allocation; partition graphs hold the nodes, the variables, and a _Send and _Recv
// pair a transfer. Fields that an importer passes over (memory, threads, a cost graph) are there,
// too. A download `recv/X` and an upload `send/X` are written as the tensor `edge_N_X`. Failure:
// INVALID_ARGUMENT where TensorFlow could not have recorded the profile: something waits across
// machines without a transfer, or an operation is called as a variable.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "core/model/profile.h"

namespace stepcast::testing {

struct RunMetadataForm {
  int64_t epoch_us = 1'600'000'000'000'000;  // when the first step began, on the worker's clock
  int64_t between_steps_us = 1'000'000;      // from the start of a step to that of the next
  int64_t server_ahead_us = 0;               // what the servers' clocks show more than the worker's
  bool nanoseconds = false;  // as later versions, beside microseconds, which are cut
  bool partition_graphs = true;
  bool gpu = false;          // the worker's operations ran on a GPU, whose kernels were recorded
  bool whole_graph = false;  // tensors are named as in WriteWholeGraph
  int32_t worker = 0;        // its task
};

// One step.
absl::StatusOr<std::string> WriteRunMetadata(const Profile& profile, size_t step,
                                             const RunMetadataForm& form = {});
// All of them after each other; the graphs are in each.
absl::StatusOr<std::string> WriteRunMetadata(const Profile& profile,
                                             const RunMetadataForm& form = {});

// The graph before TensorFlow divided it: a GraphDef without _Send and _Recv, for recordings with
// `whole_graph`. In it a tensor is called as the node that sends it, so an upload `send/X` of the
// variable X is written as `edge_N_X/gradient`.
absl::StatusOr<std::string> WriteWholeGraph(const Profile& profile,
                                            const RunMetadataForm& form = {});

}  // namespace stepcast::testing
