#include "core/importing/tensorflow/tensorflow_names.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/numbers.h"

#include "core/importing/common/units.h"

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

// Of `1.5MB` or `123B`.
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

}  // namespace stepcast
