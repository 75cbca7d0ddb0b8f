#include "core/orders/order_search.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "core/base/random.h"
#include "core/orders/outstanding_downloads.h"

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

  // Of one order more.
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

}  // namespace stepcast
