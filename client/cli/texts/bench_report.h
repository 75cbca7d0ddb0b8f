// The report of `stepcast bench`, for people and for programs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/src/load/load_run.h"

namespace stepcast::client {

struct BenchStep {
  std::variant<ClosedLoop, OpenLoop> loop;
  LoadResult result;
};

struct BenchReport {
  std::string server;
  std::string method;
  uint64_t vary = 1;
  int connections = 1;
  std::chrono::nanoseconds deadline{0};
  std::chrono::nanoseconds warmup{0};
  std::chrono::nanoseconds duration{0};
  int64_t check_calls = 0;  // made beside the load
  std::vector<BenchStep> steps;
};

// The targets that each step must keep.
struct BenchTargets {
  std::optional<double> max_p99_ms;
  std::optional<double> min_goodput;
};

// A sentence for every step and what it misses: a target, any answer at all, or the server.
std::vector<std::string> MissedBy(const BenchReport& report, const BenchTargets& targets);

std::string BenchText(const BenchReport& report);
// Latencies in milliseconds, counts as strings, as in the JSON of replies.
std::string BenchJson(const BenchReport& report, const std::vector<std::string>& missed);

}  // namespace stepcast::client
