#include "core/model/all_reduce.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/model/validate_profile.h"

namespace stepcast {

namespace {

// Resolves one draft; its methods are in the order of the fields.
class AllReduceResolver {
 public:
  AllReduceResolver(const Profile& profile, const AllReduceDraft& draft, double bandwidth,
                    FaultList& faults, const AllReduceLimits& limits)
      : profile_(profile), draft_(draft), bandwidth_(bandwidth), faults_(faults), limits_(limits) {}

  AllReduce Run() && {
    if (limits_.needs_gradients && !profile_.has_collectives()) CheckParametersAreNamed();
    ResolveTimes();
    ResolveFusion();
    ResolveMeasured();
    ResolveConcurrency();
    ResolvePartition();
    ResolveSharding();
    CheckCycles();
    job_.overlap_slowdown =
        Checked("overlap_slowdown", draft_.overlap_slowdown,
                RecordedSlowdown(&JobRecording::overlap_slowdown), 1, limits_.max_overlap_slowdown);
    ResolveNccl();
    ResolveFidelity();
    ResolveCollectiveSlowdown();
    CheckByteScheduler();
    ResolveThreads();
    ResolveContention();
    return std::move(job_);
  }

 private:
  static std::string At(const char* field) { return absl::StrCat("all_reduce.", field); }

  // Slow-down of a recording of several workers whose times were freed of it; a model of contention
  // says it in its own way.
  double RecordedSlowdown(double JobRecording::*slowdown) const {
    const std::optional<JobRecording>& recording = profile_.content().recording;
    return recording.has_value() && !draft_.contention.has_value() ? (*recording).*slowdown : 1;
  }

  double Checked(const char* field, const std::optional<double>& asked, double otherwise,
                 double least, double most) {
    const double value = asked.value_or(otherwise);
    if (value >= least && value <= most) return value;
    faults_.Add(At(field), absl::StrCat(value, " is not from ", least, " to ", most));
    return otherwise;
  }
  template <typename Number>
  Number CheckedCount(const std::string& path, Number value, Number least, Number most) {
    if (value >= least && value <= most) return value;
    faults_.Add(path, absl::StrCat(value, " is not from ", least, " to ", most));
    return least;
  }

  // A fault of these parts where something is wrong.
  template <typename... Parts>
  void Refuse(bool is_wrong, const char* field, const Parts&... why) {
    if (is_wrong) faults_.Add(At(field), absl::StrCat(why...));
  }

  // A job of parameter servers becomes one of collectives parameter by parameter.
  void CheckParametersAreNamed() {
    bool has_upload = false;
    for (size_t i = 0; i < profile_.operations().size(); ++i) {
      const Operation& operation = profile_.operations()[i];
      has_upload = has_upload || operation.resource == Resource::kUplink;
      if (!IsTransfer(operation.resource) || !operation.parameter.empty()) continue;
      faults_.Add("all_reduce",
                  absl::StrCat("the profile is of parameter servers, and operations[", i, "], ",
                               Quoted(operation.name),
                               ", names no parameter whose gradient could be all-reduced"));
      return;
    }
    if (!has_upload)
      faults_.Add("all_reduce", "the profile has neither a collective nor an upload of a gradient");
  }

  void ResolveTimes() {
    const bool measured = !draft_.measured.empty();
    job_.algorithm = draft_.algorithm.value_or(measured ? CollectiveAlgorithm::kMeasured
                                                        : CollectiveAlgorithm::kRing);
    const double latest = limits_.max_latency_seconds;
    // Measured times contain it, and NCCL's model has its own for every hop.
    const bool needs_latency = job_.algorithm != CollectiveAlgorithm::kMeasured &&
                               job_.algorithm != CollectiveAlgorithm::kNccl;
    job_.latency_seconds = Checked("latency_seconds", draft_.latency_seconds,
                                   needs_latency ? kTypicalLatencySeconds : 0, 0, latest);
    job_.workers_per_node =
        CheckedCount(At("workers_per_node"), draft_.workers_per_node.value_or(1), 1, INT32_MAX);
    job_.intra_node_bandwidth_bytes_per_second =
        draft_.intra_node_bandwidth_bytes_per_second.value_or(bandwidth_);
    if (draft_.intra_node_bandwidth_bytes_per_second.has_value())
      CheckBandwidth(At("intra_node_bandwidth_bytes_per_second"),
                     job_.intra_node_bandwidth_bytes_per_second, faults_);
    job_.intra_node_latency_seconds =
        Checked("intra_node_latency_seconds", draft_.intra_node_latency_seconds,
                needs_latency && job_.workers_per_node > 1 ? kTypicalIntraNodeLatencySeconds : 0, 0,
                latest);
    job_.reduction_seconds_per_byte =
        Checked("reduction_seconds_per_byte", draft_.reduction_seconds_per_byte, 0, 0,
                limits_.max_reduction_seconds_per_byte);
    job_.launch_seconds = Checked("launch_seconds", draft_.launch_seconds, 0, 0, latest);
  }

