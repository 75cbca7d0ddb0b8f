// The allowances of workers on hubs: bounds on hubs' levels within which a worker's own link need
// not be looked at.
//
// A worker whose own link holds nothing back has an allowance on each hub it uses: the sum of them
// is at most its capacity, each at least that hub's level.
// While both hold, its link cannot bind, so a change of a hub's level concerns only the workers
// whose allowance it exceeds.
// What is left of a capacity is dealt out in advance, so that this is rare; how it is dealt out
// changes no result.
// Units and whole levels: LinkLevel.
// Threads: none.
// Cost: O(hubs) to cover a worker, O(log workers) for each allowance that moves, O(1) else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/indexed_heap.h"
#include "core/network/link_level.h"

namespace stepcast {

class LinkAllowances {
 public:
  LinkAllowances(size_t hubs, const std::vector<int64_t>& worker_capacities)
      : hubs_(hubs),
        allowance_(hubs * worker_capacities.size(), 0),
        unallotted_(worker_capacities),
        alarms_(hubs, IndexedHeap(unallotted_.size())) {}

  // Raises the worker's allowances to the levels of the hubs it uses. REQUIRES: the sum of those
  // is at most its capacity.
  void Cover(int32_t worker, std::span<const int32_t> used, const std::vector<int64_t>& levels) {
    const auto shares = static_cast<int64_t>(hubs_ - used.size() + 1);
    for (const int32_t hub : used) {
      const int64_t level = levels[static_cast<size_t>(hub)];
      const int64_t old = allowance_[Index(worker, hub)];
      if (old >= level) continue;
      const int64_t spare = unallotted_[static_cast<size_t>(worker)] + old - level;
      if (spare < 0) return DealAnew(worker, used, levels);
      Allow(worker, hub, level + spare / shares);
    }
  }

  // The worker does not use the hub any more, or its link binds.
  void Release(int32_t worker, int32_t hub) { Allow(worker, hub, 0); }

  // A worker whose allowance on the hub is below `level`, which it loses; -1 where there is
  // none.
  int32_t TakeExceeded(int32_t hub, int64_t level) {
    const IndexedHeap& alarms = alarms_[static_cast<size_t>(hub)];
    if (alarms.empty() || alarms.TopKey() >= level) return -1;
    const int32_t worker = alarms.Top();
    Release(worker, hub);
    return worker;
  }

 private:
  size_t Index(int32_t worker, int32_t hub) const {
    return static_cast<size_t>(worker) * hubs_ + static_cast<size_t>(hub);
  }

  void DealAnew(int32_t worker, std::span<const int32_t> used, const std::vector<int64_t>& levels) {
    for (const int32_t hub : used) Release(worker, hub);
    int64_t spare = unallotted_[static_cast<size_t>(worker)];
    for (const int32_t hub : used) spare -= levels[static_cast<size_t>(hub)];
    const int64_t share = spare / static_cast<int64_t>(hubs_);
    for (const int32_t hub : used) Allow(worker, hub, levels[static_cast<size_t>(hub)] + share);
  }

  void Allow(int32_t worker, int32_t hub, int64_t allowance) {
    // No level is more than a whole link: such an allowance needs no watching.
    allowance = std::min(allowance, LinkLevel::kUnit);
    unallotted_[static_cast<size_t>(worker)] +=
        std::exchange(allowance_[Index(worker, hub)], allowance) - allowance;
    IndexedHeap& alarms = alarms_[static_cast<size_t>(hub)];
    if (allowance == 0 || allowance == LinkLevel::kUnit) {
      alarms.Remove(worker);
    } else {
      alarms.Set(worker, allowance);
    }
  }

  const size_t hubs_;
  std::vector<int64_t> allowance_;   // by worker and hub; 0: none
  std::vector<int64_t> unallotted_;  // by worker
  std::vector<IndexedHeap> alarms_;  // by hub: workers by allowance
};

}  // namespace stepcast
