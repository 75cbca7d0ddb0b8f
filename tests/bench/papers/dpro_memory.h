// dPRO's memory passes (MLSys 2022, section 7.4): Table 3, the memory of four models, and Table 4,
// what recomputation and gradient accumulation cost BERT Base and save.
//
// The outputs of TensorFlow's operations come from the jobs that dPRO's authors publish:
// joapolarbear/horovod, examples/tensorflow/tensorflow_synthetic_benchmark_single_machine.py, feeds
// 224 x 224 pixels to every keras model, with plain SGD, and reads MaxBytesInUse;
// joapolarbear/bert, run_pretraining.py, has 128 tokens and 20 predictions, with Adam and a clipped
// norm (optimization.py). So parameters are there 3 times (itself, its gradient, Horovod's sum),
// and 6 times with both moments and the clipped gradient.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/model/profile.h"

namespace stepcast::bench {

// The forward operations of a TensorFlow job, in order, and their float32 outputs for one example.
struct TensorFlowJob {
  struct Output {
    std::string name;
    int64_t elements = 0;
    bool needed = false;     // a gradient reads it, so TensorFlow holds it until then
    double flops = 0;        // of a product; 0: it moves bytes alone
    int64_t parameters = 0;  // that a product reads
  };

  std::string name;
  double parameters = 0;
  double copies = 0;  // of a parameter
  std::vector<Output> outputs = {};

  void Add(std::string part, int64_t elements, bool needed) {
    outputs.push_back({std::move(part), elements, needed});
  }
};
TensorFlowJob KerasResNet50();
TensorFlowJob KerasVgg16();
TensorFlowJob KerasInceptionV3(int64_t pixels);
TensorFlowJob GoogleBertBase();

// The rates of a device. A product takes its arithmetic, all else what it reads and writes.
struct DeviceRates {
  double flops_per_second = 0;
  double bytes_per_second = 9e11;  // of a V100's memory, by its data sheet
};
// Every output is kept, in bytes of the batch, or what gradients need.
Profile ProfileOf(const TensorFlowJob& job, int32_t batch_size, const DeviceRates& rates,
                  bool keeps_all);

// GB, with batches of 32; 0: not there.
struct MemoryRow {
  std::string model;
  double measured = 0;
  double dpro = 0;    // their estimate
  double zoo = 0;     // by the zoo's layers
  double needed = 0;  // by TensorFlow's operations, what gradients need
  double all = 0;     // likewise, every output, dPRO's own rule
};
std::vector<MemoryRow> MeasureTable3();
std::string Table3(const std::vector<MemoryRow>& rows);

// A pass on 16 GPUs with batches of 64; ms of a step, GB at its peak.
struct PassRow {
  std::string pass;
  double measured_ms = 0;
  double dpro_ms = 0;  // their estimate
  double measured_gb = 0;
  double zoo_ms = 0;  // of the zoo's BERT
  double zoo_gb = 0;
  double shapes_ms = 0;  // of TensorFlow's operations
  double shapes_gb = 0;
};
// None, recomputation of cheap outputs, accumulation, recomputation of segments, in that order. The
// devices' arithmetic is such that a step without a pass takes what was measured; no other number
// is fitted.
std::vector<PassRow> MeasureTable4();
std::string Table4(const std::vector<PassRow>& rows);

}  // namespace stepcast::bench
