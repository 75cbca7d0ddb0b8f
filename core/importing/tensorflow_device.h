// Names of TensorFlow's devices.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepcast {

enum class DeviceRole : uint8_t { kWorker, kServer, kOther };

// The kind of a device's rows in a recording.
enum class DeviceRows : uint8_t {
  kOperations,  // executions of nodes
  kKernels,     // on all streams of a GPU
  kCopies,      // kernels once more by stream, and copies between host and GPU
};

struct TensorflowDevice {
  DeviceRole role = DeviceRole::kWorker;
  DeviceRows rows = DeviceRows::kOperations;
  std::string job;   // empty: the name has none
  int32_t task = 0;  // -1: not a number

  bool same_machine(const TensorflowDevice& other) const {
    return job == other.job && task == other.task;
  }
};

// Of `/job:ps/replica:0/task:0/device:CPU:0`, `/job:localhost/replica:0/task:0/cpu:0`,
// `/device:GPU:0/stream:all` and the like. Jobs worker, chief, master and localhost, and devices
// without a job, are the worker's; ps is the servers'.
TensorflowDevice ParseTensorflowDevice(std::string_view name);

}  // namespace stepcast
