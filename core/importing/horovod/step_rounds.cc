#include "core/importing/horovod/step_rounds.h"

#include <algorithm>
#include <tuple>

namespace stepcast {

namespace {

// A way to divide the turns up to one of them.
struct Division {
  int64_t whole = 0;
  size_t first = 0;     // turns before the first whole round
  double spans_ns = 0;  // summed over the whole rounds
  bool ends_in_whole = false;

  bool IsBetterThan(const Division& other) const {
    return std::tuple(-whole, first, spans_ns) <
           std::tuple(-other.whole, other.first, other.spans_ns);
  }
};

// By the number of turns before, the best division of them.
std::vector<Division> BestDivisions(const std::vector<TensorTurn>& turns, size_t tensors) {
  std::vector<Division> best(turns.size() + 1);
  std::vector<size_t> next(tensors, 0);  // behind the last turn of each
  size_t begin = 0;                      // of the longest run in which none is twice
  for (size_t end = 1; end <= turns.size(); ++end) {
    size_t& after = next[turns[end - 1].tensor];
    begin = std::max(begin, after);
    after = end;
    best[end] = best[end - 1];
    best[end].ends_in_whole = false;
    if (end - begin < tensors) continue;
    const size_t first = end - tensors;
    Division division = best[first];
    if (division.whole++ == 0) division.first = first;
    division.spans_ns +=
        static_cast<double>(turns[end - 1].ready_ns) - static_cast<double>(turns[first].ready_ns);
    division.ends_in_whole = true;
    if (!best[end].IsBetterThan(division)) best[end] = division;
  }
  return best;
}

}  // namespace

std::vector<StepRound> RoundsOf(const std::vector<TensorTurn>& turns, size_t tensors) {
  const std::vector<Division> best = BestDivisions(turns, tensors);
  std::vector<StepRound> whole;
  for (size_t end = turns.size(); end > 0;) {
    const size_t count = best[end].ends_in_whole ? tensors : 1;
    end -= count;
    if (best[end + count].ends_in_whole)
      whole.push_back({.first = end, .count = count, .is_whole = true});
  }
  std::reverse(whole.begin(), whole.end());
  whole.push_back({.first = turns.size()});
  std::vector<StepRound> rounds;
  std::vector<size_t> round_of(tensors, 0);  // the last with the tensor, from 1 on
  size_t at = 0;
  for (const StepRound& round : whole) {
    bool is_open = false;
    for (; at < round.first; ++at) {
      size_t& last = round_of[turns[at].tensor];
      if (!is_open || last == rounds.size()) rounds.push_back({.first = at});
      is_open = true;
      ++rounds.back().count;
      last = rounds.size();
    }
    if (round.is_whole) rounds.push_back(round);
    at += round.count;
  }
  return rounds;
}

}  // namespace stepcast
