#include "core/model/scenario.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include "core/base/quoted.h"
#include "core/model/fault_list.h"
#include "core/model/platform_rules.h"

namespace stepcast {

namespace {

// Resolves one draft; its methods are in the order of the fields.
class ScenarioResolver {
 public:
  ScenarioResolver(const Profile& profile, const ScenarioDraft& draft, const ScenarioLimits& limits)
      : profile_(profile), draft_(draft), limits_(limits) {}

  absl::StatusOr<Scenario> Run() && {
    ResolveSizes();
    ResolvePlatform();
    scenario_.synchronization = draft_.synchronization.value_or(Synchronization::kAsynchronous);
    ResolveMultiplexing();
    ResolveLinkSharing();
    ResolveTransferOrder();
    ResolveStartOffsets();
    ResolveWorkerGroups();
    if (!faults_.empty()) return FaultsError("SCENARIO_INVALID", std::move(faults_).Take());
    return std::move(scenario_);
  }

 private:
  void ResolveSizes() {
    scenario_.workers = draft_.workers.value_or(1);
    workers_known_ = CheckRange("workers", scenario_.workers, limits_.max_workers);
    scenario_.parameter_servers = draft_.parameter_servers.value_or(profile_.parameter_servers());
    if (!CheckRange("parameter_servers", scenario_.parameter_servers,
                    limits_.max_parameter_servers))
      return;
    if (scenario_.parameter_servers != profile_.parameter_servers()) CheckPlaceable();
  }

  bool CheckRange(const char* path, int32_t value, int32_t max) {
    if (value >= 1 && value <= max) return true;
    faults_.Add(path, absl::StrCat(value, " is not from 1 to ", max));
    return false;
  }

  // Whatever runs on or talks to a server must say which variable it belongs to, or nothing says
  // where it goes.
  void CheckPlaceable() {
    for (size_t i = 0; i < profile_.operations().size(); ++i) {
      const Operation& operation = profile_.operations()[i];
      if (operation.resource == Resource::kWorker || !operation.parameter.empty()) continue;
      faults_.Add(
          "parameter_servers",
          absl::StrCat(scenario_.parameter_servers, " is not the recorded number, ",
                       profile_.parameter_servers(), ", and operations[", i, "] of the profile, ",
                       Quoted(operation.name), ", names no parameter by which to place it"));
      return;
    }
  }

  void ResolvePlatform() {
    scenario_.bandwidth_bytes_per_second =
        draft_.bandwidth_bytes_per_second.value_or(profile_.platform().bandwidth_bytes_per_second);
    CheckBandwidth("bandwidth_bytes_per_second", scenario_.bandwidth_bytes_per_second, faults_);
    scenario_.parsing_overhead =
        draft_.parsing_overhead.value_or(profile_.platform().parsing_overhead);
    CheckParsingOverhead("parsing_overhead", scenario_.parsing_overhead, faults_);
  }

  void ResolveMultiplexing() {
    const int64_t recorded = profile_.platform().window_bytes;
    const bool is_robin = draft_.multiplexing == Multiplexing::kRoundRobin;
    const int64_t window =
        draft_.window_bytes.value_or(recorded == 0 && is_robin ? kRoundRobinWindowBytes : recorded);
    scenario_.multiplexing = draft_.multiplexing.value_or(window > 0 ? Multiplexing::kWindow
                                                                     : Multiplexing::kWholeStream);
    if (window < 0) {
      faults_.Add("window_bytes", absl::StrCat(window, " is a negative size"));
    } else if (scenario_.multiplexing == Multiplexing::kWholeStream) {
      // The profile's window does not matter then; one that is asked for would be ignored.
      if (draft_.window_bytes.value_or(0) > 0)
        faults_.Add("window_bytes", absl::StrCat(window, " has no effect with WHOLE_STREAM"));
    } else if (window == 0) {
      faults_.Add("window_bytes", "0, but WINDOW and ROUND_ROBIN need at least 1");
    } else {
      scenario_.window_bytes = window;
    }
    ResolveQuantum();
  }

