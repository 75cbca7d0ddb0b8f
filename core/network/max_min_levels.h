// The levels of max-min fair sharing between workers' links and servers', kept up to date flow by
// flow.
//
// The levels are those of progressive filling (FullRefillNetwork says which). They are unique: a
// server's depends only on workers of a lower level, a worker's only on servers of a lower or the
// same level, so two fillings that agree on all links have to agree from the lowest on. Update
// therefore looks again at the links whose flows have changed, and then only at those that a change
// of a level concerns, until none is left. By the same reasoning this ends: once the lowest links
// are right they stay, and the next lowest is right when it has been looked at twice.
//
// Most workers hold nothing back. Servers only count these, and LinkAllowances tells which of them
// a risen level concerns; the others are bound and listed at each server they use. Cost of a flow
// that joins or leaves: O(servers of its worker + log workers), and for each server whose level
// changes the number of bound workers that use it. Threads: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/network/link_allowances.h"
#include "core/network/link_level.h"

namespace stepcast {

class MaxMinLevels {
 public:
  struct BoundWorker {
    int32_t worker = 0;
    int64_t level = 0;
  };

  // One capacity a worker, in units of 1/kUnit of a server's link, at least 1.
  MaxMinLevels(int32_t servers, std::vector<int64_t> worker_capacities);

  // The worker begins or ends to use the server.
  void Join(int32_t worker, int32_t server);
  void Leave(int32_t worker, int32_t server);

  // Brings all levels up to date.
  void Update();

  // REQUIRES for all that follow: up to date.
  const LinkLevel& ServerLevel(int32_t server) const { return servers_[Index(server)].level; }
  // Units that each flow held by the worker's link gets; kUnbounded where it holds none.
  int64_t WorkerLevel(int32_t worker) const { return workers_[Index(worker)].level; }
  bool IsHeld(int32_t worker, int32_t server) const {
    return WorkerLevel(worker) < whole_[Index(server)];
  }
  std::span<const int32_t> ServersOf(int32_t worker) const {
    return {&used_[Slot(worker, 0)], Index(workers_[Index(worker)].used)};
  }
  const std::vector<BoundWorker>& BoundOn(int32_t server) const {
    return servers_[Index(server)].bound;
  }

  // Links whose level the last Update has touched; it may have returned to what it was.
  const std::vector<int32_t>& changed_servers() const { return changed_servers_; }
  const std::vector<int32_t>& changed_workers() const { return changed_workers_; }
  // Links and bound flows that the last Update looked at.
  int64_t cost() const { return cost_; }

 private:
  struct Server {
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

  static size_t Index(int32_t i) { return static_cast<size_t>(i); }
  size_t Slot(int32_t worker, int32_t server) const {
    return Index(worker) * servers_.size() + Index(server);
  }

  void MarkServer(int32_t server);
  void MarkWorker(int32_t worker);
  LinkLevel FillServer(const Server& server);
  int64_t FillWorker(int32_t worker);
  void UpdateServer(int32_t server);
  void UpdateWorker(int32_t worker);
  void AddBound(int32_t worker, int32_t server, int64_t level);
  void RemoveBound(int32_t worker, int32_t server);
  // At one server that the worker uses, its level is no longer `from`.
  void MoveWorker(int32_t worker, int32_t server, int64_t from, int64_t to);

  std::vector<Server> servers_;
  std::vector<Worker> workers_;
  std::vector<int64_t> whole_;           // by server: its level, rounded down
  std::vector<int32_t> used_;            // by worker: the servers it uses, in no promised order
  std::vector<int32_t> used_position_;   // by slot
  std::vector<int32_t> bound_position_;  // by slot
  LinkAllowances allowances_;
  std::vector<int32_t> dirty_servers_;
  std::vector<int32_t> dirty_workers_;
  std::vector<int32_t> round_;  // of Update, to keep its memory
  std::vector<int32_t> changed_servers_;
  std::vector<int32_t> changed_workers_;
  int64_t cost_ = 0;
};

}  // namespace stepcast
