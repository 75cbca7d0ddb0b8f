// The JSON of PyTorch's profiler (Kineto's Chrome trace), read event by event.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/pytorch/saved_tensors.h"
#include "core/model/profile.h"

namespace stepcast {

// Something that happened on the host, as far as an import needs it.
struct TraceHostEvent {
  enum class Kind : uint8_t {
    kStep,             // ProfilerStep#N
    kBackward,         // the autograd engine runs a function, but for gradients of parameters
    kFunction,         // that function itself
    kAddition,         // of two tensors of a shape, outside of autograd
    kGradient,         // torch::autograd::AccumulateGrad: a parameter's gradient is there
    kGradientScope,    // the engine around it, with DistributedDataParallel's hook
    kCollectiveCall,   // c10d::allreduce_ and the like: the launch
    kCollective,       // record_param_comms: what was launched, with its size
    kCollectiveRun,    // the annotation gloo:all_reduce or nccl:all_reduce, sometimes with a size
    kCopyFromBucket,   // torch.distributed.ddp.reducer::copy_bucket_to_grad
    kOptimizer,        // Optimizer.step#SGD.step
    kSynchronization,  // the host waits for the GPU
    kForwardPass,      // DistributedDataParallel.forward
    kSend,             // the annotation gloo:send: from its post until it was waited for
    kReceive,          // gloo:recv, likewise
    kDataLoading,      // enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  };

  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // The number of a kStep, the sequence number of what a kBackward or kFunction undoes, the
  // elements of any other tensor; -1: not recorded.
  int64_t number = -1;
  // The workers of a kCollective, the first dimension of a kGradient; 0: not recorded.
  int32_t group_size = 0;
  int32_t group = -1;         // of kCollective, its place in groups; -1: not recorded
  int16_t element_bytes = 0;  // 0: not recorded
  bool is_whole = false;      // of whole numbers, as no gradient is
  Kind kind = Kind::kStep;
  Collective collective = Collective::kUnspecified;  // kUnspecified: one of another kind
};

// A kernel, copy or memset on a GPU.
struct TraceDeviceWork {
  int64_t launch_ns = -1;  // on the host; -1: not recorded
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int32_t group = -1;  // of a collective; -1: not recorded
  bool is_collective = false;
};

// Workers that run collectives together.
struct TraceGroup {
  std::string name;
  std::string description;  // "default_pg", "tp"; empty: not recorded
  int64_t size = 0;         // 0: not recorded

  friend bool operator==(const TraceGroup&, const TraceGroup&) = default;
};

struct PyTorchTrace {
  std::vector<TraceHostEvent> host;     // by start, of equal ones the longest first
  std::vector<TraceDeviceWork> device;  // by launch
  TensorOperations tensors;             // of operations that recorded their inputs' shapes
  std::vector<TraceGroup> groups;       // of collectives, and all that the process was in
  std::string other_collective;  // the name of one of another kind than Collective has; empty: none
  int64_t world_size = 0;        // 0: not recorded
  int64_t rank = -1;             // of distributedInfo; -1: not recorded
  int64_t base_ns = 0;           // what times count from
  int64_t events = 0;            // with a length
  bool has_categories = false;   // false: as PyTorch without Kineto writes
  bool names_devices = false;    // deviceProperties lists a GPU
  bool has_transfers = false;    // kSend or kReceive
};

// Field names of 2021 to 2025. Of an event only what a PyTorchTrace has is kept, so memory is that
// of the events an import needs, whatever else was recorded. Failure: INVALID_ARGUMENT, reason
// IMPORT_INVALID, at `recording`, where the text is no such JSON, an event has no number for a
// time, or more events are needed than kMaxTraceRowsPerOperation x max_operations; what the source
// or `stop` fails with. As many operations on tensors may come besides; of more, none are kept.
// Source: pytorch/kineto, libkineto/src/output_json.cpp, of 2021 to 2024.
absl::StatusOr<PyTorchTrace> ReadPyTorchTrace(ByteSource& source, const ProfileLimits& limits,
                                              StopCheck stop);

// The process groups of a trace (process_groups.cc): which ones are inside a replica, and how
// many devices it has.

// "tensor", "pipeline", "context" or "expert": the one dimension of a replica that a group is;
// empty: none, or several.
std::string DimensionOf(const TraceGroup& group);

// By its description, as Megatron, DeepSpeed and torchtitan write it, a group inside a replica.
bool IsInsideReplica(const TraceGroup& group);

struct ReplicaShape {
  int64_t devices = 1;
  int64_t reducing_contexts = 1;  // members that one replica has in a ring of gradients
};

// Told by the sizes of the groups that the trace has beside the one of `gradients`.
ReplicaShape ShapeOfReplica(const PyTorchTrace& trace, int32_t gradients);

}  // namespace stepcast
