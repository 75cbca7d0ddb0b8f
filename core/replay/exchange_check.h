// The exchanges of recorded nodes: the receives by what is received, and the check of what they say
// of clocks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/replay/clock_alignment.h"
#include "core/replay/difference_constraints.h"

namespace stepcast {

// The receives of recorded exchanges, by what is received step after step: dPRO's families.
//
// Source: dPRO (MLSys 2022), section 4.2. Threads: immutable.

// A reading of a node's clock, from the middle of its readings.
struct Reading {
  int32_t node = 0;
  int64_t at_ns = 0;
};

// The receives of the exchanges, and how much their durations scatter.
class ReceiveFamilies {
 public:
  // `middles`: by node, what its readings are counted from.
  ReceiveFamilies(const RecordedExchanges& exchanges, const std::vector<int64_t>& middles) {
    std::map<std::tuple<bool, int32_t, int32_t, int32_t>, std::vector<Receive>> families;
    const auto reading = [&](int32_t node, int64_t at_ns) {
      return Reading{.node = node, .at_ns = at_ns - middles[Index(node)]};
    };
    for (const RecordedMessage& message : exchanges.messages) {
      const size_t exchange = first_start_.size();
      first_start_.push_back(starts_.size());
      starts_.push_back(reading(message.receiver, message.receive_start_ns));
      starts_.push_back(reading(message.sender, message.send_start_ns));
      families[{true, message.family, message.sender, message.receiver}].push_back(
          {.exchange = exchange, .end = reading(message.receiver, message.receive_end_ns)});
    }
    for (const RecordedCollective& collective : exchanges.collectives) {
      const size_t exchange = first_start_.size();
      first_start_.push_back(starts_.size());
      for (const RecordedCollective::Member& member : collective.members) {
        starts_.push_back(reading(member.node, member.start_ns));
        families[{false, collective.family, 0, member.node}].push_back(
            {.exchange = exchange, .end = reading(member.node, member.end_ns)});
      }
    }
    first_start_.push_back(starts_.size());
    for (auto& [key, receives] : families) {
      if (receives.size() >= 2) families_.push_back(std::move(receives));
    }
  }

  struct Receive {
    size_t exchange = 0;
    Reading end;
  };
  // All of at least two receives.
  const std::vector<std::vector<Receive>>& families() const { return families_; }

  // The index, for each exchange, of the start that is the latest where `common` says what a
  // reading is in common time.
  template <typename Common>
  std::vector<size_t> LatestStarts(Common common) const {
    std::vector<size_t> latest;
    latest.reserve(first_start_.size() - 1);
    for (size_t exchange = 0; exchange + 1 < first_start_.size(); ++exchange) {
      size_t found = first_start_[exchange];
      for (size_t i = found + 1; i < first_start_[exchange + 1]; ++i) {
        if (common(starts_[i]) > common(starts_[found])) found = i;
      }
      latest.push_back(found);
    }
    return latest;
  }
  const Reading& start(size_t index) const { return starts_[index]; }

  // Root of the mean over the families of their durations' variance.
  template <typename Common>
  double Spread(Common common) const {
    if (families_.empty()) return 0;
    const std::vector<size_t> latest = LatestStarts(common);
    double sum = 0;
    for (const std::vector<Receive>& family : families_) {
      const auto duration = [&](const Receive& receive) {
        return common(receive.end) - common(starts_[latest[receive.exchange]]);
      };
      double mean = 0;
      for (const Receive& receive : family) mean += duration(receive);
      mean /= static_cast<double>(family.size());
      double squares = 0;
      for (const Receive& receive : family)
        squares += (duration(receive) - mean) * (duration(receive) - mean);
      sum += squares / static_cast<double>(family.size());
    }
    return std::sqrt(sum / static_cast<double>(families_.size()));
  }

 private:
  std::vector<size_t> first_start_;  // by exchange, one more
  std::vector<Reading> starts_;      // of a message the receiver's first
  std::vector<std::vector<Receive>> families_;
};

// The check of recorded exchanges and of the options of their alignment: every fault with its path.
//
// Threads: none. Cost: linear in the exchanges.

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
