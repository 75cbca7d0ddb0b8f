#include "core/importing/tensorflow/recorded_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/importing/common/recording_import.h"

namespace stepcast {

namespace {

// The text that follows `/key:` up to the next slash; empty if it is not there.
std::string_view Part(std::string_view name, std::string_view key) {
  const size_t at = name.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = name.substr(at + key.size());
  return rest.substr(0, rest.find('/'));
}

DeviceRole RoleOf(std::string_view job) {
  constexpr std::array<std::string_view, 5> kWorkers{"", "worker", "chief", "master", "localhost"};
  if (job == "ps") return DeviceRole::kServer;
  return std::find(kWorkers.begin(), kWorkers.end(), job) != kWorkers.end() ? DeviceRole::kWorker
                                                                            : DeviceRole::kOther;
}

DeviceRows RowsOf(std::string_view name) {
  const std::string_view stream = Part(name, "/stream:");
  if (stream == "all") return DeviceRows::kKernels;
  return stream.empty() && name.find("/memcpy") == std::string_view::npos ? DeviceRows::kOperations
                                                                          : DeviceRows::kCopies;
}

}  // namespace

TensorflowDevice ParseTensorflowDevice(std::string_view name) {
  TensorflowDevice device{.rows = RowsOf(name), .job = std::string(Part(name, "/job:"))};
  device.role = RoleOf(device.job);
  const std::string_view task = Part(name, "/task:");
  if (!task.empty() &&
      (!absl::SimpleAtoi(absl::string_view(task.data(), task.size()), &device.task) ||
       device.task < 0))
    device.task = -1;
  return device;
}

namespace {

constexpr double kMaxMebibytes = 1 << 30;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool TakeSuffix(std::string_view& text, std::string_view suffix) {
  if (text.size() < suffix.size() || text.substr(text.size() - suffix.size()) != suffix)
    return false;
  text.remove_suffix(suffix.size());
  return true;
}

// The size in a text such as `1.5MB` or `123B`.
void ReadSize(std::string_view text, TransferLabel& label) {
  if (label.bytes.has_value()) return;
  const bool mebibytes = TakeSuffix(text, "MB");
  if (!mebibytes && !TakeSuffix(text, "B")) return;
  double value = 0;
  const bool read = absl::SimpleAtod(absl::string_view(text.data(), text.size()), &value);
  if (!read || !std::isfinite(value) || value < 0 || value > kMaxMebibytes) return;
  label.bytes = std::llround(mebibytes ? value * kMebibyte : value);
  label.rounded = mebibytes;
}

}  // namespace

std::optional<TransferLabel> ParseTransferLabel(std::string_view label) {
  constexpr std::string_view kFrom = " from ";
  constexpr std::string_view kTo = " to ";
  TransferLabel parsed;
  std::string_view rest = Trimmed(label);
  while (!rest.empty() && rest.front() == '[') {
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    ReadSize(Trimmed(rest.substr(1, close - 1)), parsed);
    rest = Trimmed(rest.substr(close + 1));
  }
  const size_t to = rest.rfind(kTo);
  if (to == std::string_view::npos) return std::nullopt;
  const size_t from = rest.substr(0, to).rfind(kFrom);
  if (from == std::string_view::npos) return std::nullopt;
  parsed.tensor = Trimmed(rest.substr(0, from));
  parsed.source = Trimmed(rest.substr(from + kFrom.size(), to - from - kFrom.size()));
  parsed.destination = Trimmed(rest.substr(to + kTo.size()));
  if (parsed.tensor.empty() || parsed.source.empty() || parsed.destination.empty())
    return std::nullopt;
  return parsed;
}

std::string_view SenderOf(std::string_view tensor) {
  constexpr std::string_view kPrefix = "edge_";
  if (tensor.substr(0, kPrefix.size()) != kPrefix) return tensor;
  const size_t end = tensor.find_first_not_of("0123456789", kPrefix.size());
  const bool numbered = end != std::string_view::npos && end > kPrefix.size() &&
                        tensor[end] == '_' && end + 1 < tensor.size();
  return numbered ? tensor.substr(end + 1) : tensor;
}

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
