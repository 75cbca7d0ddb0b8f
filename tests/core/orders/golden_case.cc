#include "tests/core/orders/golden_case.h"

#include <utility>

#include "tests/support/profile_json.h"

namespace stepcast::testing {

namespace {

GoldenOperation OperationFromJson(const nlohmann::json& json) {
  GoldenOperation operation;
  operation.name = json.at("name");
  const std::string resource = json.at("resource");
  if (resource == "DOWNLINK") operation.resource = Resource::kDownlink;
  if (resource == "WORKER") operation.resource = Resource::kWorker;
  operation.waiting_for = json.at("waiting_for").get<std::vector<int32_t>>();
  operation.time_ns = json.at("time_ns");
  return operation;
}

}  // namespace

std::vector<GoldenOrderCase> ReadGoldenOrderCases() {
  std::vector<GoldenOrderCase> cases;
  for (const nlohmann::json& json :
       ReadJsonFile(STEPCAST_SOURCE_DIR "/tests/data/golden/transfer_order.json")) {
    GoldenOrderCase golden;
    for (const nlohmann::json& operation : json.at("operations"))
      golden.operations.push_back(OperationFromJson(operation));
    for (const nlohmann::json& load : json.at("tic_impending_communication_load")) {
      golden.tic_impending_loads.push_back(
          load.is_null() ? std::nullopt : std::optional<double>(load.get<double>()));
    }
    golden.tac_order = json.at("tac_order").get<std::vector<int32_t>>();
    golden.tac_makespan_ns = json.at("tac_makespan_ns");
    golden.upper_makespan_ns = json.at("upper_makespan_ns");
    golden.lower_makespan_ns = json.at("lower_makespan_ns");
    golden.best_makespan_ns = json.at("best_makespan_ns");
    golden.tac_scheduling_efficiency = json.at("tac_scheduling_efficiency");
    cases.push_back(std::move(golden));
  }
  return cases;
}

TransferGraph GraphOf(const GoldenOrderCase& golden) {
  std::vector<TransferGraph::Operation> operations;
  std::vector<TransferGraph::Dependency> dependencies;
  for (const GoldenOperation& operation : golden.operations) {
    const auto op = static_cast<int32_t>(operations.size());
    const bool transfer = operation.resource == Resource::kDownlink;
    operations.push_back({.kind = transfer ? OperationKind::kDownload : OperationKind::kComputation,
                          .time = Nanoseconds(operation.time_ns)});
    for (const int32_t before : operation.waiting_for)
      dependencies.push_back({.before = before, .after = op});
  }
  return {std::move(operations), dependencies};
}

}  // namespace stepcast::testing
