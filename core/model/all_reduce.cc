#include "core/model/all_reduce.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/quoted.h"
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
    if (!profile_.has_collectives()) CheckParametersAreNamed();
    ResolveTimes();
    ResolveFusion();
    ResolveMeasured();
    ResolveConcurrency();
    ResolvePartition();
    ResolveSharding();
    CheckCycles();
    job_.overlap_slowdown =
        Checked("overlap_slowdown", draft_.overlap_slowdown, 1, 1, limits_.max_overlap_slowdown);
    ResolveNccl();
    ResolveFidelity();
    return std::move(job_);
  }

 private:
  static std::string At(const char* field) { return absl::StrCat("all_reduce.", field); }

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
    job_.latency_seconds = Checked("latency_seconds", draft_.latency_seconds, 0, 0, latest);
    job_.workers_per_node =
        CheckedCount(At("workers_per_node"), draft_.workers_per_node.value_or(1), 1, INT32_MAX);
    job_.intra_node_bandwidth_bytes_per_second =
        draft_.intra_node_bandwidth_bytes_per_second.value_or(bandwidth_);
    if (draft_.intra_node_bandwidth_bytes_per_second.has_value())
      CheckBandwidth(At("intra_node_bandwidth_bytes_per_second"),
                     job_.intra_node_bandwidth_bytes_per_second, faults_);
    job_.intra_node_latency_seconds =
        Checked("intra_node_latency_seconds", draft_.intra_node_latency_seconds, 0, 0, latest);
    job_.reduction_seconds_per_byte =
        Checked("reduction_seconds_per_byte", draft_.reduction_seconds_per_byte, 0, 0,
                limits_.max_reduction_seconds_per_byte);
    job_.launch_seconds = Checked("launch_seconds", draft_.launch_seconds, 0, 0, latest);
  }

  void ResolveFusion() {
    if (draft_.buckets.has_value() && draft_.horovod.has_value()) {
      faults_.Add(At("horovod"), "given, and buckets are, too: which of both?");
      return;
    }
    if (draft_.horovod.has_value()) {
      Horovod horovod;
      horovod.fusion_bytes = CheckedCount(
          At("horovod.fusion_bytes"), draft_.horovod->fusion_bytes.value_or(kHorovodFusionBytes),
          int64_t{1}, INT64_MAX);
      horovod.cycle_seconds = draft_.horovod->cycle_seconds.value_or(kHorovodCycleSeconds);
      if (!(horovod.cycle_seconds > 0 && horovod.cycle_seconds <= limits_.max_latency_seconds)) {
        faults_.Add(At("horovod.cycle_seconds"),
                    absl::StrCat(horovod.cycle_seconds, " is not above 0 and at most ",
                                 limits_.max_latency_seconds));
      }
      job_.fusion = horovod;
    } else if (draft_.buckets.has_value()) {
      CheckBuckets(At("buckets"), *draft_.buckets, faults_);
      job_.fusion = *draft_.buckets;
    } else if (profile_.content().buckets.has_value()) {
      const RecordedBuckets& recorded = *profile_.content().buckets;
      if (recorded.rule.has_value()) {
        job_.fusion = *recorded.rule;
      } else {
        job_.fusion = recorded;
      }
    }
  }

  void ResolveMeasured() {
    const bool wanted = job_.algorithm == CollectiveAlgorithm::kMeasured;
    const std::vector<MeasuredCollective>& points = draft_.measured;
    if (wanted && points.empty())
      faults_.Add(At("measured"), "none given, but MEASURED needs them");
    if (!wanted && !points.empty()) {
      faults_.Add(At("measured"), absl::StrCat(points.size(), " given, and the algorithm is ",
                                               NameOf(job_.algorithm), ": which of both?"));
    }
    if (static_cast<int64_t>(points.size()) > limits_.max_measured) {
      faults_.Add(At("measured"), OverLimit(static_cast<int64_t>(points.size()), "max_measured",
                                            limits_.max_measured));
      return;
    }
    for (size_t i = 0; i < points.size(); ++i) CheckPoint(i, points[i]);
    job_.measured = points;
    std::sort(job_.measured.begin(), job_.measured.end(),
              [](const MeasuredCollective& a, const MeasuredCollective& b) {
                return std::tuple(a.kind, a.workers, a.size_bytes) <
                       std::tuple(b.kind, b.workers, b.size_bytes);
              });
    for (size_t i = 1; i < job_.measured.size(); ++i) {
      const MeasuredCollective& a = job_.measured[i - 1];
      const MeasuredCollective& b = job_.measured[i];
      if (std::tuple(a.kind, a.workers, a.size_bytes) !=
          std::tuple(b.kind, b.workers, b.size_bytes))
        continue;
      faults_.Add(At("measured"),
                  absl::StrCat("two times, ", a.seconds, " and ", b.seconds, " s, for ",
                               b.size_bytes, " bytes of ", b.workers, " workers"));
      return;
    }
    if (wanted && !points.empty() &&
        std::none_of(points.begin(), points.end(), [](const MeasuredCollective& point) {
          return point.kind == Collective::kAllReduce;
        })) {
      faults_.Add(At("measured"), "has no ALL_REDUCE, from which the others would follow");
    }
  }

  void CheckPoint(size_t index, const MeasuredCollective& point) {
    const std::string path = absl::StrCat(At("measured"), "[", index, "]");
    if (point.kind == Collective::kUnspecified)
      faults_.Add(path + ".kind", "a measured collective needs a kind");
    CheckedCount(path + ".workers", point.workers, 2, INT32_MAX);
    CheckedCount(path + ".size_bytes", point.size_bytes, int64_t{1}, INT64_MAX);
    if (!(point.seconds > 0 && std::isfinite(point.seconds)))
      faults_.Add(path + ".seconds", absl::StrCat(point.seconds, " is no time above 0"));
  }

  void ResolveConcurrency() {
    job_.concurrent_collectives =
        CheckedCount(At("concurrent_collectives"), draft_.concurrent_collectives.value_or(1), 1,
                     limits_.max_concurrent_collectives);
    if (job_.concurrent_collectives > 1 && job_.algorithm != CollectiveAlgorithm::kGloo) {
      faults_.Add(At("concurrent_collectives"),
                  absl::StrCat(job_.concurrent_collectives, " at once share a link message by ",
                               "message, which GLOO has and ", NameOf(job_.algorithm), " has not"));
    }
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
    if (pieces > limits_.max_pieces) {
      faults_.Add(At("partition_bytes"),
                  absl::StrCat(job_.partition_bytes, " makes ", pieces,
                               " pieces of a step's collectives, which is above the limit "
                               "max_pieces = ",
                               limits_.max_pieces));
    }
  }

  void ResolveSharding() {
    job_.sharding = draft_.sharding.value_or(Sharding::kNone);
    if (job_.sharding == Sharding::kFull && job_.concurrent_collectives > 1) {
      faults_.Add(At("concurrent_collectives"),
                  absl::StrCat(job_.concurrent_collectives,
                               " at once, and FULL has all-gathers and "
                               "reduce-scatters on one communicator"));
    }
  }

  // Cycles fuse what is ready while the job runs, one after the other, and carry it whole.
  void CheckCycles() {
    if (!draft_.horovod.has_value()) return;
    if (job_.sharding != Sharding::kNone)
      faults_.Add(At("sharding"), "given, and horovod, too, which has nothing sharded");
    if (job_.partition_bytes > 0) {
      faults_.Add(At("partition_bytes"),
                  absl::StrCat(job_.partition_bytes,
                               " given, and horovod, too: what its cycles fuse is not cut"));
    }
    if (job_.concurrent_collectives > 1) {
      faults_.Add(At("concurrent_collectives"),
                  absl::StrCat(job_.concurrent_collectives,
                               " at once, and horovod carries one buffer after the other"));
    }
  }

  void ResolveNccl() {
    if (!draft_.nccl.has_value()) return;
    job_.nccl = *draft_.nccl;
    if (job_.algorithm != CollectiveAlgorithm::kNccl) {
      faults_.Add(At("nccl"), absl::StrCat("given, and the algorithm is ", NameOf(job_.algorithm),
                                           ": which of both?"));
    }
    CheckedCount(At("nccl.channels"), job_.nccl.channels, 1, 64);
    if (job_.nccl.channel_bandwidth_bytes_per_second != 0)
      CheckBandwidth(At("nccl.channel_bandwidth_bytes_per_second"),
                     job_.nccl.channel_bandwidth_bytes_per_second, faults_);
  }

  void ResolveFidelity() {
    job_.fidelity = draft_.fidelity.value_or(Fidelity::kCollapsed);
    const bool expanded = job_.fidelity == Fidelity::kExpanded;
    if (expanded && job_.algorithm != CollectiveAlgorithm::kRing) {
      faults_.Add(At("fidelity"), absl::StrCat("EXPANDED sends the chunks of RING, and the ",
                                               "algorithm is ", NameOf(job_.algorithm)));
    }
    if (expanded && draft_.horovod.has_value()) {
      faults_.Add(At("fidelity"),
                  "EXPANDED needs to know what is fused, and horovod fuses while the job runs");
    }
    if (draft_.workers_per_rack.has_value()) {
      const int32_t count =
          CheckedCount(At("workers_per_rack"), *draft_.workers_per_rack, 1, INT32_MAX);
      job_.workers_per_rack = count;
      if (count == *draft_.workers_per_rack && count % job_.workers_per_node != 0) {
        faults_.Add(At("workers_per_rack"),
                    absl::StrCat(count, " is no multiple of the ", job_.workers_per_node,
                                 " workers of a node"));
      }
      if (!expanded)
        faults_.Add(At("workers_per_rack"), absl::StrCat(count, " given, and racks need EXPANDED"));
      if (!draft_.rack_bandwidth_bytes_per_second.has_value())
        faults_.Add(At("rack_bandwidth_bytes_per_second"), "not given, and workers_per_rack is");
    }
    if (!draft_.rack_bandwidth_bytes_per_second.has_value()) return;
    job_.rack_bandwidth_bytes_per_second = *draft_.rack_bandwidth_bytes_per_second;
    CheckBandwidth(At("rack_bandwidth_bytes_per_second"), job_.rack_bandwidth_bytes_per_second,
                   faults_);
    if (!draft_.workers_per_rack.has_value()) {
      faults_.Add(At("rack_bandwidth_bytes_per_second"),
                  absl::StrCat(job_.rack_bandwidth_bytes_per_second,
                               " given, and workers_per_rack is not"));
    }
  }

  const Profile& profile_;
  const AllReduceDraft& draft_;
  const double bandwidth_;
  FaultList& faults_;
  const AllReduceLimits& limits_;
  AllReduce job_;
};

}  // namespace

const char* NameOf(CollectiveAlgorithm algorithm) {
  constexpr const char* kNames[] = {"RING", "HIERARCHICAL", "HALVING_DOUBLING", "TREE", "MEASURED",
                                    "GLOO", "NCCL"};
  return kNames[static_cast<size_t>(algorithm)];
}

AllReduce ResolveAllReduce(const Profile& profile, const AllReduceDraft& draft,
                           double bandwidth_bytes_per_second, FaultList& faults,
                           const AllReduceLimits& limits) {
  return AllReduceResolver(profile, draft, bandwidth_bytes_per_second, faults, limits).Run();
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
  if (!FillsNodes(workers, job)) {
    faults.Add(path, absl::StrCat(workers, " workers do not fill nodes of ", job.workers_per_node,
                                  " (all_reduce.workers_per_node)"));
  }
  if (job.algorithm == CollectiveAlgorithm::kHalvingDoubling && (workers & (workers - 1)) != 0) {
    faults.Add(path, absl::StrCat(workers, " is no power of two, which HALVING_DOUBLING needs"));
  }
}

}  // namespace stepcast
