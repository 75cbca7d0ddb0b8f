#include "core/importing/tensorflow_device.h"

#include <algorithm>
#include <array>

#include "absl/strings/numbers.h"

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

}  // namespace stepcast
