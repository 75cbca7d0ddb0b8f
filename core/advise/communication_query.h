// A request for advice on an all-reduce job's communication: as asked for, and checked.
//
// Threads: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/advise/thread_allocation.h"
#include "core/model/all_reduce.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The ways to group gradients into collectives, the simplest to set first; behind them what nobody
// would choose.
enum class TuningMethod : uint8_t {
  kAsRecorded,     // as the scenario, or else the profile, has them
  kDdpBuckets,     // PyTorch's buckets, by the best cap of a sweep
  kHorovod,        // Horovod's cycles, by the best fusion buffer and cycle time of a sweep
  kMgWfbp,         // merged where that ends the last collective soonest (Shi et al., MG-WFBP)
  kByteScheduler,  // by what is needed first, ByteScheduler's partitions and credit of a sweep
  kLibraM,         // kMgWfbp's groups, with LIBRA's threads for each
  kLibra,          // LIBRA's groups and threads, under contention (Liu et al., INFOCOM 2023)
  kSearch,         // the best grouping that a search by simulation finds, or any other method's
  kSequential,     // one collective of all gradients: LIBRA's baseline SE
  kMgCf,           // kMgWfbp's groups without contention: what nothing sets, and is never chosen
};
// "DDP_BUCKETS".
const char* NameOf(TuningMethod method);

// A method that was not asked for by name, and cannot be asked about such a job, or takes long.
struct LeftOutMethod {
  TuningMethod method = TuningMethod::kAsRecorded;
  std::string reason;
};

struct TuningDraft {
  ScenarioDraft scenario;
  std::vector<int32_t> worker_counts;  // empty: the scenario's
  SimulationOptionsDraft options;
  std::vector<TuningMethod> methods;       // empty: all
  std::vector<int64_t> bucket_caps_bytes;  // empty: as BucketCaps
  std::optional<int64_t> first_bucket_bytes;
  std::optional<Contention> contention;  // in the place of the scenario's
  std::vector<int32_t> threads;          // LIBRA's; empty: AllocationOptions' own
  std::optional<int32_t> max_groups;     // likewise
  std::optional<int32_t> chunks;         // likewise
  std::optional<int32_t> nccl_channels;  // of the threads of all methods but LIBRA's
};

struct TuningQuery {
  std::vector<Scenario> scenarios;  // one a number of workers, in the order asked for; not empty
  bool has_counts = false;          // asked for as a list
  SimulationOptions options;
  std::vector<TuningMethod> methods;                // distinct, not empty
  std::vector<LeftOutMethod> left_out;              // of all, where none were asked for
  std::vector<int64_t> bucket_caps_bytes;           // ascending, distinct, not empty
  int64_t first_bucket_bytes = 0;                   // at least 1
  AllocationOptions allocation;                     // LIBRA's
  std::optional<RecordedBuckets> recorded_buckets;  // the profile's
};

// The question for the best buckets of a job that is resolved already, or the reason why there is
// none.
struct BucketQuestion {
  std::optional<TuningQuery> query;
  std::string why_not;
};

// The warning that advice on buckets needs where CollectivesStartFree.
Warning StartFreeWarning();

// Few buckets are tried: by PyTorch's rule with caps of 1 to 200 MiB, and MG-WFBP's, which are not
// where collectives start free: they would be of a gradient each. REQUIRES:
// scenario and options were resolved for this profile.
BucketQuestion AskForBuckets(const Profile& profile, const Scenario& scenario,
                             const SimulationOptions& options);

// Workers where a request names no number.
inline constexpr int32_t kDefaultTunedWorkers = 8;

struct TuningLimits {
  size_t max_worker_counts = 64;
  size_t max_bucket_caps = 256;
  size_t max_thread_choices = 64;
  int32_t max_groups = 32;
  int32_t max_chunks = 500;
  int32_t max_nccl_channels = 64;
};

// The caps that are tried where none are asked for: 0.25 to 200 MiB.
std::vector<int64_t> BucketCaps();

// Fails as ResolveScenario and ResolveOptions do, all faults at once, reason REQUEST_INVALID, paths
// relative to the request (`scenario.all_reduce.sharding`, `bucket_caps_bytes[1]`). A scenario that
// is not of all-reduces, is sharded, or expanded is a fault.
absl::StatusOr<TuningQuery> ResolveTuning(const Profile& profile, const TuningDraft& draft,
                                          const TuningLimits& limits = {});

}  // namespace stepcast
