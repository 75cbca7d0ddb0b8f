#include "core/orders/order_search.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/index.h"
#include "core/base/random.h"
#include "core/engine/simulation.h"
#include "core/orders/least_step.h"
#include "core/orders/list_schedule.h"
#include "core/orders/outstanding_downloads.h"
#include "core/orders/transfer_graph.h"
#include "core/orders/transfer_ranks.h"

namespace stepcast {

namespace {

constexpr uint64_t kSearchStream = 5;
// Moves that gain nothing before the walk begins anew, for each download.
constexpr int64_t kIdleMovesPerDownload = 60;
// Moves that lead away from the best order so far when the walk begins anew: at most so many.
constexpr uint64_t kMaxKicks = 6;
// Neighbours that move together: at most so many.
constexpr uint64_t kMaxTogether = 8;

int64_t Factorial(size_t n) { return n <= 1 ? 1 : static_cast<int64_t>(n) * Factorial(n - 1); }

class Search {
 public:
  Search(OrderJudge judge, const OrderSearchOptions& options, StopCheck stop)
      : judge_(judge), options_(options), stop_(stop), random_({options.seed, kSearchStream}) {}

  absl::StatusOr<FoundOrder> Run(const std::vector<std::vector<int32_t>>& starts) && {
    best_.order = starts.front();
    best_.makespan = judge_(best_.order, kNever);
    Check();
    for (size_t i = 1; i < starts.size() && GoesOn(); ++i) {
      const Span makespan = judge_(starts[i], Below(best_.makespan));
      Check();
      if (makespan < best_.makespan) best_ = {.order = starts[i], .makespan = makespan};
    }
    const size_t downloads = best_.order.size();
    if (GoesOn()) {
      if (downloads <= kMaxDownloadsToTryAll && Factorial(downloads) <= options_.evaluations_max) {
        TryAll();
      } else {
        Walk();
      }
    }
    if (!status_.ok() && !IsTimeBudgetSpent(status_)) return status_;
    best_.is_best = best_.is_best || best_.makespan == options_.lower_bound;
    return std::move(best_);
  }

 private:
  static Span Below(Span span) { return span - Span{1}; }
  bool GoesOn() const { return status_.ok() && best_.makespan > options_.lower_bound; }

  Span Judge(const std::vector<int32_t>& order, Span limit) {
    ++best_.evaluations;
    Check();
    return judge_(order, limit);
  }

  // Counts one order more, and asks now and then if the search has to stop.
  void Check() {
    unchecked_ += options_.cost_of_evaluation;
    if (unchecked_ < kStopCheckInterval) return;
    unchecked_ = 0;
    status_ = stop_();
  }

  void Take(const std::vector<int32_t>& order, Span makespan) {
    best_.order = order;
    best_.makespan = makespan;
  }

  void TryAll() {
    std::vector<int32_t> order = best_.order;
    std::sort(order.begin(), order.end());
    do {
      const Span makespan = Judge(order, Below(best_.makespan));
      if (makespan < best_.makespan) Take(order, makespan);
    } while (GoesOn() && std::next_permutation(order.begin(), order.end()));
    best_.is_best = status_.ok();
  }

  void Walk() {
    const auto downloads = static_cast<int64_t>(best_.order.size());
    std::vector<int32_t> current = best_.order;
    Span makespan = best_.makespan;
    int64_t idle = 0;
    std::vector<int32_t> next;
    while (GoesOn() && best_.evaluations < options_.evaluations_max) {
      next = current;
      Move(next);
      const Span judged = Judge(next, makespan);
      if (judged > makespan) {
        ++idle;
      } else {
        if (judged == makespan) ++idle;
        std::swap(current, next);
        makespan = judged;
        if (makespan < best_.makespan) {
          idle = 0;
          Take(current, makespan);
        }
      }
      if (idle < kIdleMovesPerDownload * downloads) continue;
      idle = 0;
      current = best_.order;
      for (uint64_t kicks = random_.Below(kMaxKicks) + 1; kicks > 0; --kicks) Move(current);
      makespan = Judge(current, kNever);
    }
  }

