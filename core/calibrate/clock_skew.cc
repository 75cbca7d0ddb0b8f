#include "core/calibrate/clock_skew.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/calibrate/robust_statistics.h"

namespace stepcast {

namespace {

constexpr double kAgreeing = 0.9;

bool StartsOnServer(Resource resource, ClockSplit split) {
  return resource == Resource::kParameterServer ||
         (split == ClockSplit::kTransferEnds && resource == Resource::kDownlink);
}

bool EndsOnServer(Resource resource, ClockSplit split) {
  return resource == Resource::kParameterServer ||
         (split == ClockSplit::kTransferEnds && resource == Resource::kUplink);
}

// One time must not be before another one.
struct Order {
  int64_t early_ns = 0;
  int64_t late_ns = 0;
  bool early_on_server = false;
  bool late_on_server = false;

  // The excess of the order with the server's clock `ahead_ns` ahead: how far it is impossible; at
  // most 0: possible.
  int64_t Excess(int64_t ahead_ns) const {
    return (early_ns - (early_on_server ? ahead_ns : 0)) -
           (late_ns - (late_on_server ? ahead_ns : 0));
  }
};

template <typename Visit>
void ForEachOrder(const ProfileDraft& recording, const RecordedStep& step, ClockSplit split,
                  Visit visit) {
  const std::vector<Operation>& operations = recording.operations;
  for (size_t i = 0; i < operations.size(); ++i) {
    const bool on_server = StartsOnServer(operations[i].resource, split);
    visit(Order{.early_ns = step.start_ns[i],
                .late_ns = step.end_ns[i],
                .early_on_server = on_server,
                .late_on_server = EndsOnServer(operations[i].resource, split)});
    for (const int32_t waited : operations[i].waiting_for) {
      const auto w = static_cast<size_t>(waited);
      visit(Order{.early_ns = step.end_ns[w],
                  .late_ns = step.start_ns[i],
                  .early_on_server = EndsOnServer(operations[w].resource, split),
                  .late_on_server = on_server});
    }
  }
}

struct Tally {
  int64_t orders = 0;
  int64_t impossible = 0;
  int64_t worst_ns = 0;
};

struct Candidate {
  ClockSplit split = ClockSplit::kServerOperations;
  int64_t ahead_ns = 0;
  Tally tally;
};

class SkewMeasurement {
 public:
  SkewMeasurement(const ProfileDraft& recording, StopCheck stop)
      : recording_(recording), stop_(stop) {}

  absl::StatusOr<Tally> Count(ClockSplit split, int64_t ahead_ns) {
    Tally tally;
    for (const RecordedStep& step : recording_.steps) {
      if (absl::Status status = Check(); !status.ok()) return status;
      ForEachOrder(recording_, step, split, [&](const Order& order) {
        const int64_t excess = order.Excess(ahead_ns);
        ++tally.orders;
        tally.impossible += excess > kClockToleranceNs ? 1 : 0;
        tally.worst_ns = std::max(tally.worst_ns, excess);
      });
    }
    return tally;
  }

  absl::StatusOr<int64_t> AheadOf(ClockSplit split) {
    // Per step: the server's clock is at least, and at most, so far ahead.
    constexpr double kOpen = 1e18;
    std::vector<double> least;
    std::vector<double> most;
    for (const RecordedStep& step : recording_.steps) {
      if (absl::Status status = Check(); !status.ok()) return status;
      double at_least = -kOpen;
      double at_most = kOpen;
      ForEachOrder(recording_, step, split, [&](const Order& order) {
        const auto excess = static_cast<double>(order.early_ns - order.late_ns);
        if (order.early_on_server && !order.late_on_server) at_least = std::max(at_least, excess);
        if (!order.early_on_server && order.late_on_server) at_most = std::min(at_most, -excess);
      });
      least.push_back(at_least);
      most.push_back(at_most);
    }
    const double lower = Quantile(std::move(least), kAgreeing);
    const double upper = Quantile(std::move(most), 1 - kAgreeing);
    if (lower <= kClockToleranceNs && upper >= -kClockToleranceNs) return 0;
    if (lower > upper) return static_cast<int64_t>(lower / 2 + upper / 2);
    return static_cast<int64_t>(lower > 0 ? lower : upper);
  }

