// The cost of one measurement.
#pragma once

#include <cstdint>

namespace stepcast::bench {

struct Cost {
  double cpu_ns = 0;
  int64_t operations = 0;  // simulated

  double PerOperation() const { return cpu_ns / static_cast<double>(operations); }
};

}  // namespace stepcast::bench