  // A download or a few neighbours to another place, or two downloads change places.
  void Move(std::vector<int32_t>& order) {
    const uint64_t size = order.size();
    const uint64_t kind = random_.Below(4);
    if (kind == 0) {
      std::swap(order[random_.Below(size)], order[random_.Below(size)]);
      return;
    }
    const uint64_t together = kind == 1 ? 1 + random_.Below(std::min(kMaxTogether, size - 1)) : 1;
    const uint64_t from = random_.Below(size - together + 1);
    const uint64_t to = random_.Below(size - together + 1);
    const auto at = [&](uint64_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
    if (from < to) std::rotate(at(from), at(from + together), at(to + together));
    if (to < from) std::rotate(at(to), at(from), at(from + together));
  }

  const OrderJudge judge_;
  const OrderSearchOptions& options_;
  const StopCheck stop_;
  Random random_;
  absl::Status status_;
  int64_t unchecked_ = 0;
  FoundOrder best_;
};

}  // namespace

absl::StatusOr<FoundOrder> SearchOrder(const std::vector<std::vector<int32_t>>& starts,
                                       OrderJudge judge, const OrderSearchOptions& options,
                                       StopCheck stop) {
  return Search(judge, options, stop).Run(starts);
}

namespace {

using Ranks = std::vector<int32_t>;

// The downloads, numbered from 0, as the ranks have them; equal ranks in graph order.
std::vector<int32_t> OrderOf(const std::vector<OpIndex>& downloads, const Ranks& ranks) {
  std::vector<int32_t> order(downloads.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  const auto rank_of = [&](int32_t download) { return ranks[Index(downloads[Index(download)])]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return rank_of(a) < rank_of(b); });
  return order;
}

Ranks RanksOf(const Program& graph, const std::vector<OpIndex>& downloads,
              const std::vector<int32_t>& order) {
  Ranks ranks(Index(graph.size()), Ranking::kUnranked);
  for (size_t place = 0; place < order.size(); ++place)
    ranks[Index(downloads[Index(order[place])])] = static_cast<int32_t>(place);
  return ranks;
}

// The graph of what is scheduled of the step, all downloads on the worker's own link.
TransferGraph ScheduledGraph(const LeastStep& step, const std::vector<OpIndex>& scheduled) {
  const Program& graph = step.graph();
  std::vector<int32_t> place(Index(graph.size()), -1);
  for (size_t i = 0; i < scheduled.size(); ++i)
    place[Index(scheduled[i])] = static_cast<int32_t>(i);
  std::vector<TransferGraph::Operation> operations;
  std::vector<TransferGraph::Dependency> dependencies;
  for (const OpIndex op : scheduled) {
    const Span time =
        graph.IsTransfer(op) ? step.OnWorkerLink(graph.work(op).Total()) : step.duration(op);
    operations.push_back({.kind = OrderingKindOf(graph, op), .time = time});
    for (const OpIndex after : graph.dependents(op)) {
      if (place[Index(after)] >= 0)
        dependencies.push_back({.before = place[Index(op)], .after = place[Index(after)]});
    }
  }
  return {std::move(operations), dependencies};
}

int64_t MostOrders(const ListSchedule& schedule, double time_budget_seconds) {
  const auto downloads = static_cast<int64_t>(schedule.downloads().size());
  constexpr int64_t kLeast = 50'000;  // all orders of kMaxDownloadsToTryAll are fewer
  int64_t operations = kMaxSearchedOperations;
  if (time_budget_seconds > 0) {
    operations = static_cast<int64_t>(std::min(static_cast<double>(operations),
                                               time_budget_seconds * kSearchedOperationsPerSecond));
  }
  return std::min(operations / schedule.cost(),
                  std::max(kLeast, kMaxOrdersPerPair * downloads * (downloads - 1) / 2));
}

}  // namespace

absl::StatusOr<Span> LeastMakespanOf(const LeastStep& step, StopCheck stop) {
  const absl::StatusOr<ListSchedule> schedule = ListSchedule::Make(step, stop);
  if (!schedule.ok()) return schedule.status();
  const TransferGraph graph = ScheduledGraph(step, schedule->scheduled());
  if (absl::Status status = stop(); !status.ok()) return status;
  const absl::StatusOr<Span> before_cut = LeastMakespan(graph, stop);
  if (!before_cut.ok()) return before_cut.status();
  return std::max(step.bounds().lower, *before_cut + schedule->after_cut());
}

absl::StatusOr<FoundRanks> SearchRanks(const Profile& profile, const Scenario& scenario,
                                       const LeastStep& step, const SearchTask& task,
                                       StopCheck stop, StopCheck search_stop) {
  absl::StatusOr<ListSchedule> made = ListSchedule::Make(step, stop);
  if (!made.ok()) return made.status();
  ListSchedule& schedule = *made;
  FoundRanks best;
  const absl::StatusOr<Span> unranked = step.Makespan({}, stop);
  if (!unranked.ok()) return unranked.status();
  best.makespan = *unranked;
  if (schedule.downloads().empty()) return FoundRanks{.makespan = *unranked, .is_best = true};

  std::vector<std::vector<int32_t>> starts;
  const auto add_start = [&](OrderMethod method) -> absl::Status {
    const absl::StatusOr<Ranks> ranks =
        DownloadRanks(method, profile, scenario, step.graph(), task.seed, stop);
    if (!ranks.ok()) return ranks.status();
    starts.push_back(OrderOf(schedule.downloads(), *ranks));
    if (absl::Status status = stop(); !status.ok()) return status;
    // Downloads of one rank go in order of arrival, which may be another than graph order where
    // they wait.
    const absl::StatusOr<Span> makespan = step.Makespan(*ranks, stop);
    if (!makespan.ok()) return makespan.status();
    if (*makespan < best.makespan) best = {.ranks = *ranks, .makespan = *makespan};
    return absl::OkStatus();
  };
  for (const OrderMethod method : {OrderMethod::kTac, OrderMethod::kTic, OrderMethod::kRecorded,
                                   OrderMethod::kReverse, OrderMethod::kGraph}) {
    if (absl::Status status = add_start(method); !status.ok()) return status;
  }
  for (int32_t i = 0; i < kRandomStarts; ++i) {
    const absl::StatusOr<Ranks> ranks = DownloadRanks(OrderMethod::kRandom, profile, scenario,
                                                      step.graph(), task.seed + Index(i), stop);
    if (!ranks.ok()) return ranks.status();
    starts.push_back(OrderOf(schedule.downloads(), *ranks));
    if (absl::Status status = stop(); !status.ok()) return status;
  }

  const auto judge = [&](std::span<const int32_t> order, Span limit) {
    return schedule.Makespan(order, limit);
  };
  const OrderSearchOptions options{
      .evaluations_max = MostOrders(schedule, task.time_budget_seconds),
      .cost_of_evaluation = schedule.cost(),
      .lower_bound = task.lower_bound,
      .seed = task.seed};
  const absl::StatusOr<FoundOrder> found = SearchOrder(starts, judge, options, search_stop);
  if (!found.ok()) return found.status();
  // The searched order is the answer also where both are as long: it says more than "none".
  if (found->makespan <= best.makespan) {
    best = {.ranks = RanksOf(step.graph(), schedule.downloads(), found->order),
            .makespan = found->makespan};
  }
  best.is_best = found->is_best || best.makespan == task.lower_bound;
  return best;
}

}  // namespace stepcast
