#include "core/communication/server_step.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/communication/full_sharding.h"
#include "core/communication/step_overlap.h"

namespace stepcast {

namespace {

// Downloads of a parameter times the operations that make its sum, of all parameters.
constexpr int64_t kMaxSumPairs = 10'000'000;

class SumFinder {
 public:
  SumFinder(const Profile& profile, StopCheck stop)
      : operations_(profile.operations()), pace_(stop), order_(OrderThatCanRun(operations_)) {}

  absl::StatusOr<std::vector<SummedDownload>> Run() && {
    for (size_t i = 0; i < operations_.size(); ++i) {
      const auto at = static_cast<int32_t>(i);
      if (MakesSum(at) && !operations_[i].parameter.empty())
        of_parameter_[operations_[i].parameter].push_back(at);
      if (operations_[i].resource == Resource::kDownlink) AddDownload(at);
    }
    if (absl::Status status = CheckSize(); !status.ok()) return status;
    AddOfOwnStep();
    AddOfLastStep();
    if (!pace_.status().ok()) return pace_.status();
    if (absl::Status status = CheckNames(); !status.ok()) return status;
    for (SummedDownload& sum : sums_) KeepLast(sum.befores);
    std::erase_if(sums_, [](const SummedDownload& sum) { return sum.befores.empty(); });
    return std::move(sums_);
  }

 private:
  bool MakesSum(int32_t operation) const {
    const Resource resource = operations_[Index(operation)].resource;
    return resource == Resource::kUplink || resource == Resource::kParameterServer;
  }

  // With what it waits for directly.
  void AddDownload(int32_t download) {
    SummedDownload& sum = sums_.emplace_back();
    sum.download = download;
    for (const int32_t before : operations_[Index(download)].waiting_for) {
      if (MakesSum(before)) sum.befores.push_back(before);
    }
  }

  absl::Status CheckSize() const {
    int64_t pairs = 0;
    for (const SummedDownload& sum : sums_) {
      const auto found = of_parameter_.find(operations_[Index(sum.download)].parameter);
      pairs += found == of_parameter_.end() ? 0 : static_cast<int64_t>(found->second.size());
    }
    if (pairs <= kMaxSumPairs) return absl::OkStatus();
    return Refused(absl::StrCat(
        "SUMMED, and the profile's downloads have ", pairs,
        " uploads and operations of servers of their parameters, each with each, which is above "
        "the limit max_sum_pairs = ",
        kMaxSumPairs));
  }
  static absl::Status Refused(std::string why) {
    return FaultsError("SCENARIO_INVALID", {{.field = "parameter_servers.synchronization",
                                             .description = std::move(why)}});
  }

  // Operations of its own parameter that it waits for at all, 64 at a time.
  void AddOfOwnStep() {
    std::vector<std::vector<size_t>> waiting(operations_.size());  // sums, by operation
    std::vector<int32_t> asked;
    for (size_t i = 0; i < sums_.size(); ++i) {
      const Operation& download = operations_[Index(sums_[i].download)];
      const auto found = of_parameter_.find(download.parameter);
      if (download.waiting_for.empty() || found == of_parameter_.end()) continue;
      for (const int32_t before : found->second) {
        if (waiting[Index(before)].empty()) asked.push_back(before);
        waiting[Index(before)].push_back(i);
      }
    }
    constexpr size_t kAtOnce = 64;
    std::vector<uint64_t> reached(operations_.size());
    for (size_t first = 0; first < asked.size(); first += kAtOnce) {
      const size_t end = std::min(first + kAtOnce, asked.size());
      std::fill(reached.begin(), reached.end(), 0);
      for (size_t i = first; i < end; ++i) reached[Index(asked[i])] = uint64_t{1} << (i - first);
      for (const int32_t at : order_) {
        const std::vector<int32_t>& before = operations_[Index(at)].waiting_for;
        if (!pace_.GoesOn(static_cast<int64_t>(1 + before.size()))) return;
        for (const int32_t earlier : before) reached[Index(at)] |= reached[Index(earlier)];
      }
      for (size_t i = first; i < end; ++i) {
        for (const size_t sum : waiting[Index(asked[i])]) {
          if ((reached[Index(sums_[sum].download)] >> (i - first) & 1) != 0)
            sums_[sum].befores.push_back(asked[i]);
        }
      }
    }
  }

