// The growth of throughput with the workers, simulated and as simpler models say, by batch size.
//
// Source: ICPE 2020, Fig. 2: Inception-v3 saturates at 4, 4, 5 and 7 workers with batches of 16,
// 32, 64 and 128; section 4.4: the model of Lin et al. is accurate with small batches and saturates
// too early with large ones, Cynthia is too low.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/papers/cluster.h"

namespace stepcast::bench {

struct ScalingOptions {
  std::string model = "inception_v3";
  double gigabits_per_second = 10;
  std::vector<int32_t> batch_sizes = {8, 16, 32, 64, 128};
  ParsingOverhead parsing_overhead;
  int32_t most_workers = 10;
  Length length = {.steps_per_worker = 80, .replications = 2};
};

// Examples per second, by the number of workers, from 1.
struct ScalingCurves {
  std::string model;
  double gigabits_per_second = 0;
  int32_t batch_size = 0;
  double parsing_seconds_per_byte = 0;
  double computation_share = 0;  // computation / downloads, of one worker's step
  std::vector<double> simulated;
  std::vector<double> queueing;  // Lin et al.
  std::vector<double> cynthia;
  std::vector<double> halved;  // Cynthia, half T_C
};

// One a batch size.
std::vector<ScalingCurves> MeasureScaling(const ScalingOptions& options);
// The simulation, and the other models beside it. REQUIRES: curves of at least 10 workers.
std::string SaturationTable(const std::vector<ScalingCurves>& curves);
std::string RivalTable(const std::vector<ScalingCurves>& curves);

}  // namespace stepcast::bench
