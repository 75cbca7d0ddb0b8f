// Published throughput of all-reduce jobs, predicted from one worker's step time.
//
// The rule: a cluster is calibrated on the rows of one network; those of the others are predicted
// from what one worker of theirs took. Beside that stand what simpler models make of the same
// information, and Pollux's formula fitted to the very rows it is scored on, as Pollux uses it.
// Everything here throws std::runtime_error where the core fails. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "tests/bench/papers/published_scaling.h"

namespace stepcast::bench {

// The instants at which a network's buckets are ready, over which a step's length is spread.
struct BucketedNetwork {
  std::vector<int64_t> bucket_bytes;  // in the order of sending
  std::vector<double> ready;          // shares of backward, ascending to 1
  double backward_share = 0;          // of one worker's step
};

// resnet50: as a recording of a V100 has it (backward is 56 % of the GPU's time; the buckets are
// ready after .007, .075, .154, .408 and all of it). resnet18_cifar: by the zoo. word_lstm:
// PyTorch's word-level language model, two LSTM layers of 200 and 33,278 words: nearly all
// arithmetic is the last layer's, whose gradients are the first bucket. Others: an exception.
const BucketedNetwork& NetworkOf(std::string_view model);

// A profile of one worker whose step is as long as the row's. Its link is unused: the scenario says
// all of the cluster.
Profile ProfileOf(const PublishedRow& row);

// The calibrated cluster: rings over the links of RING (core/communication/collective_time.h).
struct RingCluster {
  double bandwidth_bytes_per_second = 1e9;  // between nodes
  double latency_seconds = 1e-4;
  double intra_node_bandwidth_bytes_per_second = 1e9;
  double intra_node_latency_seconds = 1e-4;
  double overlap_slowdown = 1;
};
ScenarioDraft ScenarioOf(const PublishedRow& row, const RingCluster& cluster);

// Seconds of a ring's all-reduce, by the formula that the scenario's algorithm has.
double RingSeconds(const PublishedRow& row, const RingCluster& cluster, int64_t bytes);

// Seconds of a step, with buckets sent one after the other beside backward: worked out here, bucket
// by bucket, without the engine.
double TimelineSeconds(const PublishedRow& row, const RingCluster& cluster);
// The same by PredictThroughput.
double PredictedSeconds(const PublishedRow& row, const RingCluster& cluster);
// Computation, then all collectives.
double NoOverlapSeconds(const PublishedRow& row, const RingCluster& cluster);

// Pollux's formula (petuum/adaptdl, goodput.py): T = (T_c^y + T_n^y)^(1/y), T_n = a + b max(W - 2,
// 0), with an a and b of workers on one node and others of workers on several. T_c is what one
// worker takes.
struct PolluxFormula {
  double one_node_seconds = 0.01;
  double one_node_seconds_per_worker = 0.001;
  double nodes_seconds = 0.1;
  double nodes_seconds_per_worker = 0.01;
  double exponent = 2;  // y, from 1 to 10
};
// `scale`: of T_n, to a network with more or fewer bytes than that of the fit.
double PolluxSeconds(const PublishedRow& row, const PolluxFormula& formula, double scale = 1);

// Fitted to rows, by the mean absolute logarithm of predicted over measured. REQUIRES: any rows.
RingCluster CalibrateRing(const std::vector<PublishedRow>& rows, bool with_slowdown);
RingCluster CalibrateNoOverlap(const std::vector<PublishedRow>& rows);
PolluxFormula FitPollux(const std::vector<PublishedRow>& rows);

// A row and what each model makes of it, seconds.
struct ScoredRow {
  PublishedRow row;
  double predicted = 0;
  double no_overlap = 0;
  double pollux = 0;         // fitted to the calibration rows, T_n by bytes
  double pollux_fitted = 0;  // fitted to the rows of this network
};

// Of one calibration.
struct ScalingScore {
  std::string set;
  std::string calibrated_on;  // network, and job where there are several
  RingCluster cluster;
  RingCluster no_overlap;
  PolluxFormula pollux;
  std::vector<ScoredRow> rows;  // those that were not calibrated on
};

// Every network of a set in turn as the one calibrated on; of a set with several jobs, the first
// job. Overlap slows computation down as much as that fits.
std::vector<ScalingScore> ScoreSet(const PublishedSet& set);

// The calibrated clusters, a line each.
std::string ClusterTable(const std::vector<ScalingScore>& scores);

// Mean absolute errors, %, a line for each network, calibration, and 2 or at least 3 workers; and
// all errors, a line for each placement.
std::string ErrorTable(const std::vector<ScalingScore>& scores);
std::string RowTable(const std::vector<ScalingScore>& scores);

}  // namespace stepcast::bench
