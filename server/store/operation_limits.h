// The limits of a store of operations: the most it holds, and for how long.
#pragma once

#include <cstdint>

namespace stepcast::server {

// The limits. Reaching one of the first two is RESOURCE_EXHAUSTED, reason STORE_FULL, with the
// field's name as quota subject.
struct OperationLimits {
  int64_t max_open_operations = 10'000;  // that are not done
  int64_t max_operation_store_bytes =
      int64_t{1}
      << 30;  // of requests of open and results of done ones; looked at when one is started
  int64_t max_done_operations = 10'000;  // beyond it those go that were done first
  int64_t retention_ns = int64_t{7} * 24 * 3600 * 1'000'000'000;
  int64_t max_attempts = 5;  // REQUIRES: above 0
};

}  // namespace stepcast::server
