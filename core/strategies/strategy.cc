#include "core/strategies/strategy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/index.h"
#include "core/communication/all_reduce.h"

namespace stepcast {

namespace {

int64_t LengthNs(const RecordedStep& step, int32_t operation) {
  return step.end_ns[Index(operation)] - step.start_ns[Index(operation)];
}

// Writes the operations of a job with a strategy, and their times.
class StrategyWriter {
 public:
  StrategyWriter(const Profile& profile, const Strategy& strategy, const FusionCosts& costs)
      : profile_(profile),
        operations_(profile.operations()),
        strategy_(strategy),
        costs_(costs),
        fused_(operations_.size(), -1),
        carried_(operations_.size(), -1),
        became_(operations_.size()) {
    for (size_t i = 0; i < strategy.fused.size(); ++i) {
      for (const int32_t member : strategy.fused[i])
        fused_[Index(member)] = static_cast<int32_t>(i);
    }
    for (size_t i = 0; i < strategy.tensors.size(); ++i) {
      for (const int32_t member : strategy.tensors[i].gradients)
        carried_[Index(member)] = static_cast<int32_t>(i);
    }
  }

  absl::StatusOr<Profile> Write() && {
    ProfileDraft draft = profile_.content();
    draft.buckets.reset();
    draft.operations.clear();
    for (const Operation& operation : operations_) names_.insert(operation.name);
    for (size_t i = 0; i < operations_.size(); ++i) {
      const auto at = static_cast<int32_t>(i);
      if (fused_[i] >= 0) {
        const std::vector<int32_t>& members = strategy_.fused[Index(fused_[i])];
        if (at == *std::max_element(members.begin(), members.end())) AddFused(members, at, draft);
      } else if (carried_[i] >= 0) {
        const FusedTensors& group = strategy_.tensors[Index(carried_[i])];
        if (at == group.gradients.back()) AddCollective(group, draft);
      } else {
        Add({at}, operations_[i], draft);
      }
    }
    for (size_t i = 0; i < draft.operations.size(); ++i) Rewire(static_cast<int32_t>(i), draft);
    WriteSteps(draft);
    return Profile::Create(std::move(draft));
  }

 private:
  // An operation of the new profile, and those that it is made of.
  void Add(std::vector<int32_t> sources, Operation operation, ProfileDraft& draft) {
    const auto now = static_cast<int32_t>(draft.operations.size());
    for (const int32_t source : sources) became_[Index(source)].push_back(now);
    draft.operations.push_back(std::move(operation));
    sources_.push_back(std::move(sources));
  }

  Operation Joined(const std::vector<int32_t>& members, int32_t last) const {
    Operation joined = operations_[Index(last)];
    joined.waiting_for.clear();
    joined.kept_bytes = 0;
    for (const int32_t member : members) {
      joined.kept_bytes =
          std::min(kMaxKeptBytes, joined.kept_bytes + operations_[Index(member)].kept_bytes);
      const std::vector<int32_t>& before = operations_[Index(member)].waiting_for;
      joined.waiting_for.insert(joined.waiting_for.end(), before.begin(), before.end());
    }
    return joined;
  }

  void AddFused(const std::vector<int32_t>& members, int32_t last, ProfileDraft& draft) {
    Operation joined = Joined(members, last);
    joined.parameter.clear();
    Add(members, std::move(joined), draft);
  }

  void AddCollective(const FusedTensors& group, ProfileDraft& draft) {
    Operation joined = Joined(group.gradients, group.gradients.back());
    joined.size_bytes = 0;
    for (const int32_t gradient : group.gradients)
      joined.size_bytes += operations_[Index(gradient)].size_bytes;
    if (group.gradients.size() > 1) joined.parameter.clear();
    const int64_t all = joined.size_bytes;
    const std::string name = joined.name;
    for (int32_t part = 0; part < group.partitions; ++part) {
      Operation piece = joined;
      piece.size_bytes = all * (part + 1) / group.partitions - all * part / group.partitions;
      if (part > 0) {
        piece.parameter.clear();
        piece.name = Unused(absl::StrCat(name, "#", part + 1));
      }
      Add(group.gradients, std::move(piece), draft);
    }
  }

