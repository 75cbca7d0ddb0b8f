// The links of one direction between workers and several hubs, each of which serves one worker at a
// time, in turns of so much work: what one link has carried waits at the next, and holds up nobody
// on the first.
//
// A flow crosses its hub's link and its worker's own, outbound the worker's first; a worker's link
// that carries all that the hubs can send is not crossed. A link sends a turn in one piece, or up
// to the end of a chunk, and the next link has it when all of it has passed. So a flow may start
// its next chunk when the first link has passed the one before (TakeEnded), while that is still on
// its way (TakeDelivered). Links take turns as TurnsLink does: a flow that was idle goes first
// there, in the order of arrival, those of one instant ascending. At the second link a flow
// counts as idle only if nothing of it was on its way when it started: gaps between the pieces of a
// flow are none. Once as many newcomers as that link has flows have passed those that wait behind
// them, one of these goes: no flow is starved by others that are idle for an instant only, over and
// over, as fq_codel's lists ensure, too. A flow of which the second link has nothing left loses the
// rest of its turn, and goes behind all others when its next piece comes, before a flow whose turn
// ends at that instant.
//
// Queues are as long as they need to be: real ones are some megabytes, beyond which the sender is
// held back (tests/testbed, Turns). Usage, flows and threads: as Network; a chunk is
// known by its place, each flow's are delivered in their order. Cost: O(log links) a piece on each
// link it crosses. Memory: some numbers a flow.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "core/base/indexed_heap.h"
#include "core/base/time.h"

namespace stepcast {

class TurnsNetwork {
 public:
  using Flow = int32_t;

  struct Options {
    int32_t hubs = 1;
    Span turn;                  // above 0
    bool from_workers = false;  // outbound
  };

  // One capacity a worker, in units of 1/LinkLevel::kUnit of a hub's link, at least 1.
  TurnsNetwork(Options options, std::vector<int64_t> worker_capacities);

  // Appends every flow whose chunk has left its first link, and every flow of which a chunk has
  // arrived; call in this order. REQUIRES: now is what Settle returned last.
  void TakeEnded(Instant now, std::vector<Flow>& ended);
  void TakeDelivered(Instant now, std::vector<Flow>& delivered);
  void Start(Flow flow, Span work);
  // Returns when the next piece has passed a link, which may end no chunk.
  Instant Settle(Instant now);

  // Links that the last Settle gave a piece to.
  int64_t settle_cost() const { return settle_cost_; }
  // By the hub's link.
  int64_t CarriedBy(Instant now, int32_t hub) const;

 private:
  static constexpr Flow kNone = -1;
  using LinkIndex = int32_t;

  struct Link {
    int64_t capacity = 0;
    std::deque<Flow> newcomers;
    std::deque<Flow> others;  // behind them, who is next first
    int32_t passing = 0;      // newcomers in a row that went while others waited
    int32_t most_passing = std::numeric_limits<int32_t>::max();  // of them
    Flow serving = kNone;
    int64_t turn_left = 0;  // of the flow that is served, without the piece under way
    int64_t piece = 0;      // work under way, 0: none
    Instant begin;          // of it
    int64_t carried = 0;    // by pieces that have ended
    bool is_touched = false;
  };
  struct FlowState {
    LinkIndex first = 0;
    LinkIndex second = kNone;
    int64_t left = 0;            // of the chunk, at the first link
    int64_t passed = 0;          // by the first link, of all chunks
    int64_t arrived = 0;         // by the second
    std::deque<int64_t> chunks;  // `passed` at the end of each that has left the first link only
    bool is_new = false;         // to the second link
    bool is_lined_up = false;    // there
  };

  void EndPiece(LinkIndex link, std::vector<Flow>& ended);
  void Touch(LinkIndex link);
  void JoinSecond(Flow flow);
  // Work that the link has of the flow, up to the end of a chunk.
  int64_t LeftAt(LinkIndex link, Flow flow) const;
  // The line whose first flow has the link's next turn.
  std::deque<Flow>& NextLine(LinkIndex link);
  void Serve(LinkIndex link, Instant now);

  const Options options_;
  std::vector<Link> links_;  // of hubs, then of workers
  std::vector<FlowState> flows_;
  IndexedHeap ends_;  // links by the end of their piece
  std::vector<Flow> delivered_;
  std::vector<Flow> starting_;  // at this instant, without those that go on with a turn
  std::vector<Flow> arriving_;  // at this instant, at a second link
  std::vector<LinkIndex> touched_;
  std::vector<int32_t> ending_;  // of TakeEnded; a member only to keep its memory
  int64_t settle_cost_ = 0;
};

}  // namespace stepcast
