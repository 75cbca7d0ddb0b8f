#include "core/communication/server_transfers.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <variant>

namespace stepcast {

Placement::Placement(const Profile& profile, int32_t servers, int64_t partition_bytes)
    : operations_(profile.operations()),
      backwards_(profile.has_collectives()),
      as_recorded_(servers == profile.parameter_servers()),
      partition_bytes_(partition_bytes),
      tensor_of_(operations_.size(), -1) {
  FindTensors();
  PlaceAll(servers);
}

void Placement::FindTensors() {
  std::unordered_map<std::string_view, int32_t> index_of;
  for (size_t at = 0; at < operations_.size(); ++at) {
    const size_t i = backwards_ ? operations_.size() - 1 - at : at;
    const Operation& operation = operations_[i];
    if (operation.resource == Resource::kWorker) continue;
    auto tensor = static_cast<int32_t>(tensors_.size());
    const bool is_named = !operation.parameter.empty();
    if (is_named) tensor = index_of.try_emplace(operation.parameter, tensor).first->second;
    if (Index(tensor) == tensors_.size())
      tensors_.push_back({.recorded = operation.parameter_server, .is_named = is_named});
    tensor_of_[i] = tensor;
    Tensor& found = tensors_[Index(tensor)];
    // All-reduced: down and up.
    if (operation.resource == Resource::kDownlink || operation.resource == Resource::kCollective)
      found.down += operation.size_bytes;
    if (operation.resource == Resource::kUplink) found.up += operation.size_bytes;
    found.largest = std::max(found.largest, operation.size_bytes);
  }
}

void Placement::PlaceAll(int32_t servers) {
  std::vector<int64_t> load(Index(servers), 0);
  const auto bytes_of = [](const Tensor& tensor) {
    return tensor.down > 0 ? tensor.down : tensor.up;
  };
  const auto stays = [&](const Tensor& tensor) {
    return as_recorded_ && (CountOf(tensor.largest) == 1 || !tensor.is_named);
  };
  for (const Tensor& tensor : tensors_) {
    if (stays(tensor)) load[Index(tensor.recorded)] += bytes_of(tensor);
  }
  for (Tensor& tensor : tensors_) {
    const int32_t parts = CountOf(tensor.largest);
    if (stays(tensor)) {
      tensor.servers.assign(Index(parts), tensor.recorded);
      continue;
    }
    for (int32_t part = 0; part < parts; ++part) {
      const auto least = std::min_element(load.begin(), load.end());
      tensor.servers.push_back(static_cast<int32_t>(least - load.begin()));
      *least += parts == 1 ? bytes_of(tensor)
                           : BeginOf(part + 1, tensor.largest) - BeginOf(part, tensor.largest);
    }
  }
}

int32_t Placement::PartsOf(int32_t operation) const {
  const int32_t tensor = tensor_of_[Index(operation)];
  if (tensor < 0) return 1;
  const Operation& of = operations_[Index(operation)];
  return CountOf(of.resource == Resource::kParameterServer ? tensors_[Index(tensor)].largest
                                                           : of.size_bytes);
}

int32_t Placement::ServerOf(int32_t operation, int32_t part) const {
  const int32_t tensor = tensor_of_[Index(operation)];
  if (tensor < 0) return 0;
  const std::vector<int32_t>& servers = tensors_[Index(tensor)].servers;
  if (as_recorded_ && servers.size() == 1) return operations_[Index(operation)].parameter_server;
  return servers[Index(part)];
}

StreamServices StreamServices::Windowed(int64_t size_bytes, int64_t window_bytes,
                                        int64_t quantum_bytes) {
  if (size_bytes <= window_bytes) return Whole(size_bytes);
  const int64_t left = size_bytes - window_bytes;
  const int64_t middle = quantum_bytes > 0 ? std::min(quantum_bytes, left) : left;
  const int64_t middles = (left - 1) / middle;
  return {.first = window_bytes,
          .middle = middle,
          .last = left - middles * middle,
          .count = static_cast<int32_t>(middles) + 2};
}

StreamServices StreamServices::Of(int64_t size_bytes, const Multiplexing& multiplexing) {
  if (const auto* window = std::get_if<Window>(&multiplexing))
    return Windowed(size_bytes, window->bytes, window->quantum_bytes);
  if (const auto* robin = std::get_if<RoundRobin>(&multiplexing))
    return Windowed(size_bytes, robin->window_bytes, robin->quantum_bytes);
  return Whole(size_bytes);
}

std::optional<StreamServices> StreamServices::Of(int64_t size_bytes, const Scenario& scenario) {
  if (!scenario.has_servers()) return std::nullopt;
  return Of(size_bytes, scenario.servers().multiplexing);
}

TransferWork StreamServices::WorkOn(const Bandwidth& link) const {
  if (count == 1) return {.first = link.TimeFor(first), .middle = {}, .last = {}};
  return {.first = link.TimeFor(first),
          .middle = link.TimeFor(middle),
          .last = link.TimeFor(last),
          .services = count};
}

}  // namespace stepcast