  std::string Unused(std::string name) {
    while (!names_.insert(name).second) name += "'";
    return name;
  }

  // Dependencies of the old profile become those of the new one; none is on itself.
  void Rewire(int32_t at, ProfileDraft& draft) const {
    std::vector<int32_t> now;
    for (const int32_t old : draft.operations[Index(at)].waiting_for) {
      for (const int32_t operation : became_[Index(old)]) {
        if (operation != at) now.push_back(operation);
      }
    }
    std::sort(now.begin(), now.end());
    now.erase(std::unique(now.begin(), now.end()), now.end());
    draft.operations[Index(at)].waiting_for = std::move(now);
  }

  void WriteSteps(ProfileDraft& draft) const {
    for (size_t s = 0; s < draft.steps.size(); ++s) {
      const RecordedStep& old = profile_.steps()[s];
      RecordedStep now;
      now.start_ns.reserve(sources_.size());
      now.end_ns.reserve(sources_.size());
      for (const std::vector<int32_t>& sources : sources_) {
        const int32_t last = sources.back();
        const bool is_fused = sources.size() > 1 && carried_[Index(last)] < 0;
        const int64_t start = old.start_ns[Index(is_fused ? sources.front() : last)];
        now.start_ns.push_back(start);
        now.end_ns.push_back(is_fused ? start + costs_.NanosecondsOf(sources, old)
                                      : old.end_ns[Index(last)]);
      }
      draft.steps[s] = std::move(now);
    }
  }

  const Profile& profile_;
  const std::vector<Operation>& operations_;
  const Strategy& strategy_;
  const FusionCosts& costs_;
  std::vector<int32_t> fused_;    // by operation, the list that it is in, or -1
  std::vector<int32_t> carried_;  // likewise, the group of tensors
  std::vector<std::vector<int32_t>> became_;
  std::vector<std::vector<int32_t>> sources_;  // by operation of the new profile
  std::set<std::string> names_;
};

std::vector<int32_t> Sorted(std::span<const int32_t> operations) {
  std::vector<int32_t> sorted(operations.begin(), operations.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

Strategy NothingFused(const Profile& profile) {
  Strategy strategy;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    if (profile.operations()[i].collective == Collective::kAllReduce)
      strategy.tensors.push_back({.gradients = {static_cast<int32_t>(i)}});
  }
  return strategy;
}

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

absl::StatusOr<AppliedStrategy> Apply(const Profile& profile, const Scenario& scenario,
                                      const Strategy& strategy, const FusionCosts& costs) {
  absl::StatusOr<Profile> applied = StrategyWriter(profile, strategy, costs).Write();
  if (!applied.ok()) return applied.status();
  Scenario as_it_stands = scenario;
  AllReduce& job = std::get<AllReduce>(as_it_stands.communication);
  job.fusion = std::monostate{};
  job.partition_bytes = 0;
  if (absl::Status status = CheckCollectives(*applied, as_it_stands); !status.ok()) return status;
  return AppliedStrategy{.profile = *std::move(applied), .scenario = std::move(as_it_stands)};
}

std::vector<std::vector<int32_t>> StreamOrders(const Profile& profile) {
  const std::vector<Operation>& operations = profile.operations();
  std::vector<double> starts(operations.size(), 0);
  for (const RecordedStep& step : profile.steps()) {
    for (size_t i = 0; i < operations.size(); ++i)
      starts[i] += static_cast<double>(step.start_ns[i]);
  }
  std::vector<std::vector<int32_t>> orders;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].resource != Resource::kWorker) continue;
    const auto stream = Index(operations[i].stream);
    if (orders.size() <= stream) orders.resize(stream + 1);
    orders[stream].push_back(static_cast<int32_t>(i));
  }
  for (std::vector<int32_t>& order : orders) {
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return starts[Index(a)] < starts[Index(b)]; });
  }
  return orders;
}

}  // namespace stepcast
