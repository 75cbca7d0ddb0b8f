// The begin and end of the operations of one real step, on the monotonic clock.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast::testbed {

struct StepRecord {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;             // when the worker knew that all was done
  std::vector<int64_t> start_ns;  // by operation: requested, ready to be sent, or begun
  std::vector<int64_t> done_ns;   // by operation: available to the receiver, or ended
};

}  // namespace stepcast::testbed
