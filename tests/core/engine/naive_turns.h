// Links of one direction between workers and servers that are served in turns, without rounding and
// with everything looked at at every event: what TurnsNetwork is held against, from its definition.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tests/core/network/exact.h"

namespace stepcast::testing {

class NaiveTurns {
 public:
  using Flow = std::pair<size_t, int>;  // worker, server

  struct Rules {
    int servers = 1;
    Exact server_rate;  // bytes per nanosecond
    std::vector<Exact> worker_rates;
    Exact turn_bytes;
    bool from_workers = false;  // workers' links come first
  };
  explicit NaiveTurns(Rules rules) : rules_(std::move(rules)) {}

  void Start(const Flow& flow, const Exact& bytes);
  // Ends the instant.
  void GiveTurns();
  // The time until the next piece has passed a link.
  std::optional<Exact> NextSpan() const;
  void Advance(const Exact& span);
  // What the last Advance has brought: chunks that left their first link, and that arrived.
  std::vector<Flow> TakeHandedOver() { return std::exchange(handed_over_, {}); }
  std::vector<Flow> TakeDelivered() { return std::exchange(delivered_, {}); }

  int turns_ended() const { return turns_ended_; }
  int newcomers_first() const { return newcomers_first_; }
  int waits_at_second() const { return waits_at_second_; }

 private:
  // A server's link, or with `own` a worker's.
  struct Which {
    bool own = false;
    size_t index = 0;
    friend auto operator<=>(const Which&, const Which&) = default;  // NOLINT(modernize-use-nullptr)
  };
  struct Piece {
    Exact bytes;
    bool ends_chunk = false;
  };
  struct Link {
    std::list<Flow> newcomers;
    std::list<Flow> others;
    size_t passing = 0;  // newcomers that went one after the other while others waited
    std::optional<Flow> serving;
    Exact turn_left;
    std::optional<Exact> under_way;  // bytes that have not passed
    Exact size;                      // of that piece
  };

  std::vector<Which> PathOf(const Flow& flow) const;
  bool IsSecond(const Which& which, const Flow& flow) const {
    return PathOf(flow).front() != which;
  }
  bool IsSecondOfSome(const Which& which) const {
    for (size_t worker = 0; worker < rules_.worker_rates.size(); ++worker) {
      for (int server = 0; server < rules_.servers; ++server) {
        const std::vector<Which> path = PathOf({worker, server});
        if (path.size() > 1 && path.back() == which) return true;
      }
    }
    return false;
  }
  Exact RateOf(const Which& which) const {
    return which.own ? rules_.worker_rates[which.index] : rules_.server_rate;
  }
  bool HasWork(const Which& which, const Flow& flow) const;
  void Pass(const Which& which, Link& link);
  void GiveTurn(const Which& which, Link& link);

  const Rules rules_;
  std::map<Which, Link> links_;
  std::map<Flow, Exact> chunk_left_;            // at the first link
  std::map<Flow, std::list<Piece>> at_second_;  // what waits there or is under way
  std::set<Flow> new_to_second_;
  std::set<Flow> starting_;  // at this instant
  std::set<Flow> arriving_;  // at a second link at this instant
  std::vector<Flow> handed_over_;
  std::vector<Flow> delivered_;
  int turns_ended_ = 0;
  int newcomers_first_ = 0;
  int waits_at_second_ = 0;
};

}  // namespace stepcast::testing
