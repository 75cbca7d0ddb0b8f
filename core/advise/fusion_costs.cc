#include "core/advise/fusion_costs.h"

#include <algorithm>
#include <cmath>

namespace stepcast {

namespace {

std::vector<int32_t> Sorted(std::span<const int32_t> operations) {
  std::vector<int32_t> sorted(operations.begin(), operations.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

FusionCosts::FusionCosts(const Profile& profile, std::span<const FusedCost> table,
                         std::optional<double> share)
    : mean_seconds_(profile.operations().size(), 0), share_(share) {
  const auto steps = static_cast<double>(profile.steps().size());
  for (const RecordedStep& step : profile.steps()) {
    for (size_t i = 0; i < mean_seconds_.size(); ++i)
      mean_seconds_[i] += static_cast<double>(step.end_ns[i] - step.start_ns[i]) * 1e-9 / steps;
  }
  for (const FusedCost& entry : table) {
    table_[Sorted(entry.operations)] = entry.seconds;
    longest_entry_ = std::max(longest_entry_, entry.operations.size());
  }
}

bool FusionCosts::InTable(std::span<const int32_t> operations) const {
  return operations.size() <= longest_entry_ && table_.contains(Sorted(operations));
}

std::optional<double> FusionCosts::SecondsOf(std::span<const int32_t> operations) const {
  if (operations.size() == 1) return SecondsOf(operations.front());
  if (operations.size() <= longest_entry_) {
    const auto found = table_.find(Sorted(operations));
    if (found != table_.end()) return found->second;
  }
  if (!share_.has_value()) return std::nullopt;
  double before = 0;
  for (const int32_t operation : operations.first(operations.size() - 1))
    before += SecondsOf(operation);
  return *share_ * before + SecondsOf(operations.back());
}

int64_t FusionCosts::NanosecondsOf(std::span<const int32_t> operations,
                                   const RecordedStep& step) const {
  int64_t sum = 0;
  for (const int32_t operation : operations) sum += LengthNs(step, operation);
  if (operations.size() <= longest_entry_) {
    const auto found = table_.find(Sorted(operations));
    if (found != table_.end()) {
      double mean = 0;
      for (const int32_t operation : operations) mean += SecondsOf(operation);
      if (mean <= 0) return std::llround(found->second * 1e9);
      return std::llround(static_cast<double>(sum) * (found->second / mean));
    }
  }
  const int64_t last = LengthNs(step, operations.back());
  return std::llround(share_.value_or(1) * static_cast<double>(sum - last)) + last;
}

}  // namespace stepcast
