// How long to simulate, and how sure to be.
//
// Fields, units, defaults and bounds are those of proto/stepcast/v1/scenario.proto. What is empty
// has the default stated there.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace stepcast::client {

// How the first steps of the workers lie in time.
enum class Start : int32_t { kUnspecified = 0, kSimultaneous = 1, kStaggered = 2 };

// Which part of a job is predicted.
enum class Horizon : int32_t {
  kUnspecified = 0,
  kSteadyState = 1,
  kFirstSteps = 2,
  kFirstSeconds = 3
};

struct SimulationOptions {
  std::optional<int32_t> steps_per_worker;  // warm-up included; with kSteadyState only
  std::optional<int32_t> warmup_steps;      // the same; empty: what the engine finds to be needed
  std::optional<uint64_t> seed;
  std::optional<int32_t> replications;
  std::optional<double>
      relative_precision;  // half-width of the interval over the value at which replications stop
  std::optional<std::chrono::nanoseconds> time_budget;
  Start start = Start::kUnspecified;
  Horizon horizon = Horizon::kUnspecified;
  std::optional<int32_t> horizon_steps;
  std::optional<double> horizon_seconds;
  std::optional<double> confidence_level;

  friend bool operator==(const SimulationOptions&, const SimulationOptions&) = default;
};

}  // namespace stepcast::client
