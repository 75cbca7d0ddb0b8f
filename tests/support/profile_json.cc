#include "tests/support/profile_json.h"

#include <array>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace stepcast::testing {

namespace {

using Json = nlohmann::json;

const Json* Find(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

int64_t Integer(const Json& value) {
  return value.is_string() ? std::stoll(value.get<std::string>()) : value.get<int64_t>();
}

template <typename T>
void Read(const Json& object, const char* key, T& to) {
  if (const Json* value = Find(object, key)) to = value->get<T>();
}

template <typename T>
void ReadInteger(const Json& object, const char* key, T& to) {
  if (const Json* value = Find(object, key)) to = static_cast<T>(Integer(*value));
}

template <typename T>
void ReadIntegers(const Json& object, const char* key, std::vector<T>& to) {
  const Json* values = Find(object, key);
  if (values == nullptr) return;
  to.clear();
  for (const Json& value : *values) to.push_back(static_cast<T>(Integer(value)));
}

Resource ResourceFromName(const std::string& name) {
  constexpr std::array kResources{Resource::kDownlink, Resource::kWorker, Resource::kUplink,
                                  Resource::kParameterServer, Resource::kCollective};
  for (const Resource resource : kResources) {
    if (name == ResourceName(resource)) return resource;
  }
  return Resource::kUnspecified;
}

Collective CollectiveFromName(const std::string& name) {
  constexpr std::array kNames{"ALL_REDUCE", "REDUCE_SCATTER", "ALL_GATHER", "BROADCAST"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Collective>(i + 1);
  }
  return Collective::kUnspecified;
}

Pass PassFromName(const std::string& name) {
  for (int i = 1; i <= static_cast<int>(Pass::kOther); ++i) {
    if (name == PassName(static_cast<Pass>(i))) return static_cast<Pass>(i);
  }
  return Pass::kUnspecified;
}

Operation OperationFromJson(const Json& json) {
  Operation operation;
  Read(json, "name", operation.name);
  if (const Json* resource = Find(json, "resource"))
    operation.resource = ResourceFromName(resource->get<std::string>());
  ReadInteger(json, "parameter_server", operation.parameter_server);
  ReadInteger(json, "size_bytes", operation.size_bytes);
  ReadIntegers(json, "waiting_for", operation.waiting_for);
  Read(json, "parameter", operation.parameter);
  if (const Json* collective = Find(json, "collective"))
    operation.collective = CollectiveFromName(collective->get<std::string>());
  ReadInteger(json, "stream", operation.stream);
  ReadInteger(json, "kept_bytes", operation.kept_bytes);
  if (const Json* pass = Find(json, "pass"))
    operation.pass = PassFromName(pass->get<std::string>());
  ReadInteger(json, "output_bytes", operation.output_bytes);
  Read(json, "group", operation.group);
  return operation;
}

Platform PlatformFromJson(const Json& json) {
  Platform platform;
  Read(json, "bandwidth_bytes_per_second", platform.bandwidth_bytes_per_second);
  ReadInteger(json, "window_bytes", platform.window_bytes);
  if (const Json* overhead = Find(json, "parsing_overhead")) {
    Read(*overhead, "seconds_per_byte", platform.parsing_overhead.seconds_per_byte);
    Read(*overhead, "seconds", platform.parsing_overhead.seconds);
  }
  return platform;
}

}  // namespace

nlohmann::json ReadJsonFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) throw std::runtime_error("not JSON: " + path);
  return json;
}

ProfileDraft ProfileFromJson(const nlohmann::json& json) {
  ProfileDraft draft;
  Read(json, "display_name", draft.display_name);
  Read(json, "model", draft.model);
  Read(json, "framework", draft.framework);
  Read(json, "labels", draft.labels);
  ReadInteger(json, "batch_size", draft.batch_size);
  if (const Json* platform = Find(json, "platform")) draft.platform = PlatformFromJson(*platform);
  ReadInteger(json, "parameter_servers", draft.parameter_servers);
  ReadInteger(json, "devices_per_worker", draft.devices_per_worker);
  if (const Json* operations = Find(json, "operations")) {
    for (const Json& operation : *operations)
      draft.operations.push_back(OperationFromJson(operation));
  }
  if (const Json* steps = Find(json, "steps")) {
    for (const Json& step : *steps) {
      RecordedStep& recorded = draft.steps.emplace_back();
      ReadIntegers(step, "start_ns", recorded.start_ns);
      ReadIntegers(step, "end_ns", recorded.end_ns);
    }
  }
  return draft;
}

}  // namespace stepcast::testing
