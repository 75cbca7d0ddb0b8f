// The subject of the papers' results: a network of the model zoo on GPU workers with links of
// one speed.
//
// Step times vary by a tenth and workers start at random instants of a step, so that they do not
// stay in step (core/README.md). Everything here throws std::runtime_error where the core fails.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/throughput.h"

namespace stepcast::bench {

inline constexpr double kGigabit = 1.25e8;  // bytes per second
// Neither paper prints step times. Taken for the V100 of ICPE 2020, and for the K80 of TicTac: some
// two thirds of their peaks.
inline constexpr double kV100FlopsPerSecond = 1e13;
inline constexpr double kK80FlopsPerSecond = 2.5e12;

// The length of a simulation.
struct Length {
  int32_t steps_per_worker = 150;
  int32_t replications = 3;
};

// REQUIRES: the zoo has the model.
Profile GpuProfile(std::string_view model, int32_t batch_size, double bandwidth_bytes_per_second,
                   double flops_per_second = kV100FlopsPerSecond);
SimulationOptionsDraft OptionsOf(const Length& length);
// Streams whole and in graph order, unless the scenario says otherwise.
std::vector<Prediction> Predict(const Profile& profile, const ScenarioDraft& scenario,
                                const std::vector<int32_t>& workers, const Length& length);

// Of a recorded step, on average: its computation, and its downloads at the recorded bandwidth.
struct StepParts {
  double computation_seconds = 0;
  double download_seconds = 0;
};
StepParts PartsOf(const Profile& profile);

// 1, 2, ... most.
std::vector<int32_t> CountsTo(int32_t most);

// The fewest workers that make at least 90 % of what the most make. `throughput` is of 1, 2, ...
// workers.
int32_t SaturatedAt(const std::vector<double>& throughput);

// One line of a markdown table.
std::string TableRow(const std::vector<std::string>& cells);
// The first line, and the one below it.
std::string TableHead(const std::vector<std::string>& cells);

}  // namespace stepcast::bench
