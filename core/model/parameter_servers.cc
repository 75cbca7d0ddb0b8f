#include "core/model/parameter_servers.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include "core/base/message_text.h"
#include "core/model/validate_profile.h"

namespace stepcast {

namespace {

// Resolves one draft; its methods are in the order of the fields.
class ParameterServersResolver {
 public:
  ParameterServersResolver(const Profile& profile, const ParameterServersDraft& asked,
                           const WorkerLinks& links, const ParameterServersLimits& limits,
                           FaultList& faults)
      : profile_(profile), asked_(asked), links_(links), limits_(limits), faults_(faults) {}

  ParameterServers Run() && {
    faults_.AddIf(profile_.recorded_workers() > 1 && profile_.has_collectives(),
                  "parameter_servers", "the profile is a recording of ",
                  profile_.recorded_workers(),
                  " workers that meet in collectives, and is not asked about "
                  "servers: import one worker's alone");
    ResolveServerCount();
    servers_.parsing_overhead =
        asked_.parsing_overhead.value_or(profile_.platform().parsing_overhead);
    CheckParsingOverhead("parameter_servers.parsing_overhead", servers_.parsing_overhead, faults_);
    servers_.synchronization = asked_.synchronization.value_or(Synchronization::kAsynchronous);
    ResolveMultiplexing();
    ResolveLinkSharing();
    ResolveTransferOrder();
    ResolvePartition();
    return std::move(servers_);
  }

 private:
  void ResolveServerCount() {
    if (profile_.has_collectives()) CheckTransferable();
    servers_.servers = asked_.servers.value_or(profile_.parameter_servers());
    if (servers_.servers < 1 || servers_.servers > limits_.max_parameter_servers) {
      faults_.Add("parameter_servers.servers", absl::StrCat(servers_.servers, " is not from 1 to ",
                                                            limits_.max_parameter_servers));
      return;
    }
    if (servers_.servers != profile_.parameter_servers()) CheckPlaceable();
  }

  // True if an operation is a transfer here, of a parameter or its gradient or both.
  static bool Travels(const Operation& operation) {
    return IsTransfer(operation.resource) || operation.resource == Resource::kCollective;
  }

  // A job of all-reduces becomes one of parameter servers gradient by gradient.
  void CheckTransferable() {
    for (size_t i = 0; i < profile_.operations().size(); ++i) {
      const Operation& operation = profile_.operations()[i];
      const char* why = nullptr;
      if (operation.resource == Resource::kCollective && !IsAcrossWorkers(operation)) {
        why = ", is of a group inside a worker, which no server could stand for";
      } else if (operation.resource == Resource::kCollective && !SumsGradients(operation)) {
        why = ", is not an ALL_REDUCE of gradients, and no server could stand for it";
      } else if (operation.resource == Resource::kCollective && operation.parameter.empty()) {
        why = ", names no parameter that a server could keep";
      } else if (operation.stream > 0) {
        why = ", runs on another stream than 0, and a worker of parameter servers has one";
      }
      if (why == nullptr) continue;
      faults_.Add(
          "parameter_servers",
          absl::StrCat("the profile is of workers that meet in collectives, and operations[", i,
                       "], ", Quoted(operation.name), why));
      return;
    }
  }

  // Whatever runs on or talks to a server must say which variable it belongs to, or nothing says
  // where it goes.
  void CheckPlaceable() {
    for (size_t i = 0; i < profile_.operations().size(); ++i) {
      const Operation& operation = profile_.operations()[i];
      if (operation.resource == Resource::kWorker || !operation.parameter.empty()) continue;
      faults_.Add(
          "parameter_servers.servers",
          absl::StrCat(servers_.servers, " is not the recorded number, ",
                       profile_.parameter_servers(), ", and operations[", i, "] of the profile, ",
                       Quoted(operation.name), ", names no parameter by which to place it"));
      return;
    }
  }

  // `path`: of the field in the draft. 0 where it is a fault.
  int64_t CheckedBytes(const char* path, int64_t bytes, int64_t least) {
    if (bytes >= least) return bytes;
    faults_.Add(path, absl::StrCat(bytes, " is below ", least));
    return 0;
  }

  void ResolveMultiplexing() {
    const int64_t recorded = profile_.platform().window_bytes;
    if (!asked_.multiplexing.has_value()) {
      if (recorded > 0) servers_.multiplexing = Window{.bytes = recorded};
    } else if (const auto* window = std::get_if<WindowDraft>(&*asked_.multiplexing)) {
      if (!window->bytes.has_value() && recorded == 0) {
        faults_.Add("parameter_servers.window.bytes",
                    "not given, and the profile was recorded without a window");
        return;
      }
      const Window resolved{.bytes = CheckedBytes("parameter_servers.window.bytes",
                                                  window->bytes.value_or(recorded), 1),
                            .quantum_bytes = CheckedBytes("parameter_servers.window.quantum_bytes",
                                                          window->quantum_bytes.value_or(0), 0)};
      servers_.multiplexing = resolved;
      CheckServices("parameter_servers.window.quantum_bytes", resolved.bytes,
                    resolved.quantum_bytes);
    } else if (const auto* robin = std::get_if<RoundRobinDraft>(&*asked_.multiplexing)) {
      const RoundRobin resolved{
          .window_bytes = CheckedBytes(
              "parameter_servers.round_robin.window_bytes",
              robin->window_bytes.value_or(recorded > 0 ? recorded : kRoundRobinWindowBytes), 1),
          .quantum_bytes = CheckedBytes("parameter_servers.round_robin.quantum_bytes",
                                        robin->quantum_bytes.value_or(kRoundRobinQuantumBytes), 1)};
      servers_.multiplexing = resolved;
      CheckServices("parameter_servers.round_robin.quantum_bytes", resolved.window_bytes,
                    resolved.quantum_bytes);
    }
  }