  // The path below all_reduce of what is asked for that other groups of gradients would be needed
  // for; null: nothing.
  const char* RegroupingAsked() const {
    if (std::holds_alternative<Buckets>(draft_.fusion)) return "buckets.cap_bytes";
    if (std::holds_alternative<GradientGroups>(draft_.fusion)) return "groups";
    if (std::holds_alternative<HorovodDraft>(draft_.fusion)) return "horovod";
    return std::holds_alternative<Unfused>(draft_.fusion) ? "unfused" : nullptr;
  }

  void ResolveFusion() {
    if (const char* const field = RegroupingAsked(); field != nullptr) {
      const std::string why = WhyNoOtherBuckets(profile_);
      Refuse(!why.empty(), field, "given, and ", why);
    }
    if (const auto* scheduler = std::get_if<ByteSchedulerDraft>(&draft_.fusion)) {
      job_.fusion = ByteScheduler{
          .credit_bytes = CheckedCount(At("byte_scheduler.credit_bytes"),
                                       scheduler->credit_bytes.value_or(kByteSchedulerCreditBytes),
                                       int64_t{1}, INT64_MAX)};
    } else if (const auto* groups = std::get_if<GradientGroups>(&draft_.fusion)) {
      CheckGroups(profile_, groups->groups, At("groups.groups"), faults_);
      job_.fusion = *groups;
    } else if (const auto* horovod = std::get_if<HorovodDraft>(&draft_.fusion)) {
      ResolveHorovod(*horovod);
    } else if (const auto* buckets = std::get_if<Buckets>(&draft_.fusion)) {
      CheckBuckets(At("buckets"), *buckets, faults_);
      job_.fusion = *buckets;
    } else if (std::holds_alternative<std::monostate>(draft_.fusion)) {
      ResolveRecordedFusion();
    }
  }

  void ResolveHorovod(const HorovodDraft& asked) {
    Horovod horovod;
    horovod.fusion_bytes =
        CheckedCount(At("horovod.fusion_bytes"), asked.fusion_bytes.value_or(kHorovodFusionBytes),
                     int64_t{1}, INT64_MAX);
    horovod.cycle_seconds = asked.cycle_seconds.value_or(kHorovodCycleSeconds);
    Refuse(!(horovod.cycle_seconds > 0 && horovod.cycle_seconds <= limits_.max_latency_seconds),
           "horovod.cycle_seconds", horovod.cycle_seconds, " is not above 0 and at most ",
           limits_.max_latency_seconds);
    job_.fusion = horovod;
  }

  // The buckets of the recorded job. A model that PyTorch trained alone had none, nor has one that
  // was not recorded, and gets the default ones of DistributedDataParallel, with which it would be
  // trained by several workers.
  void ResolveRecordedFusion() {
    const ProfileDraft& content = profile_.content();
    if (content.buckets.has_value()) {
      if (content.buckets->rule.has_value()) {
        job_.fusion = *content.buckets->rule;
      } else {
        job_.fusion = *content.buckets;
      }
    } else if (profile_.is_made() ||
               (profile_.has_collectives() && content.framework == kPytorchFramework &&
                !content.recording.has_value())) {
      job_.fusion = Buckets{};
    }
  }

  static std::string GroupPath(size_t group, const char* field) {
    return absl::StrCat(At("groups.groups"), "[", group, "].", field);
  }

