#include "tests/core/network/exact_max_min.h"

#include <algorithm>
#include <optional>

namespace stepcast::testing {

namespace {

bool Crosses(const std::vector<size_t>& flow, size_t link) {
  return std::find(flow.begin(), flow.end(), link) != flow.end();
}

}  // namespace

std::vector<Exact> MaxMinRates(const std::vector<Exact>& capacities,
                               const std::vector<std::vector<size_t>>& flows) {
  std::vector<std::optional<Exact>> rates(flows.size());
  while (std::find(rates.begin(), rates.end(), std::nullopt) != rates.end()) {
    // The share that each link has left for each of its flows that are not done; the least is where
    // all flows are when the next link fills.
    std::vector<std::optional<Exact>> shares(capacities.size());
    std::optional<Exact> level;
    for (size_t link = 0; link < capacities.size(); ++link) {
      Exact left = capacities[link];
      int growing = 0;
      for (size_t flow = 0; flow < flows.size(); ++flow) {
        if (!Crosses(flows[flow], link)) continue;
        if (rates[flow].has_value()) {
          left -= *rates[flow];
        } else {
          ++growing;
        }
      }
      if (growing == 0) continue;
      shares[link] = left / growing;
      if (!level.has_value() || *shares[link] < *level) level = shares[link];
    }
    for (size_t link = 0; link < capacities.size(); ++link) {
      if (!shares[link].has_value() || *shares[link] != *level) continue;
      for (size_t flow = 0; flow < flows.size(); ++flow) {
        if (!rates[flow].has_value() && Crosses(flows[flow], link)) rates[flow] = *level;
      }
    }
  }
  std::vector<Exact> result;
  for (const std::optional<Exact>& rate : rates) result.push_back(*rate);
  return result;
}

}  // namespace stepcast::testing
