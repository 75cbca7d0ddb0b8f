// The steps of a trace of PyTorch's profiler: when in each the gradients were ready, what was sent,
// and what the worker computed between.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/importing/common/time_spans.h"
#include "core/importing/pytorch/pytorch_reader.h"

namespace stepcast {

// A collective that all workers run together, once a step.
struct TracedCollective {
  std::string name;
  Collective kind = Collective::kAllReduce;
  int64_t size_bytes = 0;
  bool is_gradient = false;  // or several

  friend bool operator==(const TracedCollective&, const TracedCollective&) = default;
};

// A part of the worker's computation: from where the one before it ended.
struct TracedPiece {
  std::string name;
  std::vector<int32_t> needs;     // collectives that must have ended before it begins
  std::vector<int32_t> launches;  // collectives that are ready when it has ended
  Pass pass = Pass::kOther;
  int32_t link = -1;  // of the forward pass: that it is, or undoes; -1: not known, or several
  // The collective of devices inside the worker, which stands in the computation.
  Collective collective = Collective::kUnspecified;
  int64_t size_bytes = 0;
  std::string group;  // empty: it is a computation

  friend bool operator==(const TracedPiece&, const TracedPiece&) = default;
};

// One step, in time.
struct TracedStep {
  int64_t number = 0;            // of its ProfilerStep
  std::vector<int64_t> ends_ns;  // of the pieces, from the step's begin; never decreasing
  int64_t span_ns = 0;           // from the step's begin to where its first computation begins
  int64_t exposed_ns = 0;        // left out: the worker waited for a collective
  int64_t busy_ns = 0;           // the GPU computed; without a GPU 0
  int64_t host_ns = 0;           // the host's own work; recordings of a GPU only
  int64_t first_data_ns = 0;     // of the first piece, waiting for data; data_loading.cc
  int64_t last_data_ns = 0;      // of the last piece, likewise
};

// All steps have the same pieces and collectives.
struct TracedSteps {
  std::vector<TracedCollective> collectives;  // in the order in which they are launched
  std::vector<TracedPiece> pieces;            // in the order in which they run
  std::vector<TracedStep> steps;
  std::vector<int64_t> gradient_bytes;   // in the order of readiness; empty: not recorded
  std::vector<size_t> bucket_gradients;  // by recorded bucket, its gradients; empty: none
  std::vector<int64_t> bucket_bytes;     // recorded all-reduces of gradients, in order
  double sent_share = 1;  // what a hook sends of a byte of gradients; all sizes are of what is sent
  std::vector<int64_t> shortest_collective_ns;  // on the wire, parallel to `collectives`; 0: none
  bool has_gpu = false;
  // Tensors that the forward pass keeps, in the step that keeps the most; 0 bytes: not known. It
  // has the links of the pieces, or none.
  SavedTensors saved;
  int64_t group_size = 0;  // workers that were recorded together; 0: not known
  int64_t devices_per_worker = 1;
  std::vector<std::string> notes;
};

struct TracedForm {
  bool cuts_forward = true;    // where one tensor alone goes on
  std::string gradient_group;  // its name or description; empty: found
};

// Leaves out the first two steps and those that are shorter than half the median. Of several
// workers, what the computation waited for collectives is taken out of its times. Failure:
// INVALID_ARGUMENT, reason IMPORT_INVALID, at `recording`, with what to record instead.
absl::StatusOr<TracedSteps> FindTracedSteps(const PyTorchTrace& trace, const TracedForm& form);

// The time for which a worker of a traced step waits for its next batch, as PyTorch's DataLoader
// marks it (data_loading.cc).

// The times in which the host is in a DataLoader's __next__ (UnionOf).
std::vector<TimeSpan> DataLoadingOf(const PyTorchTrace& trace);

// Nanoseconds of them between two instants.
int64_t DataLoadingBetween(const std::vector<TimeSpan>& loading, int64_t begin_ns, int64_t end_ns);

// Puts what was found of each step (first_data_ns and last_data_ns) before its first piece, as a
// piece of the pass kDataLoading, and takes it out of the first and the last one. With a note.
void SplitOffDataLoading(TracedSteps& steps);

}  // namespace stepcast