  // The numbers of threads that collectives run with.
  void ResolveThreads() {
    const auto* groups = std::get_if<GradientGroups>(&job_.fusion);
    const bool contend = draft_.contention.has_value();
    const auto check = [&](const std::string& path, int32_t threads) {
      if (!contend) {
        faults_.Add(path, absl::StrCat(threads, " given, which has no effect without contention"));
        return;
      }
      threads_.insert(CheckedCount(path, threads, 1, limits_.max_threads));
    };
    bool all_have_some = groups != nullptr;
    for (size_t i = 0; groups != nullptr && i < groups->groups.size(); ++i) {
      const GradientGroup& group = groups->groups[i];
      all_have_some = all_have_some && group.threads.has_value();
      if (group.threads.has_value()) check(GroupPath(i, "threads"), *group.threads);
    }
    for (const Operation& operation : profile_.operations()) {
      all_have_some =
          all_have_some && (!IsAcrossWorkers(operation) || IsUploadedOrSummed(profile_, operation));
    }
    if (draft_.threads.has_value()) {
      job_.threads = *draft_.threads;
      check(At("threads"), job_.threads);
    } else if (contend && draft_.thread_channels.has_value()) {
      job_.thread_channels = *draft_.thread_channels;
      threads_.insert(NcclThreads(0, job_.thread_channels));
      threads_.insert(NcclThreads(HUGE_VAL, job_.thread_channels));
    } else if (contend && !all_have_some) {
      faults_.Add(At("threads"),
                  "not given, and contention is: how many does a collective run with?");
    }
  }

  void ResolveContention() {
    if (!draft_.contention.has_value()) return;
    const Contention& contention = *draft_.contention;
    job_.contention = contention;
    const auto refuse = [&](bool is_wrong, const auto&... other) {
      Refuse(is_wrong, "contention", "given, and ", other...);
    };
    refuse(job_.algorithm != CollectiveAlgorithm::kRing, "the algorithm is ",
           NameOf(job_.algorithm), ": its rates are those of RING");
    refuse(job_.workers_per_node > 1, "workers_per_node is ", job_.workers_per_node,
           ": its rates are those of links that are all alike");
    refuse(job_.fidelity == Fidelity::kExpanded,
           "the fidelity is EXPANDED: its rates are those of whole collectives");
    refuse(job_.overlap_slowdown != 1, "overlap_slowdown is ", job_.overlap_slowdown,
           ", too: which of both slows computation down?");
    refuse(job_.collective_slowdown != 1, "collective_slowdown is ", job_.collective_slowdown,
           ", too: which of both slows collectives down?");
    CheckCoefficients(contention);
  }

  // With every number of threads in use; of those that are refused, the least is named.
  void CheckCoefficients(const Contention& contention) {
    const double slowest = 1 / limits_.max_overlap_slowdown;
    for (const int32_t threads : threads_) {
      const double speed = ComputationSpeed(contention, threads);
      if (speed >= slowest && speed <= 1) continue;
      faults_.Add(At("contention.alpha2"),
                  absl::StrCat(contention.alpha2, " leaves computation ", speed,
                               " of its speed beside a collective with ", threads,
                               " threads, which is not from ", slowest, " to 1"));
      break;
    }
    CheckRate("contention.overlapped", contention.overlapped, contention.gamma4);
    CheckRate("contention.alone", contention.alone, contention.gamma4);
  }
  void CheckRate(const char* field, const TransferRate& rate, double gamma4) {
    for (const int32_t threads : threads_) {
      FaultList faults;
      CheckBandwidth("", BytesPerSecond(rate, gamma4, threads), faults);
      if (faults.empty()) continue;
      faults_.Add(At(field), absl::StrCat("with ", threads, " threads ",
                                          std::move(faults).Take().front().description));
      return;
    }
  }

  void ResolveMeasured() {
    const bool wanted = job_.algorithm == CollectiveAlgorithm::kMeasured;
    const size_t count = draft_.measured.size();
    Refuse(wanted && count == 0, "measured", "none given, but MEASURED needs them");
    Refuse(!wanted && count > 0, "measured", count, " given, and the algorithm is ",
           NameOf(job_.algorithm), ": which of both?");
    job_.measured =
        CheckedPoints(draft_.measured, wanted, At("measured"), limits_.max_measured, faults_);
  }

