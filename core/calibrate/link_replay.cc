#include "core/calibrate/link_replay.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/calibrate/weighted_median.h"

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

}  // namespace stepcast
