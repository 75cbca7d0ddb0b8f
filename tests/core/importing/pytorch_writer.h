// Traces as PyTorch's profiler writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepcast::testing {

struct PyTorchForm {
  bool gpu = false;
  bool ddp = true;             // with DistributedDataParallel: buckets, and copies out of them
  bool names_of_2021 = false;  // the categories and fields of then
  bool shapes = true;          // record_shapes
  bool relative = false;       // times from baseTimeNanoseconds, with fractions, as since 2024
  int workers = 1;             // of which this is rank 0
  int steps = 5;
  int layers = 3;               // of the forward pass
  int64_t loading_us = 0;       // by the host, before each step
  int64_t data_us = 0;          // likewise, in a DataLoader
  int64_t late_data_us = 0;     // likewise, at each step's end
  int64_t collective_us = 400;  // how long a bucket's all-reduce takes, of several workers
  int64_t bucket_cap_bytes = 26'214'400;
  std::vector<int64_t> elements = {1000, 512'000, 64, 64, 36'864, 147'456, 256};  // of gradients
  uint64_t seed = 0;  // of the steps' lengths
};

struct PyTorchRecording {
  std::string text;
  // The length of each step: on the host by its ProfilerStep, on a GPU from where the computation
  // of the step before ended.
  std::vector<int64_t> step_ns;
};

// One step trains once: forward, and for each gradient, in their order, 40 to 60 us of backward.
// The GPU starts each kernel once it was launched and the one before it has ended. Every key of an
// event is where the profiler puts it; what an import does not look at is there in part.
PyTorchRecording WritePyTorchTrace(const PyTorchForm& form);

// A form that is a function of its seed.
PyTorchForm RandomPyTorchForm(uint64_t seed);

}  // namespace stepcast::testing
