// The receives of recorded exchanges, by what is received step after step: dPRO's families.
//
// Source: dPRO (MLSys 2022), section 4.2. Threads: immutable.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/replay/clock_alignment.h"

namespace stepcast {

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

  // Of each exchange the index of the start that is the latest where `common` says what a reading
  // is in common time.
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

}  // namespace stepcast
