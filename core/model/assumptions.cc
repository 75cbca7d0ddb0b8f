#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "core/model/scenario.h"

namespace stepcast {

namespace {

constexpr double kMicroseconds = 1e6;

std::string MebibytesText(int64_t bytes) {
  return absl::StrCat(static_cast<double>(bytes) / (1 << 20), " MiB");
}

// Tells one scenario's; its methods are of one kind of job each.
class AssumptionTeller {
 public:
  explicit AssumptionTeller(const Scenario& scenario)
      : scenario_(scenario), several_(scenario.workers > 1) {}

  std::vector<Assumption> Run() && {
    if (scenario_.has_servers()) {
      TellOfServers(scenario_.servers());
    } else {
      TellOfCollectives(scenario_.all_reduce());
    }
    if (scenario_.change != nullptr)
      told_.insert(told_.end(), scenario_.change->told.begin(), scenario_.change->told.end());
    if (scenario_.pipeline.has_value()) TellOfPipeline(*scenario_.pipeline);
    return std::move(told_);
  }

 private:
  bool Assumes(Assumed value) const { return scenario_.assumed.Has(value); }
  void Tell(const char* field, std::string value, std::string message) {
    told_.push_back({.field = field, .value = std::move(value), .message = std::move(message)});
  }

  void TellOfServers(const ParameterServers& job) {
    if (Assumes(Assumed::kKind)) {
      Tell("parameter_servers.servers",
           absl::StrCat(job.servers, job.servers == 1 ? " server" : " servers"),
           "The profile was recorded with collectives, and is asked about with parameter servers.");
    }
    if (Assumes(Assumed::kTransferOrder) && job.transfer_order == TransferOrder::kGraph) {
      Tell("parameter_servers.transfer_order", "graph order",
           "The recording does not tell in which order transfers are served, so it is the order in "
           "which they are requested, of one instant that of the graph.");
    }
    if (Assumes(Assumed::kMultiplexing) && std::holds_alternative<WholeStream>(job.multiplexing)) {
      Tell("parameter_servers.whole_stream", "whole streams",
           "The profile's platform names no window, so a connection sends one tensor after the "
           "other, each whole.");
    }
    if (several_) TellOfSharing(job);
    if (several_ && Assumes(Assumed::kNodeLinks)) {
      Tell("cluster", "a node's link for each worker",
           "Workers that share a node's link are not simulated with servers: each has all of it "
           "here, and with equal shares of it fewer examples/s (worker_groups).");
    }
    if (several_ && job.synchronization == Synchronization::kSummed) {
      Tell("parameter_servers.synchronization", "sums in no time",
           "Servers add up what the workers upload in the time that the profile has on them, which "
           "is none where it has nothing there.");
    }
  }

  void TellOfSharing(const ParameterServers& job) {
    const auto* const turns = std::get_if<Turns>(&job.link_sharing);
    if (Assumes(Assumed::kLinkSharing) && turns != nullptr) {
      Tell("parameter_servers.turns.bytes", absl::StrCat("turns of ", turns->bytes, " bytes"),
           job.servers == 1
               ? "Workers share the server's link in turns of a segment, as hosts with Linux send "
                 "them."
               : "Workers share servers' links, and servers each worker's, in turns: of a segment, "
                 "as hosts with Linux send them, or of a 512th of what a step sends.");
    } else if (Assumes(Assumed::kLinkSharing) &&
               std::holds_alternative<EqualShares>(job.link_sharing)) {
      Tell("parameter_servers.equal", "equal shares",
           "Workers share a server's link equally at every instant.");
    }
    if (Assumes(Assumed::kSynchronization) &&
        job.synchronization == Synchronization::kAsynchronous) {
      Tell("parameter_servers.synchronization", "asynchronous steps",
           "A worker does not wait for the others between its steps.");
    }
  }

  void TellOfPipeline(const Pipeline& pipeline) {
    if (Assumes(Assumed::kPipelineSchedule)) {
      Tell("pipeline.schedule", std::string(PipelineScheduleName(pipeline.layout.schedule)),
           "No schedule was given, so a device computes one forward and one backward in turn.");
    }
    if (several_ && Assumes(Assumed::kNothingToReduce)) {
      Tell("pipeline", "replicas reduce nothing",
           "The profile has no gradient (an ALL_REDUCE; of a table of layers, parameter_bytes), so "
           "replicas do not wait for each other, and several may look better than they are.");
    } else if (several_ && Assumes(Assumed::kPipelineReduction)) {
      Tell("pipeline.reduction", "AT_END",
           "No reduction was given, so a device reduces its gradients as one after its last "
           "backward pass, as Megatron-LM does by default; DistributedDataParallel begins earlier "
           "(BUCKETS).");
    }
    if (pipeline.layout.devices == 1) return;
    if (Assumes(Assumed::kNothingToSend)) {
      Tell("pipeline", "stages send nothing",
           "The profile has no output_bytes (of a table of layers, activation_bytes), so what a "
           "stage hands on takes no more than a latency, and many stages may look better than they "
           "are.");
    }
    if (Assumes(Assumed::kPipelineCuts)) {
      Tell("pipeline.cuts", absl::StrJoin(pipeline.cuts, ", "),
           "No cuts were given, so stages begin where the slowest of them is fastest.");
    }
    if (Assumes(Assumed::kPipelineReceives)) {
      Tell("pipeline.receives", "EAGER",
           "No time of receives was given, so a device posts all of a step at its begin.");
    }
    if (Assumes(Assumed::kPipelineLinks)) {
      Tell("pipeline.bandwidth_bytes_per_second",
           absl::StrCat(pipeline.bandwidth_bytes_per_second, " bytes/s, ",
                        pipeline.latency_seconds * kMicroseconds, "us"),
           "No links between stages were given, so they are the network's.");
    }
  }

