// The cases of tests/data/golden/transfer_order.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/profile.h"
#include "core/orders/transfer_graph.h"

namespace stepcast::testing {

struct GoldenOperation {
  std::string name;
  Resource resource = Resource::kUnspecified;
  std::vector<int32_t> waiting_for;
  int64_t time_ns = 0;
};

struct GoldenOrderCase {
  std::vector<GoldenOperation> operations;
  // In the order of the downloads; empty: infinite.
  std::vector<std::optional<double>> tic_impending_loads;
  std::vector<int32_t> tac_order;  // numbers of downloads
  int64_t tac_makespan_ns = 0;
  int64_t upper_makespan_ns = 0;
  int64_t lower_makespan_ns = 0;
  int64_t best_makespan_ns = 0;
  double tac_scheduling_efficiency = 0;
};

std::vector<GoldenOrderCase> ReadGoldenOrderCases();

TransferGraph GraphOf(const GoldenOrderCase& golden);

}  // namespace stepcast::testing
