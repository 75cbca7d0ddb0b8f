// Texts that TensorFlow writes into recordings: the names of devices, and the labels of received
// tensors.
#pragma once

#include <cstdint>
#include <optional>
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

// The label that TensorFlow writes beside a received tensor: `[1.5MB] [812.4Mb/s]
// edge_12_conv1/weights/read from DEVICE to DEVICE`.
// Views into the label.
struct TransferLabel {
  std::string_view tensor;
  std::string_view source;
  std::string_view destination;
  std::optional<int64_t> bytes;  // empty: the label has none
  bool rounded = false;          // to a tenth of a MiB
};

// Empty if the label is of another form. Any number of bracketed parts may come first; of them only
// a size is read.
std::optional<TransferLabel> ParseTransferLabel(std::string_view label);

// The node that sends a tensor: of `edge_12_conv1/weights/read` what follows the number. A name of
// another form is returned as it is.
std::string_view SenderOf(std::string_view tensor);

}  // namespace stepcast
