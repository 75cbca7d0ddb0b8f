// The steps of a trace of PyTorch's profiler as the host recorded them: gradients, what was sent,
// what came back, and the optimizer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/importing/common/time_spans.h"
#include "core/importing/pytorch/pytorch_reader.h"

namespace stepcast {

// A parameter's gradient, when it had come.
struct Gradient {
  int64_t start_ns = 0;
  int64_t end_ns = 0;     // of the hooks, too
  int64_t elements = -1;  // -1: not recorded
  int64_t within = -1;    // the function that a backward pass within it came in; -1: none
  int32_t rows = 0;       // its first dimension; 0: not recorded
  int16_t element_bytes = 0;
};

// A collective of a buffer.
struct SentTensor {
  Collective kind = Collective::kAllReduce;
  int64_t launch_ns = 0;
  int64_t elements = -1;
  int16_t element_bytes = 0;
  int32_t group_size = 0;   // 0: not recorded
  int32_t group = -1;       // its place in the trace's; -1: not recorded
  bool is_whole = false;    // of whole numbers
  bool is_of_hook = false;  // launched while a gradient's hooks ran
  bool is_bucket = false;   // of gradients
  size_t place = 0;         // among the step's collectives, in the order of their launches
  TimeSpan run;             // empty: not recorded

  // At least 1; of one whose size was not recorded those of a scalar.
  int64_t bytes() const {
    return std::max<int64_t>(1, (elements < 0 ? 1 : elements) *
                                    (element_bytes > 0 ? element_bytes : kBytesOfUnknownElement));
  }
  static constexpr int64_t kBytesOfUnknownElement = 4;
};

// The content of a step, on the host's clock.
struct StepContent {
  int64_t number = 0;
  TimeSpan window;
  std::vector<Gradient> gradients;
  // In the order of the first step's launches, but for maps of unused parameters, which are after
  // all buckets. Without those of other groups, which stay in the computation.
  std::vector<SentTensor> sent;
  std::vector<TimeSpan> copies;  // out of the buckets
  std::optional<TimeSpan> optimizer;
  int64_t backward_ns = INT64_MAX;  // its begin
  // The begins of backward passes after the first one, where each sends gradients and the rest of
  // the step waits for them, as with two models or two losses; until then those that may be such.
  std::vector<int64_t> later_passes_ns;
  std::vector<BackwardNode> nodes;  // that have a sequence number
  int64_t waited_ns = 0;            // by the host, for the GPU
  size_t first_bucket = 0;          // of `sent`: those that may be of gradients
  size_t end_bucket = 0;
  int32_t group = -1;             // of the gradients; -1: not recorded, or there is but one
  std::vector<SentTensor> inner;  // collectives of other groups
  size_t calls = 0;               // of collectives, which were launched
  size_t runs = 0;                // of them, that were recorded

  std::vector<SentTensor> buckets() const;
  // The first copy after the last gradient. REQUIRES: there are gradients.
  std::vector<TimeSpan>::const_iterator last_copies() const;
};

// "ProfilerStep#7".
std::string StepName(int64_t number);

// Leaves out the first two steps, those of an unusual length, those whose kernels were not recorded
// to their end, and those that differ from most in their gradients or collectives, and notes it.
// Micro-steps of which only every k-th sends gradients, or updates, are one step together. Of
// all-reduces those are buckets that are of the gradients' group and not of whole numbers, and that
// gradients add up to, where that is known; all others are collectives of their own.
// `gradient_group`: the name or description of the gradients' group; empty: found. Failure:
// INVALID_ARGUMENT, reason IMPORT_INVALID, at `recording`, with what to record instead, or at
// `data_parallel_group` where the trace has no such group.
absl::StatusOr<std::vector<StepContent>> FindStepContents(const PyTorchTrace& trace,
                                                          const std::string& gradient_group,
                                                          std::vector<std::string>& notes);

}  // namespace stepcast
