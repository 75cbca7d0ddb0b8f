// The operations of one training step of a layered network, against a parameter server or with
// all-reduces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/profile.h"

namespace stepcast {

struct ParameterTensor {
  std::string name;
  int64_t size_bytes = 0;
};

struct TrainingLayer {
  std::string name;
  std::vector<int32_t> inputs;  // indices of earlier layers; none: it reads the batch
  std::vector<ParameterTensor> parameters;
  int64_t forward_ns = 0;
  int64_t backward_ns = 0;  // of all, or of the input's gradient where the weights' stands apart
  std::optional<int64_t> backward_weight_ns;
  int64_t kept_bytes = 0;    // of the forward computation (Operation)
  int64_t output_bytes = 0;  // likewise
  int64_t optimizer_ns = 0;  // of its own update
};

struct TrainingGraph {
  std::vector<Operation> operations;
  std::vector<int64_t> durations_ns;  // parallel to the operations; 0 for transfers
};

// An update reads the gradient and reads and writes the variable, at the memory rate assumed of a
// server (one channel of DDR4 gives 17 to 25e9).
inline constexpr double kUpdateAccessesPerByte = 3;
inline constexpr double kServerMemoryBytesPerSecond = 20e9;
int64_t UpdateNs(int64_t size_bytes);

// The step against a parameter server. Per layer: its parameters' downloads, a forward and a
// backward computation; per parameter an upload of its gradient and an update on the server. Source
// of the shape: ICPE 2020, section 2 and Fig. 2.
//
// In graph order: for each layer `recv/TENSOR` and `forward/LAYER`, which waits for them and for
// the forward operations of its inputs; then, from the last layer to the first, `backward/LAYER`,
// which waits for the backward operations of the layers it feeds, `send/TENSOR` and
// `update/TENSOR`. A layer that feeds no other is an output: the gradients need all of them, so
// with several a `loss` of no length, before the first backward operation, joins them. REQUIRES:
// inputs are indices of earlier layers, none twice in one layer; names are unique. Cost: linear.
TrainingGraph BuildTrainingGraph(const std::vector<TrainingLayer>& layers);

// The step of a worker whose gradients meet those of others in all-reduces, as PyTorch's
// DistributedDataParallel runs it.
//
// In graph order: `forward/LAYER` of each layer; from the last layer to the first `backward/LAYER`
// and, from its last parameter to its first, `all_reduce/TENSOR`, which waits for it; `optimizer`,
// which waits for all of them. Where layers have updates of their own, `optimizer/LAYER` of each
// stands in its place, from the first layer to the last, and waits for its layer's all-reduces, or
// backward where there are none. A computation waits for the one before it: kernels of a stream run
// in the order in which they were launched, and autograd launches backward in the reverse order of
// forward. `optimizer_ns`: of all layers at once. REQUIRES: at least one layer; names are unique;
// optimizer_ns is 0 where layers have updates of their own. Cost: linear.
TrainingGraph BuildAllReduceGraph(const std::vector<TrainingLayer>& layers, int64_t optimizer_ns);

}  // namespace stepcast
