// A training profile: what one worker recorded in a few steps, and the platform it was recorded on.
//
// Source: Li et al., "Throughput Prediction of Asynchronous SGD in TensorFlow", ICPE 2020,
// section 2. A Profile is valid by construction: there is no way to build one that breaks a rule of
// ValidateProfile. Threads: immutable after construction; share it freely.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/index.h"

namespace stepcast {

// The size limits of a profile. Each is named in the error that reports it and is a flag of the
// server.
struct ProfileLimits {
  int64_t max_operations = 1'000'000;
  int64_t max_steps = 10'000;
  int64_t max_recorded_times = 50'000'000;  // operations x steps
  int64_t max_dependencies = 10'000'000;    // all waiting_for together
  int64_t max_parameter_servers = 256;
  int64_t max_batch_size = 1'000'000'000;
  int64_t max_transfer_bytes = int64_t{1} << 44;  // 16 TiB; of a collective, too
  int32_t max_streams = 64;                       // of a worker
  int64_t max_step_ns = 86'400'000'000'000;       // one day
  size_t max_name_bytes = 512;                    // an operation's or a parameter's
  size_t max_text_bytes = 256;                    // display_name, model, framework, a label's value
  size_t max_labels = 64;
  size_t max_label_key_bytes = 63;
};

enum class Resource : uint8_t {
  kUnspecified,
  kDownlink,
  kWorker,
  kUplink,
  kParameterServer,
  kCollective,
};

// DOWNLINK, WORKER, UPLINK, PARAMETER_SERVER, COLLECTIVE; RESOURCE_UNSPECIFIED.
std::string_view ResourceName(Resource resource);

// Between a worker and a parameter server.
constexpr bool IsTransfer(Resource resource) {
  return resource == Resource::kDownlink || resource == Resource::kUplink;
}

// Recorded on the worker's clock, where it is of a job with parameter servers: the receiver of a
// transfer records it.
constexpr bool IsOnWorkersClock(Resource resource) {
  return resource == Resource::kDownlink || resource == Resource::kWorker;
}

// The operation that all workers do together, in graph order.
enum class Collective : uint8_t {
  kUnspecified,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
};

// The part of a training step that an operation belongs to.
enum class Pass : uint8_t {
  kUnspecified,
  kForward,
  kBackward,  // of the input's gradient and of the weights'
  kBackwardInput,
  kBackwardWeight,
  kOptimizer,
  kOther,
  kDataLoading,  // the worker waits for its next batch
};

// FORWARD, BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, OPTIMIZER, OTHER, DATA_LOADING;
// PASS_UNSPECIFIED.
std::string_view PassName(Pass pass);

// The name of the group of a job's replicas.
inline constexpr std::string_view kDataParallelGroup = "DATA_PARALLEL";

// seconds_per_byte * size + seconds, computed by the receiver of a tensor (ICPE 2020, 3.2.1).
struct ParsingOverhead {
  double seconds_per_byte = 0;
  double seconds = 0;

  friend bool operator==(const ParsingOverhead&, const ParsingOverhead&) = default;
};

struct Platform {
  double bandwidth_bytes_per_second = 0;  // of one link, in each direction
  ParsingOverhead parsing_overhead;
  int64_t window_bytes = 0;  // 0: streams are sent whole

  friend bool operator==(const Platform&, const Platform&) = default;
};

inline constexpr int64_t kMaxKeptBytes = int64_t{1} << 44;  // 16 TiB
inline constexpr int32_t kMaxDevicesPerWorker = 65'536;

struct Operation {
  std::string name;
  Resource resource = Resource::kUnspecified;
  int32_t parameter_server = 0;      // index; 0 for kWorker
  int64_t size_bytes = 0;            // of a transfer, or of a collective's full buffer
  std::vector<int32_t> waiting_for;  // indices of operations
  std::string parameter;             // the variable it belongs to; empty: none
  Collective collective = Collective::kUnspecified;  // of kCollective
  int32_t stream = 0;                                // of kWorker: index of the worker's queue
  // Bytes of what a forward computation (kWorker) keeps until its gradient has been computed; 0:
  // nothing, or not known.
  int64_t kept_bytes = 0;
  Pass pass = Pass::kUnspecified;
  // Bytes that a forward computation (kWorker) hands on, which a later stage of a pipeline needs,
  // and whose gradient is as large; 0: nothing, or not known.
  int64_t output_bytes = 0;
  // The workers that do a collective together. Empty or kDataParallelGroup: those of the
  // job, one of each replica; another name: devices inside one replica.
  std::string group;

