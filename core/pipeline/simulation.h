// The simulation of a pipeline: replicas of p devices that compute in an order of their own, send
// each other activations and gradients, and reduce the gradients of their stages.
//
// Meaning. A device does one computation at a time, in its order (OrderOf), each when its input has
// arrived. A transfer begins when it was sent and its receiver waits for it (a rendezvous); those
// of an ordered pair of devices go one after the other, latency first, then bytes. A stage's
// gradients are reduced by all replicas at once, a device's collectives one after the other. What a
// device does at its step's end (`tail`) waits for its computations, transfers sent and reductions;
// then replicas gather what they updated, if they must; then its next step begins, or, with a
// barrier, when all devices have come so far.
// Time: in ticks (core/base/time.h); shared links divide bytes in floating point, and an end is
// rounded up to a tick. The same job gives the same run, on any machine with IEEE arithmetic.
// Cost: O(log) an event on links of pairs; on devices' links times the transfers under way.
// Threads: none. Pure functions of their arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/pipeline/schedule.h"

namespace stepcast {

// The instant at which a device's receives are posted.
enum class PipelineReceives : uint8_t {
  kEager,   // all of a step at its begin; a send is waited for at the step's end
  kLate,    // each when it is about to be used; sends as above
  kFused,   // with the send before it, which goes first, and both are waited for
  kPaired,  // the same, the receive first
};
enum class PipelineTransport : uint8_t {
  kIdeal,
  // A receive's notification queues behind data of its sender, a send takes time of its caller.
  kGloo,
};
enum class PipelineLinks : uint8_t {
  kPair,    // each ordered pair of devices has its own
  kDevice,  // each device has one out and one in, shared max-min fair
  kSerial,  // each pair has one for both ways, a transfer at a time
};
// kMegatronBuckets: kBuckets by Megatron-LM's rule, which whoever writes the job applies.
enum class PipelineReduction : uint8_t { kAtEnd, kByChunk, kBuckets, kMegatronBuckets };
constexpr bool HasBuckets(PipelineReduction reduction) {
  return reduction == PipelineReduction::kBuckets ||
         reduction == PipelineReduction::kMegatronBuckets;
}

// A collective of a stage's replicas.
struct StageReduction {
  // Time before the end of the stage's last backward at which its gradients are ready (kBuckets).
  Span before_end;
  Span alone;  // its time beside the bytes below
  // Bytes that it sends on the devices' links, shared with transfers; 0: it has links of its own.
  double wire_bytes = 0;
  int64_t bytes = 0;  // of its gradients; a gather of none is none
};

struct StageTimes {
  Span forward;
  Span backward;         // all of it, or of the input only where the schedule splits it
  Span backward_weight;  // where it does
  // The time by which the last backward is longer than the others, and the first shorter.
  Span last_backward_extra;
};

struct PipelineJob {
  PipelineLayout layout;
  int32_t replicas = 1;  // simulated; alike ones may be simulated as one
  // The number of replicas that each simulated one stands for, which means count it by; empty: 1.
  std::vector<int32_t> stands_for;
  // By recorded step and stage. Each micro-batch of a device draws one.
  std::vector<std::vector<StageTimes>> times;
  std::vector<int64_t> output_bytes;                    // of a stage but the last
  std::vector<std::vector<StageReduction>> reductions;  // by stage, in their order
  std::vector<Span> tails;                              // by device
  // By device, after the tail of all replicas: what a sharded optimizer has updated; empty: none.
  std::vector<StageReduction> gathers;
  std::vector<double> scale;  // of computation, by replica and device; empty: 1
  // The same of each step, beside that: by step, replica and device; empty: 1.
  std::vector<std::vector<double>> step_scale;
  PipelineReceives receives = PipelineReceives::kEager;
  PipelineTransport transport = PipelineTransport::kIdeal;
  PipelineLinks links = PipelineLinks::kPair;
  double bytes_per_second = 0;  // of transfers; infinite: they are free
  Span latency;
  PipelineReduction reduction = PipelineReduction::kAtEnd;
  bool step_barrier = false;
  int32_t steps = 1;
  int32_t counted_from = 0;  // the first step whose computation is counted, below `steps`
  uint64_t seed = 0;
};

struct PipelineRun {
  // By step, the instant at which the last device has ended it.
  std::vector<Instant> step_ends;
  // By device of all replicas, since the last device ended the step before counted_from.
  std::vector<Span> computation;
  std::vector<int32_t> chunks_in_flight;  // the most, by device of the first replica
  // By device of all replicas and computation of its order: its end in the first step.
  std::vector<std::vector<Instant>> ends;
  int64_t events = 0;
};

// A time in which something went on.
struct PipelineSlice {
  enum class Kind : uint8_t { kComputation, kTransfer, kReduction, kRest, kStep };
  Kind kind = Kind::kComputation;
  int32_t replica = 0;
  int32_t device = 0;  // of a replica; of a transfer the sender
  int32_t to = 0;      // the receiver of a transfer
  int32_t step = 0;
  int32_t stage = 0;  // of a transfer the sender's
  PipelineWork work;  // of a transfer what made it
  int64_t bytes = 0;  // of a transfer or a reduction
  // The transfers that a computation waited for, and makes, and a transfer itself: unique; -1:
  // none.
  int64_t input = -1;
  int64_t output = -1;
  Instant begin;
  Instant end;
};

// Takes every slice as it ends.
class PipelineLog {
 public:
  virtual ~PipelineLog() = default;
  virtual void OnSlice(const PipelineSlice& slice) = 0;
};

// Places for messages of all simulated replicas: 2 a stage and micro-batch, in powers of two.
inline constexpr int64_t kMaxPipelineMessages = int64_t{1} << 25;

// Fails as `stop` does; with OUT_OF_RANGE, reason PIPELINE_TOO_LARGE, beyond kMaxPipelineMessages;
// and with FAILED_PRECONDITION where devices wait for each other for ever, as they do where both
// sides of a transfer wait for another first. REQUIRES: vectors are as long as said, layout without
// faults.
absl::StatusOr<PipelineRun> SimulatePipeline(const PipelineJob& job, StopCheck stop,
                                             PipelineLog* log = nullptr);

}  // namespace stepcast
