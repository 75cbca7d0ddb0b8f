#include "core/calibrate/link_replay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "core/calibrate/robust_statistics.h"

namespace stepcast {

int64_t LinkSetting::ServicesOf(double size_bytes) const {
  if (first_bytes <= 0 || size_bytes <= first_bytes) return 1;
  if (quantum_bytes <= 0) return 2;
  return 1 + static_cast<int64_t>(std::ceil((size_bytes - first_bytes) / quantum_bytes));
}

std::span<const double> LinkReplay::AtHand(std::span<const RecordedTransfer> phase,
                                           const LinkSetting& setting) {
  ends_.assign(phase.size(), 0);
  if (setting.by_recorded_end) {
    ServeByRecordedEnd(phase, setting);
  } else {
    ServeRoundRobin(phase, setting);
  }
  for (size_t i = 0; i < phase.size(); ++i) ends_[i] += phase[i].parsing_ns;
  return ends_;
}

void LinkReplay::ServeRoundRobin(std::span<const RecordedTransfer> phase,
                                 const LinkSetting& setting) {
  const double ns_per_byte = 1e9 / setting.bytes_per_second;
  queue_.clear();
  size_t head = 0;
  size_t next = 0;
  double now = 0;
  const auto join = [&] {
    for (; next < phase.size() && phase[next].start_ns <= now; ++next)
      queue_.push_back({.index = next, .left = phase[next].size_bytes});
  };
  while (head < queue_.size() || next < phase.size()) {
    if (head == queue_.size()) {
      now = std::max(now, phase[next].start_ns);
      join();
      now += 1e9 * setting.start_seconds;
    }
    Stream stream = queue_[head++];
    const double most = setting.first_bytes <= 0 ? stream.left
                        : !stream.is_begun       ? setting.first_bytes
                                                 : setting.quantum_bytes;
    const double carried = most > 0 ? std::min(stream.left, most) : stream.left;
    now += carried * ns_per_byte;
    join();
    stream.left -= carried;
    stream.is_begun = true;
    if (stream.left > 0) {
      queue_.push_back(stream);
    } else {
      ends_[stream.index] = now;
    }
  }
}

void LinkReplay::ServeByRecordedEnd(std::span<const RecordedTransfer> phase,
                                    const LinkSetting& setting) {
  const double ns_per_byte = 1e9 / setting.bytes_per_second;
  const auto ends_later = [&](size_t a, size_t b) {
    return phase[a].end_ns != phase[b].end_ns ? phase[a].end_ns > phase[b].end_ns : a > b;
  };
  waiting_.clear();
  size_t next = 0;
  double now = 0;
  while (!waiting_.empty() || next < phase.size()) {
    const bool was_idle = waiting_.empty() && phase[next].start_ns >= now;
    if (was_idle) now = phase[next].start_ns;
    for (; next < phase.size() && phase[next].start_ns <= now; ++next) {
      waiting_.push_back(next);
      std::push_heap(waiting_.begin(), waiting_.end(), ends_later);
    }
    if (was_idle) now += 1e9 * setting.start_seconds;
    std::pop_heap(waiting_.begin(), waiting_.end(), ends_later);
    now += phase[waiting_.back()].size_bytes * ns_per_byte;
    ends_[waiting_.back()] = now;
    waiting_.pop_back();
  }
}

namespace {

constexpr double kHalfway = 0.02;

// Calls visit(recorded, modelled) for each transfer, in nanoseconds since the start of its phase.
template <typename Visit>
absl::Status ForEachEnd(std::span<const RecordedPhase> phases, const LinkSetting& setting,
                        StopCheck stop, Visit visit) {
  LinkReplay replay;
  int64_t services = kStopCheckInterval;
  for (const RecordedPhase& phase : phases) {
    for (const RecordedTransfer& transfer : phase)
      services += setting.ServicesOf(transfer.size_bytes);
    if (services >= kStopCheckInterval) {
      if (absl::Status status = stop(); !status.ok()) return status;
      services = 0;
    }
    const std::span<const double> at_hand = replay.AtHand(phase, setting);
    for (size_t i = 0; i < phase.size(); ++i) {
      const double start = phase.front().start_ns;
      if (phase[i].at_hand_ns() > start) visit(phase[i].at_hand_ns() - start, at_hand[i] - start);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EndTimeErrors> MeasureEndTimes(std::span<const RecordedPhase> phases,
                                              const LinkSetting& setting, StopCheck stop) {
  std::vector<double> errors;
  EndTimeErrors result;
  const absl::Status status =
      ForEachEnd(phases, setting, stop, [&](double recorded, double modelled) {
        const double error = std::abs(modelled - recorded) / recorded;
        errors.push_back(error);
        result.average += error;
        result.distance += error / (error + kHalfway);
      });
  if (!status.ok()) return status;
  if (errors.empty()) return result;
  result.transfers = static_cast<int64_t>(errors.size());
  result.average /= static_cast<double>(errors.size());
  result.distance /= static_cast<double>(errors.size());
  result.maximum = *std::max_element(errors.begin(), errors.end());
  result.p95 = Quantile(errors, 0.95);
  result.median = Median(std::move(errors));
  return result;
}

absl::StatusOr<double> MedianStretch(std::span<const RecordedPhase> phases,
                                     const LinkSetting& setting, StopCheck stop) {
  std::vector<double> stretches;
  const absl::Status status =
      ForEachEnd(phases, setting, stop, [&](double recorded, double modelled) {
        stretches.push_back(recorded / std::max(modelled, 1.0));
      });
  if (!status.ok()) return status;
  return stretches.empty() ? 1 : Median(std::move(stretches));
}

absl::StatusOr<double> EndTimeDistance(std::span<const RecordedPhase> phases,
                                       const LinkSetting& setting, StopCheck stop) {
  double sum = 0;
  int64_t count = 0;
  const absl::Status status =
      ForEachEnd(phases, setting, stop, [&](double recorded, double modelled) {
        const double error = std::abs(modelled - recorded) / recorded;
        sum += error / (error + kHalfway);
        ++count;
      });
  if (!status.ok()) return status;
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

namespace {

constexpr size_t kMaxSearchedTransfers = 30'000;
constexpr double kGridRatio = 1.25;
constexpr double kMinWindow = 1024;
// Turns cost time to replay: no quantum makes more of them than this in a phase.
constexpr double kMaxTurns = 20'000;
constexpr size_t kMaxSizes = 40;
constexpr int kBestRefined = 3;
constexpr int kRefinements = 3;
constexpr int kPointsRefined = 6;

std::vector<RecordedPhase> EvenlyChosen(std::span<const RecordedPhase> phases) {
  size_t transfers = 0;
  for (const RecordedPhase& phase : phases) transfers += phase.size();
  const size_t keep = std::clamp(transfers == 0 ? 1
                                                : phases.size() * kMaxSearchedTransfers /
                                                      std::max(transfers, kMaxSearchedTransfers),
                                 size_t{1}, phases.size());
  std::vector<RecordedPhase> chosen;
  for (size_t i = 0; i < keep; ++i) chosen.push_back(phases[i * phases.size() / keep]);
  return chosen;
}

class WindowSearch {
 public:
  WindowSearch(std::span<const RecordedPhase> phases, const LinkSetting& setting, QuantumRule rule,
               StopCheck stop)
      : phases_(EvenlyChosen(phases)), setting_(setting), rule_(rule), stop_(stop) {}

  absl::StatusOr<WindowEstimate> Find() {
    Try(0);
    TryCandidates();
    for (int i = 0; i < kRefinements; ++i) Refine();
    if (!status_.ok()) return status_;
    return Estimate();
  }

 private:
  void Try(double window) {
    if (!status_.ok() || distances_.contains(window)) return;
    const absl::StatusOr<double> distance =
        EndTimeDistance(phases_, WithWindow(setting_, window, rule_), stop_);
    if (distance.ok()) {
      distances_[window] = *distance;
    } else {
      status_ = distance.status();
    }
  }

  void TryCandidates() {
    std::vector<double> sizes;
    double most_bytes = 0;
    for (const RecordedPhase& phase : phases_) {
      double bytes = 0;
      for (const RecordedTransfer& transfer : phase) {
        sizes.push_back(transfer.size_bytes);
        bytes += transfer.size_bytes;
      }
      most_bytes = std::max(most_bytes, bytes);
    }
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    largest_ = sizes.back();
    least_ =
        rule_ == QuantumRule::kSame ? std::max(kMinWindow, most_bytes / kMaxTurns) : kMinWindow;
    double window = least_;
    while (window < largest_) {
      Try(window);
      window = std::ceil(window * kGridRatio);
    }
    const size_t stride = 1 + sizes.size() / kMaxSizes;
    // From the largest down: those matter most. One byte less divides a stream that is as large.
    for (size_t i = 0; i < sizes.size(); i += stride) {
      const double size = sizes[sizes.size() - 1 - i];
      if (size < largest_ && size >= least_) Try(size);
      if (size - 1 >= least_) Try(size - 1);
    }
  }

  // Between the neighbours of the best windows so far.
  void Refine() {
    std::vector<std::pair<double, double>> by_distance;
    for (const auto& [window, distance] : distances_) {
      if (window > 0) by_distance.emplace_back(distance, window);
    }
    std::sort(by_distance.begin(), by_distance.end());
    if (by_distance.size() > kBestRefined) by_distance.resize(kBestRefined);
    for (const auto& [distance, window] : by_distance) {
      const auto at = distances_.find(window);
      const double below = std::prev(at)->first;
      const double above = std::next(at) == distances_.end() ? largest_ - 1 : std::next(at)->first;
      TryBetween(std::max(below, least_), window);
      TryBetween(window, above);
    }
  }

  void TryBetween(double low, double high) {
    for (int i = 1; i < kPointsRefined; ++i) {
      const double window =
          std::round(low * std::pow(high / low, static_cast<double>(i) / kPointsRefined));
      if (window > low && window < high) Try(window);
    }
  }

  WindowEstimate Estimate() const {
    const auto by_distance = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto best = std::min_element(distances_.begin(), distances_.end(), by_distance);
    WindowEstimate estimate{
        .upper_bytes = largest_, .largest_bytes = largest_, .distance = best->second};
    estimate.is_identified = !IsAboutAsNear(distances_.at(0), best->second);
    auto from = estimate.is_identified ? best : distances_.end();
    while (std::prev(from)->first > 0 && IsAboutAsNear(std::prev(from)->second, best->second))
      --from;
    estimate.lower_bytes = from == distances_.end() ? largest_ : from->first;
    if (!estimate.is_identified) return estimate;
    estimate.window_bytes = best->first;
    auto to = best;
    while (std::next(to) != distances_.end() && IsAboutAsNear(std::next(to)->second, best->second))
      ++to;
    estimate.upper_bytes = to->first;
    return estimate;
  }

  const std::vector<RecordedPhase> phases_;
  const LinkSetting setting_;
  const QuantumRule rule_;
  const StopCheck stop_;
  absl::Status status_;
  double largest_ = 0;
  double least_ = 0;
  std::map<double, double> distances_;  // by window; 0: none
};

}  // namespace

LinkSetting WithWindow(LinkSetting setting, double window_bytes, QuantumRule rule) {
  setting.first_bytes = window_bytes;
  setting.quantum_bytes = 0;
  if (window_bytes > 0 && rule == QuantumRule::kWindowAndMore)
    setting.quantum_bytes = window_bytes + kQuantumBeyondWindowBytes;
  if (window_bytes > 0 && rule == QuantumRule::kSame) setting.quantum_bytes = window_bytes;
  return setting;
}

bool IsAboutAsNear(double distance, double best) { return distance <= 1.1 * best + 0.002; }

absl::StatusOr<WindowEstimate> FindWindow(std::span<const RecordedPhase> phases,
                                          const LinkSetting& setting, QuantumRule rule,
                                          StopCheck stop) {
  return WindowSearch(phases, setting, rule, stop).Find();
}

}  // namespace stepcast
