#include "core/communication/parameter_placement.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>

namespace stepcast {

namespace {

struct ParameterBytes {
  int64_t down = 0;
  int64_t up = 0;
  int32_t server = 0;
};

}  // namespace

std::vector<int32_t> PlaceParameters(const Profile& profile, int32_t servers) {
  const std::vector<Operation>& operations = profile.operations();
  std::vector<int32_t> placed(operations.size(), 0);
  if (servers == profile.parameter_servers()) {
    for (size_t i = 0; i < operations.size(); ++i)
      placed[i] = operations[i].resource == Resource::kWorker ? 0 : operations[i].parameter_server;
    return placed;
  }
  std::unordered_map<std::string_view, size_t> index_of;
  std::vector<ParameterBytes> parameters;  // in graph order
  const auto find = [&](const Operation& operation) -> ParameterBytes& {
    const auto [at, is_new] = index_of.try_emplace(operation.parameter, parameters.size());
    if (is_new) parameters.emplace_back();
    return parameters[at->second];
  };
  for (const Operation& operation : operations) {
    if (operation.resource == Resource::kWorker) continue;
    ParameterBytes& bytes = find(operation);
    if (operation.resource == Resource::kDownlink) bytes.down += operation.size_bytes;
    if (operation.resource == Resource::kUplink) bytes.up += operation.size_bytes;
  }
  std::vector<int64_t> load(static_cast<size_t>(servers), 0);
  for (ParameterBytes& parameter : parameters) {
    const auto least = std::min_element(load.begin(), load.end());
    parameter.server = static_cast<int32_t>(least - load.begin());
    *least += parameter.down > 0 ? parameter.down : parameter.up;
  }
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].resource != Resource::kWorker) placed[i] = find(operations[i]).server;
  }
  return placed;
}

}  // namespace stepcast
