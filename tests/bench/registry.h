// All benchmarks, in the order in which they run.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/bench/benchmark.h"

namespace stepcast::bench {

class Registry {
 public:
  void Add(Benchmark benchmark) { benchmarks_.push_back(std::move(benchmark)); }

  // Those whose name contains `part`; all where it is empty.
  std::vector<Benchmark> Matching(std::string_view part) const {
    std::vector<Benchmark> matching;
    for (const Benchmark& benchmark : benchmarks_) {
      if (benchmark.name.find(part) != std::string::npos) matching.push_back(benchmark);
    }
    return matching;
  }

 private:
  std::vector<Benchmark> benchmarks_;
};

}  // namespace stepcast::bench
