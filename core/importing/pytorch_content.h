// The steps of a trace of PyTorch's profiler as the host recorded them: gradients, what was sent,
// what came back, and the optimizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/importing/pytorch_reader.h"
#include "core/importing/time_spans.h"

namespace stepcast {

// A parameter's gradient, when it had come.
struct Gradient {
  int64_t start_ns = 0;
  int64_t end_ns = 0;     // of the hooks, too
  int64_t elements = -1;  // -1: not recorded
  int16_t element_bytes = 0;
};

// A collective of a buffer.
struct SentTensor {
  Collective kind = Collective::kAllReduce;
  int64_t launch_ns = 0;
  int64_t elements = -1;
  int16_t element_bytes = 0;
  int32_t group_size = 0;  // 0: not recorded
  TimeSpan run;            // empty: not recorded
};

// The content of a step, on the host's clock.
struct StepContent {
  int64_t number = 0;
  TimeSpan window;
  std::vector<Gradient> gradients;
  std::vector<SentTensor> sent;  // by launch
  std::vector<TimeSpan> copies;  // out of the buckets
  std::optional<TimeSpan> optimizer;
  int64_t backward_ns = INT64_MAX;  // its begin
  std::vector<int64_t> nodes;       // sequence numbers of what it undid
  int64_t waited_ns = 0;            // by the host, for the GPU
  size_t first_bucket = 0;          // of `sent`: the all-reduces of gradients
  size_t end_bucket = 0;
};

// "ProfilerStep#7".
std::string StepName(int64_t number);

// Leaves out the first two steps and those that are shorter than half the median, and notes it. All
// others have the same gradients and as many collectives. Failure: INVALID_ARGUMENT, reason
// IMPORT_INVALID, at `recording`, with what to record instead.
absl::StatusOr<std::vector<StepContent>> FindStepContents(const PyTorchTrace& trace,
                                                          std::vector<std::string>& notes);

}  // namespace stepcast
