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
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/importing/tensorflow/tensorflow_names.h"
#include "core/model/profile.h"
#include "core/model/profile_limits.h"

namespace stepcast {

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
