#include "core/advise/gradient_chain.h"

#include <algorithm>

#include "core/base/time.h"

namespace stepcast {

GradientChain::GradientChain(const std::vector<CollectiveTiming>& collectives,
                             const Scenario& scenario)
    : GradientChain(collectives, scenario, scenario.all_reduce()) {}

GradientChain::GradientChain(const std::vector<CollectiveTiming>& collectives,
                             const Scenario& scenario, const AllReduce& job)
    : times_(scenario),
      partition_bytes_(job.partition_bytes),
      is_serial_(job.concurrent_collectives == 1),
      contends_(job.contention.has_value()),
      bytes_bound_(job.workers_per_node == 1 && scenario.worker_groups.empty() &&
                   job.algorithm != CollectiveAlgorithm::kMeasured &&
                   job.algorithm != CollectiveAlgorithm::kNccl) {
  for (const CollectiveTiming& collective : collectives) {
    if (!collective.is_gradient || collective.kind != Collective::kAllReduce) continue;
    const double before = gradients_.empty() ? 0 : gradients_.back().ready_seconds;
    gradients_.push_back({.ready_seconds = std::max(before, collective.ready_seconds),
                          .bytes = collective.size_bytes});
    names_.push_back(collective.operations.empty() ? "" : collective.operations.front());
  }
  sorted_names_.insert(names_.begin(), names_.end());
  const CollectiveParts parts = RingParts(Collective::kAllReduce, 1, scenario.workers);
  seconds_per_byte_ = parts.sent_bytes / scenario.bandwidth_bytes_per_second;
}

double GradientChain::SecondsOf(double summed_bytes, const std::vector<int32_t>& threads) const {
  const auto bytes = static_cast<int64_t>(summed_bytes);  // a sum of whole ones
  const auto whole = [&](int64_t piece) {
    Span least = times_.TimeOf(Collective::kAllReduce, piece);
    for (const int32_t count : threads)
      least = std::min(least, times_.TimeOf(Collective::kAllReduce, piece, count));
    return ToSeconds(least);
  };
  if (partition_bytes_ == 0 || bytes <= partition_bytes_) return whole(bytes);
  const int64_t pieces = bytes / partition_bytes_;
  const int64_t rest = bytes % partition_bytes_;
  return static_cast<double>(pieces) * whole(partition_bytes_) + (rest > 0 ? whole(rest) : 0);
}

std::vector<int64_t> GradientChain::bytes() const {
  std::vector<int64_t> bytes;
  for (const ReadyGradient& gradient : gradients_) bytes.push_back(gradient.bytes);
  return bytes;
}

std::vector<int64_t> GradientChain::BytesOf(const std::vector<int32_t>& counts) const {
  std::vector<int64_t> sums;
  size_t next = 0;
  for (const int32_t count : counts) {
    sums.push_back(0);
    for (int32_t i = 0; i < count; ++i) sums.back() += gradients_[next++].bytes;
  }
  return sums;
}

double GradientChain::EndOf(const std::vector<int32_t>& counts) const {
  return SerialEnd(gradients_, counts, [this](double bytes) { return SecondsOf(bytes); });
}

absl::StatusOr<std::vector<int32_t>> GradientChain::SoonestEnd(StopCheck stop) const {
  return EarliestEndGroups(
      gradients_, [this](double bytes) { return SecondsOf(bytes); }, stop);
}

absl::StatusOr<double> GradientChain::LowerBoundOfEnd(const std::vector<int32_t>& threads,
                                                      StopCheck stop) const {
  if (size() == 0) return 0.0;
  if (!is_serial_) {
    double bytes = 0;
    for (const ReadyGradient& gradient : gradients_) bytes += static_cast<double>(gradient.bytes);
    return gradients_.front().ready_seconds + bytes * seconds_per_byte_;
  }
  const auto seconds_of = [&](double bytes) {
    return SecondsOf(bytes, contends_ ? threads : std::vector<int32_t>{});
  };
  const absl::StatusOr<std::vector<int32_t>> counts =
      EarliestEndGroups(gradients_, seconds_of, stop);
  if (!counts.ok()) return counts.status();
  return SerialEnd(gradients_, *counts, seconds_of);
}

double GradientChain::LeastSecondsOfAll(const std::vector<int32_t>& threads) const {
  double bytes = 0;
  for (const ReadyGradient& gradient : gradients_) bytes += static_cast<double>(gradient.bytes);
  if (contends_) {
    const auto whole = static_cast<int64_t>(bytes);
    Span least = times_.TimeOf(Collective::kAllReduce, whole);
    for (const int32_t count : threads)
      least = std::min(least, times_.TimeOf(Collective::kAllReduce, whole, count));
    return ToSeconds(least);
  }
  return bytes_bound_ ? bytes * seconds_per_byte_ : 0;
}

std::vector<std::vector<int32_t>> AllGroupings(size_t size) {
  std::vector<std::vector<int32_t>> groupings;
  for (uint32_t boundaries = 0; boundaries < (1U << (size - 1)); ++boundaries) {
    std::vector<int32_t>& counts = groupings.emplace_back(1, 1);
    for (size_t i = 1; i < size; ++i) {
      if ((boundaries >> (i - 1)) & 1U) {
        counts.push_back(1);
      } else {
        ++counts.back();
      }
    }
  }
  return groupings;
}

std::vector<std::vector<int32_t>> OneBoundaryAway(const std::vector<int32_t>& counts) {
  std::vector<std::vector<int32_t>> groupings;
  for (size_t group = 0; group < counts.size(); ++group) {
    // One more, within this group.
    for (int32_t left = 1; left < counts[group]; ++left) {
      std::vector<int32_t>& split = groupings.emplace_back(counts);
      split[group] = left;
      split.insert(split.begin() + static_cast<std::ptrdiff_t>(group) + 1, counts[group] - left);
    }
    if (group + 1 == counts.size()) break;
    // The boundary behind this group: gone, further on, back.
    std::vector<int32_t>& merged = groupings.emplace_back(counts);
    merged[group] += counts[group + 1];
    merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(group) + 1);
    if (counts[group + 1] > 1) {
      std::vector<int32_t>& on = groupings.emplace_back(counts);
      ++on[group];
      --on[group + 1];
    }
    if (counts[group] > 1) {
      std::vector<int32_t>& back = groupings.emplace_back(counts);
      --back[group];
      ++back[group + 1];
    }
  }
  return groupings;
}

}  // namespace stepcast
