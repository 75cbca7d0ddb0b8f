// The levels of max-min fair sharing, and the allowances that save looking at most workers' links.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/indexed_heap.h"
#include "core/network/link_level.h"

namespace stepcast {

// The allowances of workers on hubs: bounds on hubs' levels within which a worker's own link need
// not be looked at.
//
// A worker whose own link holds nothing back has an allowance on each hub it uses: the sum of them
// is at most its capacity, each at least that hub's level.
// While both hold, its link cannot bind, so a change of a hub's level concerns only the workers
// whose allowance it exceeds.
// The rest of a capacity is dealt out in advance, so that this is rare, and a worker keeps its
// allowance on a hub that it does not use for the next time it does; how it is dealt out changes no
// result.
// Units and whole levels: LinkLevel.
// Threads: none.
// Cost: O(hubs) to cover a worker, O(log workers) for each allowance that moves, O(1) else.
class LinkAllowances {
 public:
  LinkAllowances(size_t hubs, const std::vector<int64_t>& worker_capacities)
      : hubs_(hubs),
        allowance_(hubs * worker_capacities.size(), 0),
        unallotted_(worker_capacities),
        alarms_(hubs, IndexedHeap(unallotted_.size())) {}

  // True if each of the worker's allowances is at least the level of the hub, of those it uses.
  bool IsCovered(int32_t worker, std::span<const int32_t> used,
                 const std::vector<int64_t>& levels) const {
    for (const int32_t hub : used) {
      if (allowance_[Index(worker, hub)] < levels[static_cast<size_t>(hub)]) return false;
    }
    return true;
  }

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

  // The worker's link binds.
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
    for (size_t hub = 0; hub < hubs_; ++hub) Release(worker, static_cast<int32_t>(hub));
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

// The levels of max-min fair sharing between workers' links and hubs', kept up to date flow by
// flow.
//
// The levels are those of progressive filling (PathNetwork says which). They are unique: a
// hub's depends only on workers of a lower level, a worker's only on hubs of a lower or the
// same level, so two fillings that agree on all links have to agree from the lowest on. Update
// therefore looks again at the links whose flows have changed, and then only at those that a change
// of a level concerns, until none is left. By the same reasoning this ends: once the lowest links
// are right they stay, and the next lowest is right when it has been looked at twice.
//
// Most workers hold nothing back. Hubs only count these, and LinkAllowances tells which of them
// a risen level concerns; the others are bound and listed at each hub they use. Cost of a flow
// that joins or leaves: O(hubs of its worker + log workers), and for each hub whose level
// changes the number of bound workers that use it. Threads: none.
class MaxMinLevels {
 public:
  struct BoundWorker {
    int32_t worker = 0;
    int64_t level = 0;
  };

  // One capacity a worker, in units of 1/kUnit of a hub's link, at least 1.
  MaxMinLevels(int32_t hubs, std::vector<int64_t> worker_capacities);

  // The worker begins or ends to use the hub.
  void Join(int32_t worker, int32_t hub);
  void Leave(int32_t worker, int32_t hub);

  // Brings all levels up to date.
  void Update();

  // REQUIRES for all that follow: up to date.
  const LinkLevel& HubLevel(int32_t hub) const { return hubs_[Index(hub)].level; }
  // Units that each flow held by the worker's link gets; kUnbounded where it holds none.
  int64_t WorkerLevel(int32_t worker) const { return workers_[Index(worker)].level; }
  bool IsHeld(int32_t worker, int32_t hub) const {
    return WorkerLevel(worker) < whole_[Index(hub)];
  }
  std::span<const int32_t> HubsOf(int32_t worker) const {
    return {&used_[Slot(worker, 0)], Index(workers_[Index(worker)].used)};
  }
  const std::vector<BoundWorker>& BoundOn(int32_t hub) const { return hubs_[Index(hub)].bound; }

  // Links whose level the last Update has touched; it may have returned to what it was.
  const std::vector<int32_t>& changed_hubs() const { return changed_hubs_; }
  const std::vector<int32_t>& changed_workers() const { return changed_workers_; }
  // Links and bound flows that the last Update looked at.
  int64_t cost() const { return cost_; }

 private:
  struct Hub {
    LinkLevel level{.residual = LinkLevel::kUnit, .flows = 0};
    std::vector<BoundWorker> bound;  // in no promised order
    int64_t bound_levels = 0;        // their sum
    int64_t unbound = 0;             // number of the other workers that use it
    bool is_dirty = false;
    bool is_changed = false;
  };
  struct Worker {
    int64_t capacity = 0;
    int64_t level = LinkLevel::kUnbounded;
    int32_t used = 0;
    bool is_dirty = false;
    bool is_changed = false;
  };

  size_t Slot(int32_t worker, int32_t hub) const {
    return Index(worker) * hubs_.size() + Index(hub);
  }

  bool Uses(int32_t worker, int32_t hub) const {
    const int32_t position = used_position_[Slot(worker, hub)];
    return position < workers_[Index(worker)].used && used_[Slot(worker, position)] == hub;
  }
  void MarkHub(int32_t hub);
  void MarkWorker(int32_t worker);
  LinkLevel FillHub(const Hub& hub);
  bool HasEnough(int32_t worker) const;
  int64_t FillWorker(int32_t worker);
  void UpdateHub(int32_t hub);
  void UpdateWorker(int32_t worker);
  void AddBound(int32_t worker, int32_t hub, int64_t level);
  void RemoveBound(int32_t worker, int32_t hub);
  // At one hub that the worker uses, its level is no longer `from`.
  void MoveWorker(int32_t worker, int32_t hub, int64_t from, int64_t to);

  std::vector<Hub> hubs_;
  std::vector<Worker> workers_;
  std::vector<int64_t> whole_;           // by hub: its level, rounded down
  std::vector<int32_t> used_;            // by worker: the hubs it uses, in no promised order
  std::vector<int32_t> used_position_;   // by slot
  std::vector<int32_t> bound_position_;  // by slot
  LinkAllowances allowances_;
  std::vector<int32_t> dirty_hubs_;
  std::vector<int32_t> dirty_workers_;
  std::vector<int32_t> round_;  // of Update, to keep its memory
  std::vector<int32_t> changed_hubs_;
  std::vector<int32_t> changed_workers_;
  int64_t cost_ = 0;
};

}  // namespace stepcast
