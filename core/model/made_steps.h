// The steps of jobs that nobody recorded: the operations of a layered network's training step, and
// their times as one worker would have recorded them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/profile.h"

namespace stepcast {

// The operations of one training step of a layered network, against a parameter server or with
// all-reduces.
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

// Steps as one worker would have recorded them, made from known durations.

// The random variation of made steps: standard deviations as shares of a computation's duration, 0
// to kMaxVariationShare.
struct StepVariation {
  double own = 0;      // of each computation by itself
  double common = 0;   // of a factor that all computations of a worker share in a step
  int32_t steps = 20;  // if there is variation; without any one step is made, exactly as given
  uint64_t seed = 1;

  bool varies() const { return own > 0 || common > 0; }
};

// A variation as asked for. A share that is not given is 0: how steps vary is not made up here,
// since predictions vary them (step_model.h), and made steps would pass for recorded ones.
struct StepVariationDraft {
  std::optional<double> own;
  std::optional<double> common;
  std::optional<int32_t> steps;  // default 20, or as many as the limits allow
  uint64_t seed = 1;
};

inline constexpr double kMaxVariationShare = 0.5;
inline constexpr int32_t kMaxMadeSteps = 1000;

// With its defaults, for a graph of so many operations. Faults at `step_time_variation` (own),
// `common_time_variation` and `steps` for what is out of bounds, or makes more times than the
// limits allow.
StepVariation ResolveStepVariation(const StepVariationDraft& draft, size_t operations,
                                   const ProfileLimits& limits, FaultList& faults);

// The note of an import on the steps that it made, a sentence.
std::string NoteOn(const StepVariation& variation);

// One step: the schedule of one worker alone on its platform, by the rules of the simulation (ICPE
// 2020, 3.2; window multiplexing where the platform has a window; parsing overhead computed by the
// receiver, shown as a gap between a transfer and what waits for it), rounded to nanoseconds. Each
// stream of the worker runs by itself; collectives of one worker take no time.
//
// A collective takes no time: one worker meets nobody. `durations_ns` is parallel to the
// operations; those of transfers and collectives are not used. Times saturate at
// kFarNs. REQUIRES: a single parameter server (several would share the worker's own link); the
// operations keep the rules of ValidateProfile, the platform those of CheckPlatform; no duration is
// negative; all computations of the worker are on one stream. Cost: O(n log n) in operations and
// dependencies.
inline constexpr int64_t kFarNs = int64_t{1} << 60;
RecordedStep ScheduleStep(const std::vector<Operation>& operations,
                          const std::vector<int64_t>& durations_ns, const Platform& platform);

// One step, or with variation so many as asked for: in each, every computation's duration is
// multiplied by max(0.05, 1 + own * Normal()), drawn in graph order from a generator keyed by
// {seed, step}; and a worker's by max(0.05, 1 +- common * Normal()), one for all of a step and
// keyed by {seed, pair, 1}: the steps 2k and 2k + 1 are a pair with opposite signs (antithetic
// variates), the last one of an odd number has the factor 1, so that a few steps have the mean that
// many would.
std::vector<RecordedStep> MakeSteps(const std::vector<Operation>& operations,
                                    const std::vector<int64_t>& durations_ns,
                                    const Platform& platform, const StepVariation& variation);

}  // namespace stepcast
