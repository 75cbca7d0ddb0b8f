#include "core/trace/transfer_services.h"

#include <algorithm>

namespace stepcast {

TransferServices ServicesOf(int64_t size_bytes, const Scenario& scenario) {
  if (scenario.multiplexing == Multiplexing::kWholeStream || size_bytes <= scenario.window_bytes)
    return {.first = size_bytes};
  const int64_t left = size_bytes - scenario.window_bytes;
  const int64_t turn = scenario.quantum_bytes > 0 ? std::min(scenario.quantum_bytes, left) : left;
  const int64_t turns = (left - 1) / turn;  // before the last one
  return {.first = scenario.window_bytes,
          .turn = turn,
          .last = left - turns * turn,
          .count = static_cast<int32_t>(turns) + 2};
}

}  // namespace stepcast
