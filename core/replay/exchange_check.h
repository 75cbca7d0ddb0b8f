// The check of recorded exchanges and of the options of their alignment: every fault with its path.
//
// Threads: none. Cost: linear in the exchanges.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/replay/clock_alignment.h"
#include "core/replay/difference_constraints.h"

namespace stepcast {

// Faults by their paths.
class ExchangeFaults {
 public:
  // Faults beyond what a status keeps are counted only.
  template <typename... Text>
  void Add(const std::string& field, const Text&... text) {
    if (faults_.size() < kMaxFaults) faults_.push_back({field, absl::StrCat(text...)});
  }
  absl::Status ToStatus() const {
    return faults_.empty() ? absl::OkStatus() : FaultsError("EXCHANGES_INVALID", faults_);
  }

 private:
  std::vector<Fault> faults_;
};

class ExchangeCheck {
 public:
  static constexpr int64_t kMaxReadingNs = int64_t{1} << 61;
  static constexpr int64_t kMaxToleranceNs = 1'000'000'000;
  static constexpr double kMaxDrift = 0.01;

  ExchangeCheck(const RecordedExchanges& exchanges, const AlignmentLimits& limits)
      : exchanges_(exchanges), limits_(limits) {}

  absl::Status Check(const AlignmentOptions& options) {
    CheckOptions(options);
    const size_t nodes = exchanges_.nodes.size();
    const auto most = std::min(limits_.max_nodes, DifferenceConstraints::kMaxVariables);
    if (nodes < 1 || nodes > Index(most))
      faults_.Add("nodes", nodes, " nodes are not from 1 to ", most);
    if (!exchanges_.machines.empty() && exchanges_.machines.size() != nodes)
      faults_.Add("machines", exchanges_.machines.size(), " machines of ", nodes, " nodes");
    size_t readings = 4 * exchanges_.messages.size();
    for (const RecordedCollective& collective : exchanges_.collectives)
      readings += 2 * collective.members.size();
    if (readings > limits_.max_readings)
      faults_.Add("", readings,
                  " readings are above the limit max_readings = ", limits_.max_readings);
    if (absl::Status status = faults_.ToStatus(); !status.ok()) return status;
    spans_.assign(nodes, {});
    for (size_t i = 0; i < exchanges_.messages.size(); ++i)
      CheckMessage(absl::StrCat("messages[", i, "]"), exchanges_.messages[i]);
    for (size_t i = 0; i < exchanges_.collectives.size(); ++i)
      CheckCollective(absl::StrCat("collectives[", i, "]"), exchanges_.collectives[i]);
    if (absl::Status status = faults_.ToStatus(); !status.ok()) return status;
    for (size_t node = 0; node < nodes; ++node) {
      const Extent& extent = spans_[node];
      if (extent.first <= extent.last && extent.last - extent.first > limits_.max_length_ns) {
        faults_.Add(absl::StrCat("nodes[", node, "]"), "readings from ", extent.first, " to ",
                    extent.last, " ns span more than max_length_ns = ", limits_.max_length_ns);
      }
    }
    return faults_.ToStatus();
  }
  // The middle of the node's readings; 0: it has none.
  int64_t MiddleOf(size_t node) const {
    const Extent& extent = spans_[node];
    return extent.first > extent.last ? 0 : extent.first + (extent.last - extent.first) / 2;
  }
  int64_t LengthOf(size_t node) const {
    return std::max<int64_t>(
        0, spans_[node].first > spans_[node].last ? 0 : spans_[node].last - spans_[node].first);
  }

 private:
  struct Extent {
    int64_t first = std::numeric_limits<int64_t>::max();
    int64_t last = std::numeric_limits<int64_t>::min();
  };

  void CheckOptions(const AlignmentOptions& options) {
    if (!(options.max_drift >= 0 && options.max_drift <= kMaxDrift))
      faults_.Add("max_drift", options.max_drift, " is not from 0 to ", kMaxDrift);
    if (options.tolerance_ns < 0 || options.tolerance_ns > kMaxToleranceNs)
      faults_.Add("tolerance_ns", options.tolerance_ns, " is not from 0 to ", kMaxToleranceNs);
    if (!(options.machine_weight >= 0 && options.machine_weight <= 1e6))
      faults_.Add("machine_weight", options.machine_weight, " is not from 0 to 1e6");
    if (options.max_rounds < 0 || options.max_rounds > 1000)
      faults_.Add("max_rounds", options.max_rounds, " is not from 0 to 1000");
  }
  // False: a fault was added.
  bool CheckNode(const std::string& field, int32_t node) {
    if (node >= 0 && Index(node) < exchanges_.nodes.size()) return true;
    faults_.Add(field, node, " is not from 0 to ", exchanges_.nodes.size() - 1);
    return false;
  }
  void CheckFamily(const std::string& path, int32_t family) {
    if (family < 0 || Index(family) >= exchanges_.families.size())
      faults_.Add(path + ".family", family, " is not an index of ", exchanges_.families.size(),
                  " families");
  }
  void CheckTimes(const std::string& path, int32_t node, int64_t start, int64_t end) {
    if (start < -kMaxReadingNs || end > kMaxReadingNs) {
      faults_.Add(path, "from ", start, " to ", end, " ns is farther than 2^61 ns from 0");
      return;
    }
    if (end < start) {
      faults_.Add(path, "the end ", end, " ns is before the start ", start, " ns");
      return;
    }
    Extent& extent = spans_[Index(node)];
    extent.first = std::min(extent.first, start);
    extent.last = std::max(extent.last, end);
  }
  void CheckMessage(const std::string& path, const RecordedMessage& message) {
    CheckFamily(path, message.family);
    const bool has_sender = CheckNode(path + ".sender", message.sender);
    const bool has_receiver = CheckNode(path + ".receiver", message.receiver);
    if (has_sender && message.sender == message.receiver)
      faults_.Add(path + ".receiver", message.receiver, " sent it");
    if (has_sender) CheckTimes(path, message.sender, message.send_start_ns, message.send_end_ns);
    if (has_receiver)
      CheckTimes(path, message.receiver, message.receive_start_ns, message.receive_end_ns);
  }
  void CheckCollective(const std::string& path, const RecordedCollective& collective) {
    CheckFamily(path, collective.family);
    if (collective.members.size() < 2)
      faults_.Add(path + ".members", collective.members.size(), " are less than 2");
    std::vector<uint8_t> seen(exchanges_.nodes.size(), 0);
    for (size_t i = 0; i < collective.members.size(); ++i) {
      const RecordedCollective::Member& member = collective.members[i];
      const std::string field = absl::StrCat(path, ".members[", i, "]");
      if (!CheckNode(field + ".node", member.node)) continue;
      if (std::exchange(seen[Index(member.node)], 1) != 0)
        faults_.Add(field + ".node", member.node, " is there twice");
      CheckTimes(field, member.node, member.start_ns, member.end_ns);
    }
  }

  const RecordedExchanges& exchanges_;
  const AlignmentLimits& limits_;
  ExchangeFaults faults_;
  std::vector<Extent> spans_;  // by node
};

}  // namespace stepcast