  friend bool operator==(const Operation&, const Operation&) = default;
};

// True of what grows with the number of a job's workers, false of what stays inside each.
inline bool IsAcrossWorkers(const Operation& operation) {
  return operation.resource == Resource::kCollective &&
         (operation.group.empty() || operation.group == kDataParallelGroup);
}

// True of an all-reduce of gradients, which buckets and other ways to fuse may hold. One that says
// to be of another part of a step than the backward pass sums something else.
inline bool SumsGradients(const Operation& operation) {
  const bool is_of_others = operation.pass == Pass::kForward ||
                            operation.pass == Pass::kOptimizer || operation.pass == Pass::kOther;
  return operation.collective == Collective::kAllReduce && IsAcrossWorkers(operation) &&
         !is_of_others;
}

// True of a gradient's exchange: an all-reduce, or an upload to a parameter server.
inline bool IsGradient(const Operation& operation) {
  return SumsGradients(operation) || operation.resource == Resource::kUplink;
}

// The name of what a worker's host takes for a step beside its device. Neither a larger batch nor
// a faster device makes it another.
inline constexpr std::string_view kHostAlone = "host_alone";

inline bool IsOfHostAlone(const Operation& operation) {
  return operation.resource == Resource::kWorker && operation.stream > 0 &&
         operation.name == kHostAlone;
}

// One recorded step; both vectors are parallel to the operations.
struct RecordedStep {
  std::vector<int64_t> start_ns;
  std::vector<int64_t> end_ns;

  friend bool operator==(const RecordedStep&, const RecordedStep&) = default;
};

// PyTorch DistributedDataParallel's defaults, bytes.
inline constexpr int64_t kFirstBucketBytes = 1'048'576;
inline constexpr int64_t kBucketCapBytes = 26'214'400;

// DistributedDataParallel's rule: gradients are added in graph order, and a bucket is closed once
// it has reached its limit.
// Source: compute_bucket_assignment_by_size, torch/csrc/distributed/c10d/reducer.cpp.
struct Buckets {
  int64_t first_bytes = kFirstBucketBytes;  // the limit of the first one, at least 1
  int64_t cap_bytes = kBucketCapBytes;      // of every other, at least 1

  friend bool operator==(const Buckets&, const Buckets&) = default;
};

// The buckets of a recorded job: their sizes, each what consecutive all-reduces add up to, or the
// rule that made them.
struct RecordedBuckets {
  std::vector<int64_t> sizes_bytes;  // in graph order; empty: by the rule
  std::optional<Buckets> rule;
  // Bytes sent for a byte of gradients, above 0 and at most 1: below 1 a hook compresses them.
  // Sizes of operations and of buckets are of what is sent, the limits of a rule of gradients.
  double sent_share = 1;

  friend bool operator==(const RecordedBuckets&, const RecordedBuckets&) = default;
};

// The rule's limits for what is sent.
inline Buckets AsSent(const Buckets& rule, const std::optional<RecordedBuckets>& recorded) {
  if (!recorded || recorded->sent_share == 1) return rule;
  const auto sent = [&](int64_t bytes) {
    return std::max<int64_t>(
        1, static_cast<int64_t>(std::ceil(static_cast<double>(bytes) * recorded->sent_share)));
  };
  return {.first_bytes = sent(rule.first_bytes), .cap_bytes = sent(rule.cap_bytes)};
}

// The device_idle_fraction above which a job is bound by its hosts.
inline constexpr double kIdleFractionOfHostBound = 0.1;

// A collective as it was recorded, after fusing.
struct LaunchedCollective {
  Collective kind = Collective::kAllReduce;
  int64_t size_bytes = 0;  // of the full buffer; 0: not known

  friend bool operator==(const LaunchedCollective&, const LaunchedCollective&) = default;
};

// A worker's part in a collective, in nanoseconds of its clock.
struct CollectiveRun {
  int64_t start_ns = 0;
  int64_t end_ns = 0;

