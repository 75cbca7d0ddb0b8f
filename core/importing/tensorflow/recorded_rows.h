// The rows of a recording, by step, and the names that stand in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/model/profile.h"

namespace stepcast {

// Texts that TensorFlow writes into recordings: the names of devices, and the labels of received
// tensors.

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

// The device of `/job:ps/replica:0/task:0/device:CPU:0`, `/job:localhost/replica:0/task:0/cpu:0`,
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

// The rows of a recording, by step: the time at which each node ran on each device, and each tensor
// was received.
//
// Rows may come in any order, and more than once.
// A row that is there twice, with the same times, counts once.
// A node that ran several times in a step (a loop) lasts as long as all its runs together, from the
// first one's start.
// A node whose kernels a GPU recorded lasts as long as those, from the first one's start: its own
// row is only about launching them.
// Memory: two times a node and step, as in a profile, and the rows of the step that is being read.
// Threads: none.
struct RecordedDevice {
  std::string name;
  TensorflowDevice device;
};

// A node on a device, or a tensor received there.
struct RecordedNode {
  std::string name;         // of a tensor the key that both sides know it by
  int32_t device = 0;       // of a tensor the receiver
  int32_t source = -1;      // of a tensor the sender's device; -1: not a tensor
  int64_t size_bytes = -1;  // of a tensor: the most in any step; -1: the recording does not say

  bool is_transfer() const { return source >= 0; }
};

class RecordedRows {
 public:
  // In the place of a time: the node did not run in this step.
  static constexpr int64_t kMissing = std::numeric_limits<int64_t>::min();

  // Counts of the repairs, over all steps.
  struct Repairs {
    int64_t duplicates = 0;     // rows left out because they were there twice
    int64_t repeated = 0;       // runs added to others of the same node
    int64_t negative = 0;       // rows that ended before they started, and now last no time
    int64_t kernels = 0;        // rows of kernels counted for their nodes
    int64_t loose_kernels = 0;  // those of no node that ran
    bool differing_sizes = false;
    bool rounded_sizes = false;
  };

  explicit RecordedRows(const ProfileLimits& limits) : limits_(limits) {}

  absl::StatusOr<int32_t> Device(std::string_view name);
  // The node's index; a new one if need be. `source` as in RecordedNode. Fails at a limit.
  absl::StatusOr<int32_t> Node(std::string_view name, int32_t device, int32_t source = -1);

  // REQUIRES: between BeginStep and EndStep. Times are on the device's clock. Fails where they are
  // no times, or at a limit.
  absl::Status AddRow(int32_t node, int64_t start_ns, int64_t end_ns);
  void SetSize(int32_t node, int64_t bytes, bool rounded);
  absl::Status BeginStep();
  absl::Status EndStep();

  const std::vector<RecordedDevice>& devices() const { return devices_; }
  const std::vector<RecordedNode>& nodes() const { return nodes_; }
  const TensorflowDevice& device_of(const RecordedNode& node) const {
    return devices_[static_cast<size_t>(node.device)].device;
  }
  const Repairs& repairs() const { return repairs_; }
  // A step may be shorter than the nodes: what is not there is missing. Whoever has read them may
  // take them apart.
  std::vector<RecordedStep>& steps() { return steps_; }
  const std::vector<RecordedStep>& steps() const { return steps_; }

 private:
  struct Row {
    int32_t node = 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;

    friend auto operator<=>(const Row&, const Row&) = default;  // NOLINT(modernize-use-nullptr)
  };

  absl::Status CheckName(std::string_view name) const;
  int32_t OwnerOf(const RecordedNode& kernel) const;
  void Merge(size_t begin, size_t end, bool kernels, RecordedStep& step);

  const ProfileLimits& limits_;
  std::vector<RecordedDevice> devices_;
  std::vector<RecordedNode> nodes_;
  absl::flat_hash_map<std::string, int32_t> device_index_;
  absl::flat_hash_map<std::string, std::vector<int32_t>> by_name_;
  std::vector<Row> rows_;  // of the step that is being read
  std::vector<RecordedStep> steps_;
  int64_t times_ = 0;
  Repairs repairs_;
};

// The choice of recorded nodes and steps for a profile, in which every step runs every operation
// once.
struct StepChoice {
  std::vector<bool> nodes;            // parallel to the recorded ones
  std::vector<size_t> steps;          // indices, in their order
  std::vector<int32_t> rare_nodes;    // left out: at most half of the steps run them
  std::vector<size_t> partial_steps;  // left out: they lack a node that is kept
  std::string lacking;                // one such node of the first of those
};

// Leaves out each candidate that at most half of the steps ran, then each step that lacks one of
// the others. Cost: linear in the recorded times.
StepChoice ChooseSteps(const RecordedRows& rows, const std::vector<bool>& candidates);

}  // namespace stepcast