  void TellOfCollectives(const AllReduce& job) {
    if (Assumes(Assumed::kKind)) {
      Tell("all_reduce", "collectives",
           absl::StrCat("The profile was recorded with parameter servers, and is asked about with "
                        "collectives",
                        Assumes(Assumed::kNoServerWork)
                            ? ": what its servers computed takes no time."
                            : "."));
    }
    if (Assumes(Assumed::kOneDevice)) {
      Tell(
          "pipeline", "no pipeline",
          "The profile was recorded of a pipeline's stages, and no pipeline is asked about, so one "
          "device computes all of them, and each micro-batch is a step.");
    }
    if (!several_) return;
    if (Assumes(Assumed::kAlgorithm)) {
      Tell("all_reduce.algorithm", absl::AsciiStrToLower(NameOf(job.algorithm)),
           "No algorithm was given, so a collective goes round a ring.");
    }
    const bool between_nodes =
        job.workers_per_node == 1 || scenario_.workers > job.workers_per_node;
    if (Assumes(Assumed::kLatency) && between_nodes &&
        job.latency_seconds == kTypicalLatencySeconds) {
      Tell("all_reduce.latency_seconds", absl::StrCat(job.latency_seconds * kMicroseconds, "us"),
           "No latency was given, so a message between nodes takes as long as is typical of "
           "Ethernet beside its bytes.");
    }
    if (Assumes(Assumed::kIntraNodeLatency) && UsesLinksInsideNodes(scenario_.workers, job) &&
        job.intra_node_latency_seconds == kTypicalIntraNodeLatencySeconds) {
      Tell("all_reduce.intra_node_latency_seconds",
           absl::StrCat(job.intra_node_latency_seconds * kMicroseconds, "us"),
           "No latency inside a node was given, so a message there takes what NCCL's model has for "
           "NVLink beside its bytes.");
    }
    if (Assumes(Assumed::kRecordedTimes) && job.measured.front().workers != scenario_.workers) {
      Tell(
          "all_reduce.measured",
          absl::StrCat("times recorded of ", job.measured.front().workers, " workers"),
          "No links were given, so collectives of other numbers of workers take the recorded times "
          "by the ratio of rings, whose rate and latency are fitted to those times alone.");
    }
    const int32_t nearest =
        NearestMeasured(job.measured, Collective::kAllReduce, scenario_.workers);
    if (!Assumes(Assumed::kRecordedTimes) && nearest > 0 && nearest != scenario_.workers) {
      Tell(
          "all_reduce.measured", absl::StrCat("times measured of ", nearest, " workers"),
          absl::StrCat("No times of ", scenario_.workers,
                       " workers were measured, so collectives take the nearest number's by the "
                       "ratio of rings, whose rate and latency are fitted to all measured times."));
    }
    if (Assumes(Assumed::kLinksUnused)) {
      Tell("all_reduce.measured", "measured times alone",
           "Collectives take the times of all_reduce.measured: rates and latencies of links, a "
           "cluster's too, and the cost of adding have no part in them.");
    }
    TellOfFusion(job);
  }

  void TellOfFusion(const AllReduce& job) {
    const auto* const buckets = std::get_if<Buckets>(&job.fusion);
    if (Assumes(Assumed::kBuckets) && buckets != nullptr && *buckets == Buckets{}) {
      Tell("all_reduce.buckets",
           absl::StrCat(MebibytesText(buckets->first_bytes), ", then ",
                        MebibytesText(buckets->cap_bytes)),
           "No buckets were recorded, so gradients are fused as DistributedDataParallel does by "
           "default.");
    }
    if (Assumes(Assumed::kUnfused)) {
      Tell("all_reduce.unfused", "gradients one by one",
           "No buckets were recorded or given, so each gradient is reduced by itself; "
           "DistributedDataParallel (buckets) and Horovod (horovod) fuse them.");
    }
  }

  const Scenario& scenario_;
  const bool several_;
  std::vector<Assumption> told_;
};

}  // namespace

std::vector<Assumption> AssumptionsOf(const Scenario& scenario) {
  return AssumptionTeller(scenario).Run();
}

void AddAssumptions(const Scenario& scenario, std::vector<Assumption>& told) {
  for (Assumption& assumption : AssumptionsOf(scenario)) {
    if (std::find(told.begin(), told.end(), assumption) == told.end())
      told.push_back(std::move(assumption));
  }
}

}  // namespace stepcast
