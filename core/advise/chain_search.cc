// The best grouping of a chain, by dynamic programming.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/advise/step_chain.h"
#include "core/base/index.h"

namespace stepcast {

namespace {

constexpr double kNoneSaved = -std::numeric_limits<double>::infinity();
// Below a tick, savings are equal.
constexpr double kHardlyMore = 1e-12;
// The most ways that are kept: beyond, the search is no longer exact.
constexpr size_t kMaxFront = 256;

}  // namespace

// Fronts of ways to have grouped the first gradients and computations; each goes on from those
// before it.
class StepChain::BestSearch {
 public:
  BestSearch(const StepChain& chain, const ChainGrouping& finest, StopCheck stop)
      : chain_(chain),
        finest_(finest),
        size_(static_cast<int32_t>(chain.gradients_.size())),
        pace_(stop),
        fronts_(Index(size_) + 1) {
    SumFinest();
  }

  // REQUIRES: there are gradients.
  absl::StatusOr<ChainGrouping> Run() && {
    fronts_[0][0].push_back({});
    for (int32_t until = 1; until <= size_; ++until) {
      if (!finest_.gradient_ends[Index(until - 1)]) continue;
      std::map<int32_t, std::vector<Way>> reached;
      for (int32_t from = 0; from < until; ++from) {
        if (fronts_[Index(from)].empty()) continue;
        if (absl::Status status = GoOn(from, until, reached); !status.ok()) return status;
      }
      KeepBest(until, reached);
    }
    return GroupingOfBest();
  }

 private:
  // A way to have grouped the gradients so far, and the computations up to some.
  struct Way {
    double saved = 0;
    double end = 0;
    // The begin of its last group, and the way to have come there.
    int32_t from = 0;
    int32_t from_computation = 0;
    size_t previous = 0;
    bool fuses = false;  // the computations of its last group
  };

  void SumFinest() {
    const auto computations = static_cast<int32_t>(chain_.computations_.size());
    finest_saved_.assign(Index(computations) + 1, 0);
    double saved = 0;
    for (int32_t first = 0, i = 0; i < computations; ++i) {
      if (finest_.computation_ends[Index(i)]) {
        saved += chain_.SumOf(first, i + 1) - chain_.SecondsOf(first, i + 1).value_or(0);
        first = i + 1;
      }
      finest_saved_[Index(i) + 1] = saved;
    }
  }

  // The computations that so many gradients wait for.
  int32_t Past(int32_t gradients) const {
    return gradients == 0 ? 0 : chain_.gradients_[Index(gradients - 1)].after + 1;
  }
  bool EndsGroup(int32_t computations) const {
    return computations == 0 || finest_.computation_ends[Index(computations - 1)] != 0;
  }

  // Adds the ways that end with one group of the gradients `from` up to `until`. Computations that
  // nothing waits for may go with what is before them.
  absl::Status GoOn(int32_t from, int32_t until, std::map<int32_t, std::vector<Way>>& reached) {
    const int32_t least = Past(until);
    const int32_t most = until < size_ ? std::max(least, chain_.gradients_[Index(until)].after)
                                       : chain_.last_producer_ + 1;
    const SyncTimes::Range range = chain_.RangeOf(from, until);
    SyncTimes& sync = chain_.sync_;
    const double seconds = finest_.cuts ? sync.BestOf(range).seconds : sync.SecondsOf(range);
    if (!sync.status().ok()) return sync.status();
    for (const auto& [first, ways] : fronts_[Index(from)]) {
      if (!pace_.GoesOn(64)) return pace_.status();
      if (first > least) continue;
      for (int32_t last = least; last <= most; ++last)
        AddWays({.from = from, .until = until, .first = first, .last = last, .least = least}, ways,
                seconds, reached);
    }
    return absl::OkStatus();
  }

  // A group of gradients `from` up to `until`, of which computations `first` up to `last` are new.
  struct Group {
    int32_t from = 0;
    int32_t until = 0;
    int32_t first = 0;
    int32_t last = 0;
    int32_t least = 0;  // of `last`
  };
  void AddWays(const Group& group, const std::vector<Way>& ways, double seconds,
               std::map<int32_t, std::vector<Way>>& reached) const {
    const auto [from, until, first, last, least] = group;
    const double own = finest_saved_[Index(last)] - finest_saved_[Index(first)];
    std::optional<double> fused;
    if (last - first > 1 && EndsGroup(first) && EndsGroup(last))
      fused = chain_.SecondsOf(first, last);
    const double together = chain_.SumOf(first, last) - fused.value_or(0);
    const bool fuses = fused.has_value() && together > own + kHardlyMore;
    for (size_t s = 0; s < ways.size(); ++s) {
      for (const bool as_one : {false, true}) {
        if (as_one ? !fuses : last != least) continue;
        const double saved = ways[s].saved + (as_one ? together : own);
        const double ready = last > 0 ? chain_.ends_[Index(last - 1)] - saved
                                      : chain_.gradients_[Index(until - 1)].ready_seconds;
        reached[last].push_back({.saved = saved,
                                 .end = std::max(ready, ways[s].end) + seconds,
                                 .from = from,
                                 .from_computation = first,
                                 .previous = s,
                                 .fuses = as_one});
      }
    }
  }

  // Keeps the ways that no other one is as good as in both, time saved and end.
  void KeepBest(int32_t until, std::map<int32_t, std::vector<Way>>& reached) {
    for (auto& [last, ways] : reached) {
      std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
        return a.end != b.end ? a.end < b.end : a.saved > b.saved;
      });
      double saved = kNoneSaved;
      std::vector<Way>& front = fronts_[Index(until)][last];
      for (const Way& way : ways) {
        if (way.saved <= saved + kHardlyMore) continue;
        saved = way.saved;
        if (front.size() < kMaxFront) front.push_back(way);
      }
    }
  }

  ChainGrouping GroupingOfBest() const {
    int32_t last = chain_.last_producer_ + 1;
    const double computed = last > 0 ? chain_.ends_[Index(last - 1)] : 0;
    const std::vector<Way>& ways = fronts_[Index(size_)].at(last);
    size_t best = 0;
    const auto makespan = [&](const Way& way) { return std::max(computed - way.saved, way.end); };
    for (size_t s = 1; s < ways.size(); ++s) {
      if (makespan(ways[s]) < makespan(ways[best])) best = s;
    }
    ChainGrouping grouping = finest_;
    std::fill(grouping.gradient_ends.begin(), grouping.gradient_ends.end(), 0);
    for (int32_t until = size_; until > 0;) {
      const Way& way = fronts_[Index(until)].at(last)[best];
      grouping.gradient_ends[Index(until - 1)] = 1;
      if (way.fuses) {
        for (int32_t i = way.from_computation; i + 1 < last; ++i)
          grouping.computation_ends[Index(i)] = 0;
      }
      best = way.previous;
      last = way.from_computation;
      until = way.from;
    }
    return grouping;
  }

  const StepChain& chain_;
  const ChainGrouping& finest_;
  const int32_t size_;
  PacedStopCheck pace_;
  // Seconds that the groups of `finest` save, summed up to each computation.
  std::vector<double> finest_saved_;
  // By gradients, and computations, so far.
  std::vector<std::map<int32_t, std::vector<Way>>> fronts_;
};

absl::StatusOr<ChainGrouping> StepChain::Best(const ChainGrouping& finest, StopCheck stop) const {
  if (gradients_.empty()) return finest;
  return BestSearch(*this, finest, stop).Run();
}

}  // namespace stepcast