  friend bool operator==(const CollectiveRun&, const CollectiveRun&) = default;
};

// One worker's part of a recording of several. Times that are not of its steps are in nanoseconds
// of its own clock.
struct WorkerRecording {
  std::string name;
  // Steps, as many as the profile's, the k-th of the same step of training; of the first worker
  // none: they are the profile's.
  std::vector<RecordedStep> steps;
  std::vector<int64_t> step_begins_ns;  // by step
  std::vector<int64_t> step_ends_ns;    // by step
  std::vector<CollectiveRun> runs;      // by step and collective
  // Shifts of a job with parameter servers, by step and server: what was added to that server's
  // clock for the times of the worker's steps; empty: nothing.
  std::vector<int64_t> server_shifts_ns;

  friend bool operator==(const WorkerRecording&, const WorkerRecording&) = default;
};

inline constexpr size_t kMaxRecordedWorkers = 128;
inline constexpr int32_t kMaxJobWorkers = 4096;
inline constexpr double kMaxOverlapSlowdown = 100;
inline constexpr double kMaxCollectiveSlowdown = 100;

// The recording of workers of a job that meet in collectives, or at parameter servers: of all, or,
// with collectives, of a sample of them.
struct JobRecording {
  // Collectives of every step, in the order of their launch; none with parameter servers.
  std::vector<LaunchedCollective> collectives;
  std::vector<WorkerRecording> workers;  // from 2 to kMaxRecordedWorkers, by rank
  // The factor computation took longer by beside a collective, 1 to kMaxOverlapSlowdown. The steps
  // are without it, as if nothing had run beside; 1: as they were recorded.
  double overlap_slowdown = 1;
  // The factor a collective took longer by while some worker computed, 1 to kMaxCollectiveSlowdown.
  // Runs are as they were recorded; what they would have taken alone is AloneNsOf.
  double collective_slowdown = 1;
  // By step and collective: how much of what it took the worker that came last some worker computed
  // beside, as recorded; empty: not known, and only where collective_slowdown is 1.
  std::vector<int64_t> computing_ns;
  // Workers of the job, at most kMaxJobWorkers; 0: those that were recorded.
  int32_t job_workers = 0;

  // The number of workers of the job.
  int32_t size() const {
    return job_workers > 0 ? job_workers : static_cast<int32_t>(workers.size());
  }
  // True where workers of the job were not recorded.
  bool is_sample() const { return Index(size()) > workers.size(); }
  // The time of the collective on the worker that came last, which is the shortest of all workers'
  // times, on whatever clock.
  int64_t ShortestNsOf(size_t step, size_t collective) const {
    int64_t shortest = INT64_MAX;
    for (size_t worker = 0; worker < workers.size(); ++worker) {
      const CollectiveRun& one = run(step, collective, worker);
      shortest = std::min(shortest, one.end_ns - one.start_ns);
    }
    return shortest;
  }
  // The same had no worker computed beside it.
  double AloneNsOf(size_t step, size_t collective) const {
    const auto ns = static_cast<double>(ShortestNsOf(step, collective));
    if (collective_slowdown == 1) return ns;
    const auto beside = static_cast<double>(computing_ns[step * collectives.size() + collective]);
    return ns - beside * (1 - 1 / collective_slowdown);
  }

  const CollectiveRun& run(size_t step, size_t collective, size_t worker) const {
    return workers[worker].runs[step * collectives.size() + collective];
  }

  friend bool operator==(const JobRecording&, const JobRecording&) = default;
};

// A profile as somebody claims it: not checked yet.
struct ProfileDraft {
  std::string display_name;
  std::string model;
  std::string framework;
  std::map<std::string, std::string> labels;
  int32_t batch_size = 0;  // examples per worker and step
  Platform platform;
  int32_t parameter_servers = 1;  // 1 also where there are collectives instead
  std::vector<Operation> operations;
  std::vector<RecordedStep> steps;
  std::optional<RecordedBuckets> buckets;  // none: collectives as they stand
  // Share of a worker's step in which its device waits for its host, from 0 to 1; none: not known.
  std::optional<double> device_idle_fraction;
  std::optional<JobRecording> recording;  // none: of one worker
  int32_t devices_per_worker = 1;         // of which one replica of the recorded job is made

  friend bool operator==(const ProfileDraft&, const ProfileDraft&) = default;
};

// ProfileDraft::framework of profiles that were imported from PyTorch, and of those that were made
// from layers that nobody recorded in a job.
inline constexpr std::string_view kPytorchFramework = "pytorch";
inline constexpr std::string_view kHorovodFramework = "horovod";
inline constexpr std::string_view kZooFramework = "model zoo";
inline constexpr std::string_view kLayersFramework = "layer profile";
// Its computations were recorded, its transfers have no times.
inline constexpr std::string_view kTimelineFramework = "tensorflow timeline";

struct AppliedChange;  // job_change.h

class Profile {
 public:
  // Fails with INVALID_ARGUMENT, reason PROFILE_INVALID, and every fault with its path
  // (ValidateProfile). Cost: linear in the draft's size.
  static absl::StatusOr<Profile> Create(ProfileDraft draft, const ProfileLimits& limits = {});