  void ResolveLinkSharing() {
    if (!asked_.link_sharing.has_value()) {
      servers_.link_sharing = UsualSharing(profile_, servers_.servers > 1 || links_.are_slow);
      return;
    }
    if (std::holds_alternative<FirstCome>(*asked_.link_sharing))
      servers_.link_sharing = FirstCome{};
    const auto* turns = std::get_if<TurnsDraft>(&*asked_.link_sharing);
    if (turns == nullptr) return;
    constexpr char kPath[] = "parameter_servers.turns.bytes";
    const int64_t bytes = CheckedBytes(kPath, turns->bytes.value_or(kTurnBytes), 1);
    servers_.link_sharing = Turns{.bytes = bytes};
    // The turns of one server's link are not simulated one by one.
    if (servers_.servers > 1 || links_.are_given) CheckServices(kPath, bytes, bytes);
  }

  // A turn costs as much to simulate as an operation, and a small quantum makes any number of them.
  void CheckServices(const char* path, int64_t window, int64_t quantum) {
    if (window == 0 || quantum == 0) return;
    CheckMade(path, quantum, "turns or more of a step's transfers", [&](int64_t bytes) {
      return bytes > window ? (bytes - window - 1) / quantum + 1 : 0;
    });
  }
  // A fault where a value makes too much of a step. `count_of`: what it makes of so many bytes.
  template <typename CountOf>
  void CheckMade(const char* path, int64_t value, const char* what, CountOf count_of) {
    int64_t made = 0;
    for (const Operation& operation : profile_.operations()) {
      if (!Travels(operation)) continue;
      const int64_t ways = operation.resource == Resource::kCollective ? 2 : 1;
      made += ways * count_of(operation.size_bytes);
      if (made <= limits_.max_turns) continue;
      faults_.Add(path, absl::StrCat(value, " makes ", made, " ", what,
                                     ", which is above the limit max_turns = ", limits_.max_turns));
      return;
    }
  }

  void ResolveTransferOrder() {
    const bool ranked = !asked_.transfer_priorities.empty();
    const TransferOrder known =
        profile_.knows_transfer_order() ? TransferOrder::kRecorded : TransferOrder::kGraph;
    servers_.transfer_order =
        asked_.transfer_order.value_or(ranked ? TransferOrder::kExplicit : known);
    const bool is_explicit = servers_.transfer_order == TransferOrder::kExplicit;
    if (is_explicit && !ranked)
      faults_.Add("parameter_servers.transfer_priorities", "none given, but EXPLICIT needs them");
    faults_.AddIf(!is_explicit && ranked, "parameter_servers.transfer_priorities",
                  asked_.transfer_priorities.size(),
                  " given, and another transfer_order than EXPLICIT: which of both?");
    if (is_explicit && ranked) ResolvePriorities();
    faults_.AddIf(servers_.transfer_order == TransferOrder::kRecorded && profile_.has_collectives(),
                  "parameter_servers.transfer_order",
                  "RECORDED, and the profile is of workers that meet in collectives: no transfer "
                  "was recorded");
  }

  void ResolvePartition() {
    if (!asked_.partition_bytes.has_value()) return;
    constexpr char kPath[] = "parameter_servers.partition_bytes";
    servers_.partition_bytes = CheckedBytes(kPath, *asked_.partition_bytes, 1);
    if (servers_.partition_bytes == 0) return;
    CheckMade(kPath, servers_.partition_bytes, "parts or more of a step's tensors",
              [&](int64_t bytes) { return (bytes - 1) / servers_.partition_bytes + 1; });
  }

  void ResolvePriorities() {
    absl::flat_hash_set<absl::string_view> transfers;
    for (const Operation& operation : profile_.operations()) {
      if (Travels(operation)) transfers.insert(operation.name);
    }
    for (const auto& [name, rank] : asked_.transfer_priorities) {
      if (faults_.full()) return;
      const bool known = transfers.contains(name);
      if (known && rank >= 0) continue;
      const std::string path =
          absl::StrCat("parameter_servers.transfer_priorities[", Quoted(name), "]");
      faults_.AddIf(!known, path, Quoted(name), " is not a transfer of the profile");
      if (rank < 0) faults_.Add(path, absl::StrCat(rank, " is a negative rank"));
    }
    servers_.transfer_priorities = asked_.transfer_priorities;
  }

  const Profile& profile_;
  const ParameterServersDraft& asked_;
  const WorkerLinks& links_;
  const ParameterServersLimits& limits_;
  FaultList& faults_;
  ParameterServers servers_;
};

}  // namespace

LinkSharing UsualSharing(const Profile& profile, bool on_two_links) {
  if (!profile.knows_transfer_order()) return EqualShares{};
  if (!on_two_links) return Turns{};
  constexpr int64_t kTurnsOfAStep = 512;
  int64_t down = 0;
  int64_t up = 0;
  for (const Operation& operation : profile.operations()) {
    if (operation.resource == Resource::kDownlink) down += operation.size_bytes;
    if (operation.resource == Resource::kUplink) up += operation.size_bytes;
  }
  return Turns{.bytes = std::max(kTurnBytes, std::max(down, up) / kTurnsOfAStep)};
}

ParameterServers ResolveParameterServers(const Profile& profile, const ParameterServersDraft& asked,
                                         const WorkerLinks& links,
                                         const ParameterServersLimits& limits, FaultList& faults) {
  return ParameterServersResolver(profile, asked, links, limits, faults).Run();
}

}  // namespace stepcast
