#include "core/importing/tensorflow/recorded_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "core/base/message_text.h"
#include "core/importing/common/recording_options.h"
#include "core/importing/common/units.h"
#include "core/model/fault_list.h"

namespace stepcast {

namespace {

constexpr int64_t kMaxRowsPerOperation = 4;
constexpr size_t kMaxDevices = 4096;
// The year 2096, and a time no clock shows.
constexpr int64_t kLatestNs = 4'000'000'000'000'000'000;

}  // namespace

absl::Status RecordedRows::CheckName(std::string_view name) const {
  if (name.size() <= limits_.max_name_bytes) return absl::OkStatus();
  return ImportFault(kAtRecording,
                     TooLong(std::string(name), "max_name_bytes", limits_.max_name_bytes));
}

absl::StatusOr<int32_t> RecordedRows::Device(std::string_view name) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  if (devices_.size() > kMaxDevices)
    return ImportFault(kAtRecording, absl::StrCat("more than ", kMaxDevices, " devices"));
  const auto [found, is_new] =
      device_index_.try_emplace(AbslView(name), static_cast<int32_t>(devices_.size()));
  if (is_new)
    devices_.push_back({.name = std::string(name), .device = ParseTensorflowDevice(name)});
  return found->second;
}

absl::StatusOr<int32_t> RecordedRows::Node(std::string_view name, int32_t device, int32_t source) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  std::vector<int32_t>& same_name = by_name_.try_emplace(AbslView(name)).first->second;
  for (const int32_t index : same_name) {
    const RecordedNode& node = nodes_[static_cast<size_t>(index)];
    if (node.device == device && node.source == source) return index;
  }
  if (const auto count = static_cast<int64_t>(nodes_.size()) + 1; count > limits_.max_operations) {
    return ImportFault(kAtRecording,
                       absl::StrCat("nodes and tensors: ",
                                    OverLimit(count, "max_operations", limits_.max_operations)));
  }
  const auto index = static_cast<int32_t>(nodes_.size());
  same_name.push_back(index);
  nodes_.push_back({.name = std::string(name), .device = device, .source = source});
  return index;
}

absl::Status RecordedRows::BeginStep() {
  rows_.clear();
  if (const auto count = static_cast<int64_t>(steps_.size()) + 1; count > limits_.max_steps) {
    return ImportFault(kAtRecording,
                       absl::StrCat("steps: ", OverLimit(count, "max_steps", limits_.max_steps)));
  }
  return absl::OkStatus();
}

absl::Status RecordedRows::AddRow(int32_t node, int64_t start_ns, int64_t end_ns) {
  if (start_ns < 0 || start_ns > kLatestNs || end_ns > kLatestNs ||
      end_ns - start_ns > limits_.max_step_ns || start_ns - end_ns > limits_.max_step_ns) {
    return ImportFault(kAtRecording,
                       absl::StrCat("step ", steps_.size() + 1, ": ",
                                    Quoted(nodes_[static_cast<size_t>(node)].name), " runs from ",
                                    ClockText(start_ns), " to ", ClockText(end_ns),
                                    ", which is not the time of a step"));
  }
  if (end_ns < start_ns) {
    ++repairs_.negative;
    end_ns = start_ns;
  }
  rows_.push_back({.node = node, .start_ns = start_ns, .end_ns = end_ns});
  if (const auto count = static_cast<int64_t>(rows_.size());
      count > kMaxRowsPerOperation * limits_.max_operations) {
    return ImportFault(kAtRecording,
                       absl::StrCat("step ", steps_.size() + 1, ": ", count,
                                    " rows are above four times the limit max_operations = ",
                                    limits_.max_operations));
  }
  return absl::OkStatus();
}

void RecordedRows::SetSize(int32_t node, int64_t bytes, bool rounded) {
  int64_t& size = nodes_[static_cast<size_t>(node)].size_bytes;
  if (size >= 0 && size != bytes) repairs_.differing_sizes = true;
  if (rounded) repairs_.rounded_sizes = true;
  size = std::max(size, bytes);
}