  void ResolveConcurrency() {
    job_.concurrent_collectives =
        CheckedCount(At("concurrent_collectives"), draft_.concurrent_collectives.value_or(1), 1,
                     limits_.max_concurrent_collectives);
    Refuse(job_.concurrent_collectives > 1 && job_.algorithm != CollectiveAlgorithm::kGloo &&
               job_.algorithm != CollectiveAlgorithm::kMeasured,
           "concurrent_collectives", job_.concurrent_collectives,
           " at once share a link message by message, which GLOO has and ", NameOf(job_.algorithm),
           " has not");
  }

  void ResolvePartition() {
    if (!draft_.partition_bytes.has_value()) return;
    job_.partition_bytes =
        CheckedCount(At("partition_bytes"), *draft_.partition_bytes, int64_t{1}, INT64_MAX);
    int64_t pieces = 0;
    for (const Operation& operation : profile_.operations()) {
      if (operation.resource != Resource::kCollective && operation.resource != Resource::kUplink)
        continue;
      pieces += (operation.size_bytes - 1) / job_.partition_bytes + 1;
    }
    Refuse(pieces > limits_.max_pieces, "partition_bytes", job_.partition_bytes, " makes ", pieces,
           " pieces of a step's collectives, which is above the limit max_pieces = ",
           limits_.max_pieces);
  }

  void ResolveSharding() {
    job_.sharding = draft_.sharding.value_or(Sharding::kNone);
    Refuse(job_.sharding == Sharding::kFull && job_.concurrent_collectives > 1,
           "concurrent_collectives", job_.concurrent_collectives,
           " at once, and FULL has all-gathers and reduce-scatters on one communicator");
  }

  // Cycles fuse what is ready while the job runs, one after the other, and carry it whole.
  void CheckCycles() {
    if (!std::holds_alternative<Horovod>(job_.fusion)) return;
    Refuse(job_.sharding != Sharding::kNone, "sharding",
           "given, and horovod, too, which has nothing sharded");
    Refuse(job_.partition_bytes > 0, "partition_bytes", job_.partition_bytes,
           " given, and horovod, too: what its cycles fuse is not cut");
    Refuse(job_.concurrent_collectives > 1, "concurrent_collectives", job_.concurrent_collectives,
           " at once, and horovod carries one buffer after the other");
  }

  // Its step begins with the backward pass, and nothing of it is sharded or sent round by round.
  void CheckByteScheduler() {
    if (!std::holds_alternative<ByteScheduler>(job_.fusion)) return;
    Refuse(job_.sharding != Sharding::kNone, "sharding",
           "given, and byte_scheduler, too, which has nothing sharded");
    Refuse(job_.fidelity == Fidelity::kExpanded, "fidelity",
           "EXPANDED sends in graph order, and byte_scheduler by what is needed first");
  }

  // A collective that goes on at one of two speeds is one event, and has its links to itself.
  void ResolveCollectiveSlowdown() {
    const char* const goes_on_otherwise =
        job_.fidelity == Fidelity::kExpanded
            ? "the fidelity is EXPANDED, which sends it chunk by chunk"
        : job_.algorithm == CollectiveAlgorithm::kGloo && job_.concurrent_collectives > 1
            ? "several of GLOO at once share their links message by message"
            : nullptr;
    const double recorded =
        goes_on_otherwise == nullptr ? RecordedSlowdown(&JobRecording::collective_slowdown) : 1;
    job_.collective_slowdown = Checked("collective_slowdown", draft_.collective_slowdown, recorded,
                                       1, limits_.max_collective_slowdown);
    Refuse(job_.collective_slowdown > 1 && goes_on_otherwise != nullptr, "collective_slowdown",
           job_.collective_slowdown, " given, and ", goes_on_otherwise);
  }

  void ResolveNccl() {
    if (!draft_.nccl.has_value()) return;
    job_.nccl = *draft_.nccl;
    Refuse(job_.algorithm != CollectiveAlgorithm::kNccl, "nccl", "given, and the algorithm is ",
           NameOf(job_.algorithm), ": which of both?");
    CheckedCount(At("nccl.channels"), job_.nccl.channels, 1, 64);
    if (job_.nccl.channel_bandwidth_bytes_per_second != 0)
      CheckBandwidth(At("nccl.channel_bandwidth_bytes_per_second"),
                     job_.nccl.channel_bandwidth_bytes_per_second, faults_);
  }