  const std::string& display_name() const { return content_->display_name; }
  const std::string& model() const { return content_->model; }
  const std::string& framework() const { return content_->framework; }
  // True if its times were made of an architecture or of a table of layers: nobody recorded a step.
  bool is_made() const { return framework() == kZooFramework || framework() == kLayersFramework; }
  const std::map<std::string, std::string>& labels() const { return content_->labels; }
  int32_t batch_size() const { return content_->batch_size; }
  const Platform& platform() const { return content_->platform; }
  int32_t parameter_servers() const { return content_->parameter_servers; }
  int32_t devices_per_worker() const { return content_->devices_per_worker; }
  const std::vector<Operation>& operations() const { return content_->operations; }
  const std::vector<RecordedStep>& steps() const { return steps_of(0); }
  // Content of all workers that were recorded, whichever of them this is of (OfWorkers).
  const ProfileDraft& content() const { return *content_; }
  // The recording of several workers, of all of them; null: there is none, or this is of some.
  const JobRecording* recording() const {
    return content_->recording && workers_.empty() ? &*content_->recording : nullptr;
  }
  // The number of workers that were recorded: 1 without a recording of several.
  int32_t recorded_workers() const {
    if (!workers_.empty()) return static_cast<int32_t>(workers_.size());
    return content_->recording ? static_cast<int32_t>(content_->recording->workers.size()) : 1;
  }
  // The steps of a recorded worker. REQUIRES: 0 <= worker < recorded_workers().
  const std::vector<RecordedStep>& steps_of(int32_t worker) const {
    const int32_t recorded = RecordedAs(worker);
    return recorded == 0 ? content_->steps : content_->recording->workers[Index(recorded)].steps;
  }
  // The profile as that worker alone recorded it. Cost: nothing is copied. REQUIRES: as above.
  Profile OfWorker(int32_t worker) const { return OfWorkers({worker}); }
  // The same of those of its workers, in that order; one may be there several times. REQUIRES: each
  // is one of its workers; at least one.
  Profile OfWorkers(const std::vector<int32_t>& workers) const;
  // True if its workers meet in collectives, false if at parameter servers.
  bool has_collectives() const { return has_collectives_; }
  // True if the recorded times of its transfers are of a link that they shared, so that they tell
  // in which order it served them. Then in every recorded step, of every connection and direction,
  // the bytes would take at most 1.02 of the time in which a transfer was under way, and all
  // transfers together lasted 1.02 of either at least: they waited for each other. Times as if each
  // transfer were alone are not such, nor those of the zoo and of layers, which nobody recorded.
  bool knows_transfer_order() const { return knows_transfer_order_; }
  // The change that made it of a recorded one; null: it is as recorded.
  const std::shared_ptr<const AppliedChange>& change() const { return change_; }
  // The same profile, which says so, and knows of its transfers what that recorded one does.
  Profile WithChange(std::shared_ptr<const AppliedChange> change, const Profile& recorded) const {
    Profile changed = *this;
    changed.change_ = std::move(change);
    changed.knows_transfer_order_ = recorded.knows_transfer_order_;
    return changed;
  }
  // Mean over the recorded steps, from a step's start to its last end.
  double mean_step_ns() const { return (*mean_step_ns_)[Index(RecordedAs(0))]; }

 private:
  explicit Profile(std::shared_ptr<const ProfileDraft> content);

  // Its place in the content.
  int32_t RecordedAs(int32_t worker) const {
    return workers_.empty() ? worker : workers_[Index(worker)];
  }

  // Shared, so a copy costs nothing.
  std::shared_ptr<const ProfileDraft> content_;
  std::shared_ptr<const std::vector<double>> mean_step_ns_;  // by worker of the content
  std::vector<int32_t> workers_;  // of the content, of which this is; empty: of all
  std::shared_ptr<const AppliedChange> change_;
  bool has_collectives_ = false;
  bool knows_transfer_order_ = false;
};

}  // namespace stepcast