 private:
  absl::Status Check() {
    work_ += recording_.operations.size();
    if (work_ < kStopCheckInterval) return absl::OkStatus();
    work_ = 0;
    return stop_();
  }

  const ProfileDraft& recording_;
  const StopCheck stop_;
  size_t work_ = kStopCheckInterval;
};

std::vector<int32_t> Sorted(const std::vector<Operation>& operations) {
  std::vector<int32_t> missing(operations.size());
  std::vector<std::vector<int32_t>> waiting(operations.size());
  std::vector<int32_t> sorted;
  for (size_t i = 0; i < operations.size(); ++i) {
    missing[i] = static_cast<int32_t>(operations[i].waiting_for.size());
    for (const int32_t waited : operations[i].waiting_for)
      waiting[static_cast<size_t>(waited)].push_back(static_cast<int32_t>(i));
    if (missing[i] == 0) sorted.push_back(static_cast<int32_t>(i));
  }
  for (size_t next = 0; next < sorted.size(); ++next) {
    for (const int32_t operation : waiting[static_cast<size_t>(sorted[next])]) {
      if (--missing[static_cast<size_t>(operation)] == 0) sorted.push_back(operation);
    }
  }
  return sorted;
}

}  // namespace

absl::StatusOr<ClockSkew> ClockSkew::Measure(const ProfileDraft& recording, StopCheck stop) {
  SkewMeasurement measurement(recording, stop);
  const absl::StatusOr<Tally> recorded = measurement.Count(ClockSplit::kServerOperations, 0);
  if (!recorded.ok()) return recorded.status();
  Candidate best{.tally = *recorded};
  for (const ClockSplit split : {ClockSplit::kServerOperations, ClockSplit::kTransferEnds}) {
    if (best.tally.impossible == 0) break;
    const absl::StatusOr<int64_t> ahead = measurement.AheadOf(split);
    if (!ahead.ok()) return ahead.status();
    const absl::StatusOr<Tally> tally = measurement.Count(split, *ahead);
    if (!tally.ok()) return tally.status();
    if (tally->impossible < best.tally.impossible)
      best = {.split = split, .ahead_ns = *ahead, .tally = *tally};
  }
  ClockSkew skew;
  skew.orders_ = recorded->orders;
  skew.impossible_orders_ = recorded->impossible;
  skew.worst_ns_ = recorded->worst_ns;
  skew.clamped_orders_ = best.tally.impossible;
  skew.worst_clamped_ns_ = best.tally.worst_ns;
  skew.server_ahead_ns_ = best.ahead_ns;
  skew.split_ = best.split;
  skew.sorted_ = Sorted(recording.operations);
  return skew;
}

RecordedStep ClockSkew::Corrected(const ProfileDraft& recording, const RecordedStep& step) const {
  RecordedStep corrected = step;
  int64_t earliest = 0;
  for (const int32_t operation : sorted_) {
    const auto i = static_cast<size_t>(operation);
    const Operation& at = recording.operations[i];
    if (StartsOnServer(at.resource, split_)) corrected.start_ns[i] -= server_ahead_ns_;
    if (EndsOnServer(at.resource, split_)) corrected.end_ns[i] -= server_ahead_ns_;
    for (const int32_t waited : at.waiting_for)
      corrected.start_ns[i] =
          std::max(corrected.start_ns[i], corrected.end_ns[static_cast<size_t>(waited)]);
    corrected.end_ns[i] = std::max(corrected.end_ns[i], corrected.start_ns[i]);
    earliest = std::min(earliest, corrected.start_ns[i]);
  }
  for (size_t i = 0; i < corrected.start_ns.size(); ++i) {
    corrected.start_ns[i] -= earliest;
    corrected.end_ns[i] -= earliest;
  }
  return corrected;
}

}  // namespace stepcast
