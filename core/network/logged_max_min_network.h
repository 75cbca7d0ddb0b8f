// Links shared max-min fairly that remember when their flows' chunks ended, so that a worker may
// send many chunks as one flow and be told afterwards.
//
// Inside, each chunk is a flow of MaxMinNetwork, begun at the instant at which the one before has
// ended: where levels are fractions of a link every chunk is rounded, so chunks cannot be summed
// up. What is saved is all that an engine does with a chunk. Threads: none. Cost: of MaxMinNetwork.
// Memory: that and ChunkLog, by worker and hub.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/time.h"
#include "core/network/chunk_log.h"
#include "core/network/max_min_network.h"

namespace stepcast {

class LoggedMaxMinNetwork {
 public:
  // One capacity a worker, as MaxMinNetwork.
  LoggedMaxMinNetwork(int32_t hubs, const std::vector<int64_t>& worker_capacities)
      : hubs_(hubs),
        network_(hubs, worker_capacities),
        logs_(worker_capacities.size() * Index(hubs)),
        is_active_(logs_.size()),
        ended_(Index(hubs)) {}

  // The link of one of the hubs, a RememberingLink of what its network knows: one that is copied is
  // of the same network. Of an instant, all links' TakeEnded and Start come before any Settle,
  // which settles and gives the next instant of the whole network.
  class Link {
   public:
    using Flow = int32_t;
    // A call that settles one link settles all.
    static constexpr bool kSharesNetwork = true;

    explicit Link(std::shared_ptr<LoggedMaxMinNetwork> network) : network_(std::move(network)) {}
    void SetHub(int32_t hub) { hub_ = hub; }

    void TakeEnded(Instant now, std::vector<Flow>& ended) {
      network_->TakeEnded(now);
      std::vector<Flow>& own = network_->ended_[Index(hub_)];
      ended.insert(ended.end(), own.begin(), own.end());
      own.clear();
    }
    ChunkLog& Start(Flow worker) { return network_->Start(FlowOf(worker)); }
    Instant Settle(Instant now) { return network_->Settle(now); }
    // Chunks that the last Settle or RunChunks looked at.
    int64_t settle_cost() const { return network_->cost_; }
    // Goes on from chunk to chunk while no flow ends, at instants before `limit`; returns the next
    // instant at which one does, or which is not before it, or comes after very many chunks.
    // REQUIRES: the last instant is settled; nothing starts before `limit`.
    Instant RunChunks(Instant limit) { return network_->RunChunks(limit); }
    void CatchUp(Instant /*now*/) const {}  // every chunk's end is an instant
    bool IsActive(Flow worker) const { return network_->is_active_[Index(FlowOf(worker))] != 0; }
    int64_t CarriedBy(Instant now) const { return network_->network_.CarriedBy(now, hub_); }
    // Work of whole chunks.
    Span CarriedOf(Flow worker, Instant /*now*/) const {
      return network_->logs_[Index(FlowOf(worker))].WorkOfServed();
    }
    ChunkLog::Reader Read(Flow worker) const {
      return network_->logs_[Index(FlowOf(worker))].Read();
    }

   private:
    int32_t FlowOf(Flow worker) const { return worker * network_->hubs_ + hub_; }

    std::shared_ptr<LoggedMaxMinNetwork> network_;
    int32_t hub_ = 0;
  };

 private:
  // Chunks that end without anybody looking: a fraction of a millisecond.
  static constexpr int64_t kMostAtOnce = 4096;

  // Takes chunks that end now: they are followed by the next ones, flows listed at their hubs.
  void TakeEnded(Instant now) {
    if (next_ != now || is_taken_) return;
    is_taken_ = true;
    has_ended_ = false;
    ending_.clear();
    network_.TakeEnded(now, ending_);
    for (const int32_t flow : ending_) {
      ChunkLog& log = logs_[Index(flow)];
      log.AddEnd(now);
      if (log.left() > 0) {
        network_.Start(flow, {log.WorkOfNext(1)});
      } else {
        has_ended_ = true;
        is_active_[Index(flow)] = 0;
        ended_[Index(flow % hubs_)].push_back(flow / hubs_);
      }
    }
  }

  ChunkLog& Start(int32_t flow) {
    starting_.push_back(flow);
    logs_[Index(flow)].Clear();
    is_active_[Index(flow)] = 1;
    return logs_[Index(flow)];
  }

  Instant Settle(Instant now) {
    for (const int32_t flow : starting_) network_.Start(flow, {logs_[Index(flow)].WorkOfNext(1)});
    starting_.clear();
    next_ = network_.Settle(now);
    is_taken_ = false;
    cost_ = network_.settle_cost();
    return next_;
  }

  Instant RunChunks(Instant limit) {
    cost_ = 0;
    while (!is_taken_ && next_ < limit && cost_ < kMostAtOnce) {
      const Instant now = next_;
      TakeEnded(now);
      if (has_ended_) return now;
      next_ = network_.Settle(now);
      is_taken_ = false;
      cost_ += network_.settle_cost();
    }
    return next_;
  }

  const int32_t hubs_;
  MaxMinNetwork network_;
  std::vector<ChunkLog> logs_;  // by flow of MaxMinNetwork
  std::vector<uint8_t> is_active_;
  std::vector<std::vector<int32_t>> ended_;  // at this instant and not taken yet, by hub
  std::vector<int32_t> starting_;            // at this instant
  std::vector<int32_t> ending_;              // of TakeEnded; a member only to keep its memory
  Instant next_ = kEndOfTime;
  bool is_taken_ = false;   // what ends then
  bool has_ended_ = false;  // a flow, by then
  int64_t cost_ = 0;
};

}  // namespace stepcast
