// The gain of an enforced order of the downloads over a random one, by how much there is to
// compute.
//
// Source: TicTac, section 6.1: up to 37.7 % in inference and 19.2 % in training, with four workers
// a server; most where computation and communication balance, for which batches grow here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/scenario.h"
#include "core/predict/order.h"
#include "tests/bench/papers/cluster.h"

namespace stepcast::bench {

struct EnforcedOrderOptions {
  std::vector<std::string> models = {"inception_v3", "resnet50", "vgg16"};
  std::vector<int32_t> batch_sizes = {8, 16, 32, 64, 128, 256};
  std::vector<OrderMethod> methods = {OrderMethod::kTic, OrderMethod::kTac, OrderMethod::kSearch};
  std::vector<int32_t> workers = {1, 4};
  Synchronization synchronization =
      Synchronization::kSynchronous;  // as TicTac's training; taken for inference, too
  double gigabits_per_second = 10;
  Length length = {.steps_per_worker = 60, .replications = 2};
};

struct OrderGains {
  std::string model;
  bool inference = false;
  int32_t workers = 0;
  int32_t batch_size = 0;
  double computation_share = 0;  // forward computation / all workers' downloads; in balance at 1
  std::vector<double> gains;     // speed-up over a random order, less 1; one a method
};

// One a model, workload (inference first), number of workers and batch size, in that order.
std::vector<OrderGains> MeasureOrders(const EnforcedOrderOptions& options);
// A cell is a batch size: the computation share, and what each method gains.
std::string OrderTable(const EnforcedOrderOptions& options, const std::vector<OrderGains>& gains);

}  // namespace stepcast::bench