  void ResolveQuantum() {
    const bool is_robin = scenario_.multiplexing == Multiplexing::kRoundRobin;
    const int64_t quantum = draft_.quantum_bytes.value_or(is_robin ? kRoundRobinQuantumBytes : 0);
    if (quantum < 0) {
      faults_.Add("quantum_bytes", absl::StrCat(quantum, " is a negative size"));
    } else if (quantum > 0 && scenario_.multiplexing == Multiplexing::kWholeStream) {
      faults_.Add("quantum_bytes", absl::StrCat(quantum, " has no effect with WHOLE_STREAM"));
    } else if (quantum == 0 && is_robin) {
      faults_.Add("quantum_bytes", "0, but ROUND_ROBIN needs at least 1");
    } else {
      scenario_.quantum_bytes = quantum;
      if (quantum > 0 && scenario_.window_bytes > 0) CheckTurns();
    }
  }

  void ResolveLinkSharing() {
    scenario_.link_sharing = draft_.link_sharing.value_or(LinkSharing::kEqual);
    const bool in_turns = scenario_.link_sharing == LinkSharing::kTurns;
    const int64_t turn = draft_.turn_bytes.value_or(in_turns ? kTurnBytes : 0);
    if (turn < 0) {
      faults_.Add("turn_bytes", absl::StrCat(turn, " is a negative size"));
    } else if (turn > 0 && !in_turns) {
      faults_.Add("turn_bytes", absl::StrCat(turn, " has no effect without TURNS"));
    } else if (turn == 0 && in_turns) {
      faults_.Add("turn_bytes", "0, but TURNS needs at least 1");
    } else {
      scenario_.turn_bytes = turn;
    }
    // Two servers' turns can meet on one worker's link, where real queues hold segments back
    // without holding the servers up. That is not modelled.
    if (in_turns && scenario_.parameter_servers > 1) {
      faults_.Add("link_sharing", absl::StrCat("TURNS are of one parameter server, not of ",
                                               scenario_.parameter_servers));
    }
  }

  // A turn costs as much to simulate as an operation, and a small quantum makes any number of them.
  void CheckTurns() {
    int64_t turns = 0;
    for (const Operation& operation : profile_.operations()) {
      const int64_t left = operation.size_bytes - scenario_.window_bytes;
      if (!IsTransfer(operation.resource) || left <= 0) continue;
      turns += (left - 1) / scenario_.quantum_bytes + 1;
      if (turns <= limits_.max_turns) continue;
      faults_.Add("quantum_bytes",
                  absl::StrCat(scenario_.quantum_bytes, " makes ", turns,
                               " turns or more of a step's transfers, which is above the limit ",
                               "max_turns = ", limits_.max_turns));
      return;
    }
  }

  void ResolveTransferOrder() {
    const bool ranked = !draft_.transfer_priorities.empty();
    scenario_.transfer_order =
        draft_.transfer_order.value_or(ranked ? TransferOrder::kExplicit : TransferOrder::kGraph);
    const bool is_explicit = scenario_.transfer_order == TransferOrder::kExplicit;
    if (is_explicit && !ranked)
      faults_.Add("transfer_priorities", "none given, but EXPLICIT needs them");
    if (!is_explicit && ranked) {
      faults_.Add("transfer_priorities",
                  absl::StrCat(draft_.transfer_priorities.size(),
                               " given, which has no effect without EXPLICIT"));
    }
    if (is_explicit && ranked) ResolvePriorities();
  }

  void ResolvePriorities() {
    absl::flat_hash_set<absl::string_view> transfers;
    for (const Operation& operation : profile_.operations()) {
      if (IsTransfer(operation.resource)) transfers.insert(operation.name);
    }
    for (const auto& [name, rank] : draft_.transfer_priorities) {
      if (faults_.full()) return;
      const bool known = transfers.contains(name);
      if (known && rank >= 0) continue;
      const std::string path = absl::StrCat("transfer_priorities[", Quoted(name), "]");
      if (!known) faults_.Add(path, absl::StrCat(Quoted(name), " is no transfer of the profile"));
      if (rank < 0) faults_.Add(path, absl::StrCat(rank, " is a negative rank"));
    }
    scenario_.transfer_priorities = draft_.transfer_priorities;
  }

