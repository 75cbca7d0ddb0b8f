// The concept of a network, as the engine uses it: the links of one direction, and the flows on
// them.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace stepcast {

// A network of flows, numbered from 0: flow f is lane f % lanes of worker f / lanes, where all
// workers have as many lanes, and carries one chunk at a time.
//
// Within an instant any number of TakeEnded and Start, then one Settle, which closes it.
// Threads: none.
//   TakeEnded(now, ended)  appends every flow that ends now. REQUIRES: now is what Settle returned.
//   Start(flow, work)      the flow is active from the instant that Settle closes.
//                          REQUIRES: work is above 0, the flow is not active.
//   Settle(now)            closes the instant; returns when the next flow ends, kEndOfTime: none.
//   settle_cost()          links and flows that the last Settle looked at.
//   CarriedBy(now, lane)   work carried until now for all workers' lanes of that index, in ticks.
//                          REQUIRES: the instant is settled.
template <typename N>
concept Network = requires(N network, const N settled, Instant now, std::vector<int32_t>& ended,
                           int32_t flow, Span work) {
  network.TakeEnded(now, ended);
  network.Start(flow, work);
  { network.Settle(now) } -> std::same_as<Instant>;
  { settled.settle_cost() } -> std::same_as<int64_t>;
  { settled.CarriedBy(now, flow) } -> std::same_as<int64_t>;
};

// A link that remembers how its flows, a worker each, were served, so that many chunks may be sent
// as one flow.
//
//   Settle, settle_cost     as above, but that Settle may return an instant at which nothing ends.
//   Start(flow, work)       as above; or, where others depend on its chunks:
//   Start(flow)             the same; returns the list that its chunks are to be added to before
//                           Settle.
//   Read(flow).After(work)  the instant at which the flow had carried so much more than at the last
//                           call of the same reader. REQUIRES: it has; nothing is settled between
//                           the two; the flow has not started anew since; a chunk ends there.
//   CatchUp(now)            call before CarriedOf(flow, now) and CarriedBy(now) at an instant that
//                           was not settled. REQUIRES: no flow ends before.
//   CarriedOf(flow, now)    the work that an active flow has carried. REQUIRES: IsActive(flow).
template <typename L>
concept RememberingLink = requires(L link, const L settled, Instant now,
                                   std::vector<int32_t>& ended, int32_t flow, Span work) {
  link.TakeEnded(now, ended);
  requires requires { link.Start(flow, work); } || requires {
    link.Start(flow).Add(work);
  };
  { link.Settle(now) } -> std::same_as<Instant>;
  link.CatchUp(now);
  { settled.settle_cost() } -> std::same_as<int64_t>;
  { settled.IsActive(flow) } -> std::same_as<bool>;
  { settled.CarriedBy(now) } -> std::same_as<int64_t>;
  { settled.CarriedOf(flow, now) } -> std::same_as<Span>;
  { settled.Read(flow).After(work) } -> std::same_as<Instant>;
};

}  // namespace stepcast
