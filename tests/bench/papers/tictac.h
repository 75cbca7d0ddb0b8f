// TicTac's figures of scaling and consistency, and ICPE's of workers that come out of step.
//
// Sources: TicTac (SysML 2019), 6.1 (Figs. 7, 9, 10), 6.2 (Figs. 11a, 12a), 6.3 (Figs. 11b, 12b);
// ICPE 2020, 4.2 (Fig. 16).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/predict/throughput.h"
#include "tests/bench/papers/cluster.h"

namespace stepcast::bench {

// The networks of TicTac's Table 1, by their names in the zoo, with their standard batches.
struct TicTacModel {
  std::string name;
  int32_t batch_size = 0;
};
std::vector<TicTacModel> TicTacModels();

struct TicTacPoint {
  std::string figure;
  TicTacModel model;
  bool inference = false;
  int32_t workers = 0;
  int32_t servers = 0;
  double gain = 0;  // of TIC in throughput, over a random order of each worker's own
  double efficiency = 0;
  double random_efficiency = 0;  // mean over orders
  double straggler = 0;
  double random_straggler = 0;
};

// Fig. 7: a server for four workers, of 4, 8 and 16. Fig. 9: 8 workers, 1, 2 and 4 servers. Fig.
// 10: 4 workers and a server, half, the whole and twice the standard batch.
std::vector<TicTacPoint> TicTacPoints(const std::vector<TicTacModel>& models, const Length& length);
std::string TicTacTable(const std::vector<TicTacPoint>& points);

// Fig. 12: steps of one worker with Inception v2, each of recorded times of its own, in an order
// of its own or in TAC's.
struct Consistency {
  double r_squared = 0;   // of scheduling efficiency against step time, both orders together
  double random_p95 = 0;  // 95th percentile of the shortest step's time over each step's
  double tac_p95 = 0;
};
Consistency MeasureConsistency(bool inference, int32_t steps);
std::string ConsistencyTable(int32_t steps);

// ICPE's Fig. 16: AlexNet, batch of 8, 3 workers that begin together at 1 Gbit/s.
std::vector<ThroughputPoint> OutOfStep(int32_t points);
std::string OutOfStepTable();

}  // namespace stepcast::bench
