// The gain of a second parameter server, and how evenly it takes parameters over.
//
// Source: ICPE 2020, section 5, Figs. 23 and 25: VGG-11 is split into 407 and 100 MB, and gains
// only marginally.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/papers/cluster.h"

namespace stepcast::bench {

struct SecondServerOptions {
  std::vector<std::string> models = {"googlenet", "inception_v3", "resnet50", "resnet101",
                                     "alexnet",   "vgg16",        "vgg11"};
  double gigabits_per_second = 10;
  std::vector<int32_t> batch_sizes = {32, 128};
  int32_t workers = 8;
  Length length;
};

struct SecondServerGain {
  std::string model;
  int32_t batch_size = 0;
  std::vector<int64_t> bytes;          // of each server
  double one_examples_per_second = 0;  // with one server
  double two_examples_per_second = 0;
  // A bound, as if nothing but the links mattered: all bytes over those of the fuller server.
  double Bound() const;
  double Gain() const { return two_examples_per_second / one_examples_per_second; }
};

// One a batch size and model, in that order.
std::vector<SecondServerGain> MeasureSecondServer(const SecondServerOptions& options);
std::string SecondServerTable(const std::vector<SecondServerGain>& gains);

}  // namespace stepcast::bench