  void AddOfLastStep() {
    for (SummedDownload& sum : sums_) {
      const auto found = of_parameter_.find(operations_[Index(sum.download)].parameter);
      if (!sum.befores.empty() || found == of_parameter_.end()) continue;
      sum.of_last_step = true;
      sum.befores = found->second;
    }
  }

  absl::Status CheckNames() const {
    // Downloads that wait, and what one waits for with nothing of the worker in between.
    std::vector<uint8_t> known(operations_.size(), 0);
    for (const SummedDownload& sum : sums_) {
      if (!sum.befores.empty()) known[Index(sum.download)] = 1;
      for (const int32_t before : sum.befores) known[Index(before)] = 1;
    }
    for (size_t i = order_.size(); i > 0; --i) {
      const int32_t at = order_[i - 1];
      if (known[Index(at)] == 0 || !MakesSum(at)) continue;
      for (const int32_t before : operations_[Index(at)].waiting_for)
        if (MakesSum(before)) known[Index(before)] = 1;
    }
    for (size_t i = 0; i < operations_.size(); ++i) {
      const Operation& operation = operations_[i];
      if (operation.resource == Resource::kWorker || !operation.parameter.empty() || known[i] != 0)
        continue;
      return Refused(absl::StrCat(
          "SUMMED, and operations[", i, "] of the profile, ", Quoted(operation.name),
          ", names no parameter, so that it is not known which download carries the sum of which "
          "uploads: name the parameters, or let the download wait for its upload"));
    }
    return absl::OkStatus();
  }

  // Ascending, without what another one waits for itself.
  void KeepLast(std::vector<int32_t>& befores) const {
    std::sort(befores.begin(), befores.end());
    befores.erase(std::unique(befores.begin(), befores.end()), befores.end());
    std::vector<int32_t> waited_for;
    for (const int32_t before : befores) {
      const std::vector<int32_t>& earlier = operations_[Index(before)].waiting_for;
      waited_for.insert(waited_for.end(), earlier.begin(), earlier.end());
    }
    std::sort(waited_for.begin(), waited_for.end());
    std::erase_if(befores, [&](int32_t before) {
      return std::binary_search(waited_for.begin(), waited_for.end(), before);
    });
  }

  const std::vector<Operation>& operations_;
  PacedStopCheck pace_;
  const std::vector<int32_t> order_;
  std::unordered_map<std::string_view, std::vector<int32_t>> of_parameter_;  // what makes its sum
  std::vector<SummedDownload> sums_;  // by download, empty ones too
};

}  // namespace

absl::StatusOr<std::vector<SummedDownload>> SumsOf(const Profile& profile, StopCheck stop) {
  return SumFinder(profile, stop).Run();
}

namespace {

// In the order in which they are needed.
std::vector<ParameterDownload> DownloadsOf(const StepPlan& plan, const ForwardUse& forward) {
  const std::vector<int32_t> gradients = AllReducesOf(plan);
  std::vector<ParameterDownload> downloads;
  for (size_t i = gradients.size(); i > 0; --i)
    downloads.push_back({.gradient = gradients[i - 1], .user = forward.uses[i - 1]});
  std::stable_sort(
      downloads.begin(), downloads.end(),
      [](const ParameterDownload& a, const ParameterDownload& b) { return a.user < b.user; });
  return downloads;
}

}  // namespace

absl::StatusOr<ServerStep> ServerStepOf(const Profile& profile, const Scenario& scenario,
                                        StopCheck stop) {
  ServerStep step{.plan = PlanOf(profile), .downloads = {}, .sums = {}};
  if (profile.has_collectives()) {
    absl::StatusOr<ForwardUse> forward = ForwardUses(profile, step.plan, "parameter_servers");
    if (!forward.ok()) return forward.status();
    if (scenario.sums()) {
      step.plan = WithoutStepBarrier(profile, step.plan, *std::move(forward));
    } else {
      step.downloads = DownloadsOf(step.plan, *forward);
    }
  } else if (scenario.sums()) {
    absl::StatusOr<std::vector<SummedDownload>> sums = SumsOf(profile, stop);
    if (!sums.ok()) return sums.status();
    step.sums = *std::move(sums);
  }
  return step;
}

}  // namespace stepcast