// The node that launched a kernel; -1: none.
int32_t RecordedRows::OwnerOf(const RecordedNode& kernel) const {
  const TensorflowDevice& gpu = device_of(kernel);
  int32_t owner = -1;
  for (const int32_t index : by_name_.at(kernel.name)) {
    const RecordedNode& node = nodes_[static_cast<size_t>(index)];
    const TensorflowDevice& device = device_of(node);
    if (node.is_transfer() || device.rows != DeviceRows::kOperations) continue;
    // A name without a job is of whichever machine recorded it: the worker.
    if (gpu.job.empty() ? device.role == DeviceRole::kWorker : device.same_machine(gpu))
      owner = index;
  }
  return owner;
}

// Puts the runs rows_[begin, end) of one node into the step.
void RecordedRows::Merge(size_t begin, size_t end, bool kernels, RecordedStep& step) {
  const int32_t recorded = rows_[begin].node;
  const int32_t node = kernels ? OwnerOf(nodes_[static_cast<size_t>(recorded)]) : recorded;
  const auto runs = static_cast<int64_t>(end - begin);
  if (kernels) (node < 0 ? repairs_.loose_kernels : repairs_.kernels) += runs;
  if (node < 0) return;
  const auto at = static_cast<size_t>(node);
  if (kernels && step.start_ns[at] == kMissing) {
    repairs_.kernels -= runs;
    repairs_.loose_kernels += runs;
    return;
  }
  if (!kernels) repairs_.repeated += runs - 1;
  int64_t length = 0;
  int64_t last = rows_[begin].end_ns;
  for (size_t row = begin; row < end; ++row) {
    length += rows_[row].end_ns - rows_[row].start_ns;
    last = std::max(last, rows_[row].end_ns);
  }
  step.start_ns[at] = rows_[begin].start_ns;
  // Runs that overlap, on several streams for instance, are not longer than from the first to the
  // last.
  step.end_ns[at] = std::min(rows_[begin].start_ns + length, last);
}

absl::Status RecordedRows::EndStep() {
  std::sort(rows_.begin(), rows_.end());
  const auto unique = std::unique(rows_.begin(), rows_.end());
  repairs_.duplicates += rows_.end() - unique;
  rows_.erase(unique, rows_.end());
  times_ += static_cast<int64_t>(nodes_.size());
  if (times_ > limits_.max_recorded_times) {
    return ImportFault(kAtRecording,
                       absl::StrCat("nodes of all steps: ", OverLimit(times_, "max_recorded_times",
                                                                      limits_.max_recorded_times)));
  }
  RecordedStep step{.start_ns = std::vector<int64_t>(nodes_.size(), kMissing),
                    .end_ns = std::vector<int64_t>(nodes_.size(), kMissing)};
  // Kernels last: they replace the times of the nodes that launched them.
  for (const bool kernels : {false, true}) {
    for (size_t begin = 0, end = 0; begin < rows_.size(); begin = end) {
      while (end < rows_.size() && rows_[end].node == rows_[begin].node) ++end;
      const DeviceRows kind = device_of(nodes_[static_cast<size_t>(rows_[begin].node)]).rows;
      if ((kind == DeviceRows::kKernels) == kernels && kind != DeviceRows::kCopies)
        Merge(begin, end, kernels, step);
    }
  }
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

namespace {

bool Ran(const RecordedStep& step, size_t node) {
  return node < step.start_ns.size() && step.start_ns[node] != RecordedRows::kMissing;
}

}  // namespace

StepChoice ChooseSteps(const RecordedRows& rows, const std::vector<bool>& candidates) {
  StepChoice choice{.nodes = candidates};
  std::vector<size_t> runs(candidates.size(), 0);
  for (const RecordedStep& step : rows.steps()) {
    for (size_t node = 0; node < candidates.size(); ++node) runs[node] += Ran(step, node) ? 1 : 0;
  }
  for (size_t node = 0; node < candidates.size(); ++node) {
    if (!candidates[node] || 2 * runs[node] > rows.steps().size()) continue;
    choice.nodes[node] = false;
    choice.rare_nodes.push_back(static_cast<int32_t>(node));
  }
  for (size_t index = 0; index < rows.steps().size(); ++index) {
    size_t node = 0;
    while (node < candidates.size() && (!choice.nodes[node] || Ran(rows.steps()[index], node)))
      ++node;
    if (node == candidates.size()) {
      choice.steps.push_back(index);
      continue;
    }
    if (choice.partial_steps.empty()) choice.lacking = rows.nodes()[node].name;
    choice.partial_steps.push_back(index);
  }
  return choice;
}

}  // namespace stepcast
