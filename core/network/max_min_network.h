// The links of one direction between workers and several servers, shared max-min fairly.
//
// A flow crosses its server's link and its worker's; rates come from progressive filling over both (simulation by ICPE 2020, section 5, whose rule
// for two servers is the same but where one worker alone uses both). This is the plain form: every change of the set of active flows fills all links
// anew.
//
// Numbers: capacities and residuals are integers in units of 1/kUnit of a server's link, so sums do not depend on their order. The rate of a link's
// flows is the exact fraction residual / (flows * kUnit), what is taken from other links is that rounded down to a unit. A flow is anchored anew only
// at the end of an instant that changed its own rate, by remaining -= floor(elapsed * rate), and ends at the first tick at which all its work is
// done. Where no worker's link binds, rates are 1/n and all ends are those of EqualShareLink, to the tick. Usage and threads: as EqualShareLink. Flow
// f is worker f / servers to server f % servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/indexed_heap.h"
#include "core/base/time.h"

namespace stepcast {

class MaxMinNetwork {
 public:
  using Flow = int32_t;

  // (lcm of 1..16)^2: what two fillings in a row divide by up to 16 comes out even.
  static constexpr int64_t kUnit = int64_t{720720} * 720720;

  // One capacity a worker, in units of 1/kUnit of a server's link, at least 1.
  MaxMinNetwork(int32_t servers, std::vector<int64_t> worker_capacities);

  // As EqualShareLink.
  void TakeEnded(Instant now, std::vector<Flow>& ended);
  void Start(Flow flow, Span work);
  Instant Settle(Instant now);
  int64_t settle_cost() const { return settle_cost_; }
  int64_t CarriedBy(Instant now, int32_t server) const;

 private:
  // A share of a server's link, in lowest terms.
  struct Rate {
    int64_t numerator = 0;
    int64_t denominator = 1;
    friend bool operator==(Rate, Rate) = default;
  };
  struct FlowState {
    int64_t remaining = 0;  // at anchor, in ticks of a whole server link
    Instant anchor;
    Rate rate;
    bool active = false;
  };
  struct Link {
    int64_t residual = 0;
    int64_t flows = 0;  // not given a rate yet
  };

  size_t ServerLink(Flow flow) const { return static_cast<size_t>(flow % servers_); }
  size_t WorkerLink(Flow flow) const { return static_cast<size_t>(servers_) + static_cast<size_t>(flow / servers_); }
  static int64_t RemainingAt(const FlowState& state, Instant now);
  static Instant EndOf(const FlowState& state);

  // Progressive filling over all active flows; fills filled_.
  void Fill();
  void FreezeFlowsOfTightestLinks();
  void ApplyRates(Instant now);

  const int32_t servers_;
  const std::vector<int64_t> worker_capacities_;
  std::vector<FlowState> flows_;
  IndexedHeap ends_;              // active flows by end
  std::vector<Flow> active_;      // ascending
  std::vector<Flow> waiting_;     // of Fill: without a rate so far
  std::vector<Link> links_;       // of Fill: the servers', then the workers'
  std::vector<Rate> filled_;      // of Fill: by flow
  std::vector<int64_t> carried_;  // by server: work of all flows started
  int64_t settle_cost_ = 0;
  bool changed_ = false;
};

}  // namespace stepcast
