#include "tests/testbed/node/job.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace stepcast::testbed {

namespace {

const std::map<std::string, Resource> kResources = {
    {"DOWNLINK", Resource::kDownlink},
    {"WORKER", Resource::kWorker},
    {"UPLINK", Resource::kUplink},
    {"PARAMETER_SERVER", Resource::kParameterServer}};

}  // namespace

Job ReadJob(const std::string& path) {
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file);
  Job job;
  for (const nlohmann::json& from : json.at("operations")) {
    JobOperation& operation = job.operations.emplace_back();
    operation.name = from.at("name");
    operation.resource = kResources.at(from.at("resource"));
    operation.parameter_server = from.at("parameter_server");
    operation.size_bytes = from.at("size_bytes");
    operation.duration_ns = from.at("duration_ns");
    operation.waiting_for = from.at("waiting_for").get<std::vector<int32_t>>();
  }
  for (size_t i = 0; i < job.operations.size(); ++i) {
    for (const int32_t before : job.operations[i].waiting_for)
      job.operations.at(static_cast<size_t>(before)).followers.push_back(static_cast<int32_t>(i));
  }
  job.download_order = json.at("download_order").get<std::vector<int32_t>>();
  return job;
}

}  // namespace stepcast::testbed