  void ResolveFidelity() {
    job_.fidelity = draft_.fidelity.value_or(Fidelity::kCollapsed);
    const bool expanded = job_.fidelity == Fidelity::kExpanded;
    Refuse(expanded && job_.algorithm != CollectiveAlgorithm::kRing, "fidelity",
           "EXPANDED sends the chunks of RING, and the algorithm is ", NameOf(job_.algorithm));
    Refuse(expanded && std::holds_alternative<Horovod>(job_.fusion), "fidelity",
           "EXPANDED needs to know what is fused, and horovod fuses while the job runs");
    if (draft_.workers_per_rack.has_value()) {
      const int32_t count =
          CheckedCount(At("workers_per_rack"), *draft_.workers_per_rack, 1, INT32_MAX);
      job_.workers_per_rack = count;
      Refuse(count == *draft_.workers_per_rack && count % job_.workers_per_node != 0,
             "workers_per_rack", count, " is not a multiple of the ", job_.workers_per_node,
             " workers of a node");
      Refuse(job_.algorithm == CollectiveAlgorithm::kMeasured || draft_.contention.has_value(),
             "workers_per_rack", count, " given, and ",
             draft_.contention.has_value() ? "the rates of a contention" : "measured times",
             " contain the racks");
      Refuse(!draft_.rack_bandwidth_bytes_per_second.has_value(), "rack_bandwidth_bytes_per_second",
             "not given, and workers_per_rack is");
    }
    if (!draft_.rack_bandwidth_bytes_per_second.has_value()) return;
    job_.rack_bandwidth_bytes_per_second = *draft_.rack_bandwidth_bytes_per_second;
    CheckBandwidth(At("rack_bandwidth_bytes_per_second"), job_.rack_bandwidth_bytes_per_second,
                   faults_);
    Refuse(!draft_.workers_per_rack.has_value(), "rack_bandwidth_bytes_per_second",
           job_.rack_bandwidth_bytes_per_second, " given, and workers_per_rack is not");
  }

  const Profile& profile_;
  const AllReduceDraft& draft_;
  const double bandwidth_;
  FaultList& faults_;
  const AllReduceLimits& limits_;
  AllReduce job_;
  std::set<int32_t> threads_;  // in use
};

}  // namespace

const char* NameOf(CollectiveAlgorithm algorithm) {
  constexpr const char* kNames[] = {"RING", "HIERARCHICAL", "HALVING_DOUBLING", "TREE", "MEASURED",
                                    "GLOO", "NCCL"};
  return kNames[static_cast<size_t>(algorithm)];
}

int32_t ThreadsOf(const AllReduce& job, double bytes, int32_t of_group) {
  if (of_group > 0) return of_group;
  return job.threads > 0 ? job.threads : NcclThreads(bytes, job.thread_channels);
}

AllReduce ResolveAllReduce(const Profile& profile, const AllReduceDraft& draft,
                           double bandwidth_bytes_per_second, FaultList& faults,
                           const AllReduceLimits& limits) {
  return AllReduceResolver(profile, draft, bandwidth_bytes_per_second, faults, limits).Run();
}

bool UsesLinksInsideNodes(int32_t workers, const AllReduce& job) {
  if (workers == 1 || job.workers_per_node == 1 || job.algorithm == CollectiveAlgorithm::kMeasured)
    return false;
  // Between nodes the others count the links between them alone.
  return workers <= job.workers_per_node || job.algorithm == CollectiveAlgorithm::kRing ||
         job.algorithm == CollectiveAlgorithm::kHierarchical ||
         job.algorithm == CollectiveAlgorithm::kGloo;
}

bool FillsNodes(int32_t workers, const AllReduce& job) {
  return workers <= job.workers_per_node || workers % job.workers_per_node == 0;
}

bool CanMeet(int32_t workers, const AllReduce& job) {
  FaultList faults;
  CheckWorkers("", workers, job, faults);
  return faults.empty();
}

void CheckWorkers(const char* path, int32_t workers, const AllReduce& job, FaultList& faults) {
  faults.AddIf(!FillsNodes(workers, job), path, workers, " workers do not fill nodes of ",
               job.workers_per_node, " (all_reduce.workers_per_node)");
  if (job.algorithm == CollectiveAlgorithm::kHalvingDoubling && (workers & (workers - 1)) != 0) {
    faults.Add(path, absl::StrCat(workers, " is not a power of two, which HALVING_DOUBLING needs"));
  }
}

}  // namespace stepcast