  void ResolveStartOffsets() {
    const std::vector<int64_t>& offsets = draft_.start_offsets_ns;
    if (offsets.empty() || !workers_known_) return;
    if (offsets.size() != static_cast<size_t>(scenario_.workers)) {
      faults_.Add("start_offsets_ns",
                  absl::StrCat(offsets.size(), " given for ", scenario_.workers, " workers"));
      return;
    }
    for (size_t i = 0; i < offsets.size(); ++i) {
      if (offsets[i] >= 0 && offsets[i] <= limits_.max_start_offset_ns) continue;
      faults_.Add(absl::StrCat("start_offsets_ns[", i, "]"),
                  absl::StrCat(offsets[i], " is not from 0 to max_start_offset_ns = ",
                               limits_.max_start_offset_ns));
    }
    scenario_.start_offsets_ns = offsets;
  }

  void ResolveWorkerGroups() {
    const std::vector<WorkerGroup>& groups = draft_.worker_groups;
    if (groups.empty() || !workers_known_) return;
    if (groups.size() > static_cast<size_t>(scenario_.workers)) {
      faults_.Add("worker_groups",
                  absl::StrCat(groups.size(), " groups for ", scenario_.workers, " workers"));
      return;
    }
    int64_t workers = 0;
    bool counts_known = true;
    for (size_t i = 0; i < groups.size(); ++i) {
      ResolveWorkerGroup(absl::StrCat("worker_groups[", i, "]"), groups[i]);
      counts_known = counts_known && groups[i].count >= 1;
      workers += groups[i].count;
    }
    if (counts_known && workers != scenario_.workers) {
      faults_.Add("worker_groups", absl::StrCat("their counts add up to ", workers, ", not to ",
                                                scenario_.workers, " workers"));
    }
  }

  void ResolveWorkerGroup(const std::string& path, const WorkerGroup& group) {
    const double factor = group.compute_speed_factor.value_or(1);
    const double bandwidth =
        group.bandwidth_bytes_per_second.value_or(scenario_.bandwidth_bytes_per_second);
    if (scenario_.link_sharing == LinkSharing::kTurns &&
        bandwidth < scenario_.bandwidth_bytes_per_second) {
      faults_.Add(
          path + ".bandwidth_bytes_per_second",
          absl::StrCat(bandwidth, " is below the server's ", scenario_.bandwidth_bytes_per_second,
                       ", and turns on such links are not modelled"));
    }
    if (group.count < 1) faults_.Add(path + ".count", absl::StrCat(group.count, " is below 1"));
    if (!(factor >= kMinComputeSpeedFactor && factor <= kMaxComputeSpeedFactor)) {
      faults_.Add(path + ".compute_speed_factor",
                  absl::StrCat(factor, " is not from ", kMinComputeSpeedFactor, " to ",
                               kMaxComputeSpeedFactor));
    }
    if (group.bandwidth_bytes_per_second.has_value())
      CheckBandwidth(path + ".bandwidth_bytes_per_second", bandwidth, faults_);
    scenario_.worker_groups.push_back({.count = group.count,
                                       .compute_speed_factor = factor,
                                       .bandwidth_bytes_per_second = bandwidth});
  }

  const Profile& profile_;
  const ScenarioDraft& draft_;
  const ScenarioLimits& limits_;
  Scenario scenario_;
  bool workers_known_ = false;  // else nothing can be compared with their number
  FaultList faults_;
};

}  // namespace

absl::StatusOr<Scenario> ResolveScenario(const Profile& profile, const ScenarioDraft& draft,
                                         const ScenarioLimits& limits) {
  return ScenarioResolver(profile, draft, limits).Run();
}

}  // namespace stepcast
