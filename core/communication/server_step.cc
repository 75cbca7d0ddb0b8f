#include "core/communication/server_step.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/communication/full_sharding.h"
#include "core/communication/server_transfers.h"
#include "core/communication/step_overlap.h"
#include "core/communication/step_plan.h"

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

namespace {

class ProfileWriter {
 public:
  ProfileWriter(const Profile& profile, const Scenario& scenario, ServerStep step)
      : profile_(profile),
        scenario_(scenario),
        step_(std::move(step)),
        placement_(profile, scenario.server_count(), /*partition_bytes=*/0),
        sent_(step_.plan.size(), -1),
        made_(step_.plan.size(), -1) {}

  absl::StatusOr<ServerProfile> Write() && {
    ProfileDraft draft = profile_.content();
    draft.operations.clear();
    // The share of a gradient that compression leaves stays known.
    if (draft.buckets.has_value() && draft.buckets->sent_share != 1) {
      draft.buckets = RecordedBuckets{.rule = Buckets{}, .sent_share = draft.buckets->sent_share};
    } else {
      draft.buckets.reset();
    }
    draft.recording.reset();
    for (const Operation& operation : profile_.operations()) names_.insert(operation.name);
    draft.parameter_servers = scenario_.server_count();
    for (const PlannedOperation& planned : step_.plan) {
      if (planned.kind != Collective::kUnspecified)
        parameters_.try_emplace(planned.source, Unused(parameter_names_, ParameterOf(planned)));
    }
    for (const ParameterDownload& download : step_.downloads) AddDownload(download, draft);
    for (size_t i = 0; i < step_.plan.size(); ++i) AddPlanned(i, draft);
    Connect(draft);
    const std::vector<int32_t> order = OrderThatCanRun(draft.operations);
    for (size_t row = 0; row < draft.steps.size(); ++row)
      draft.steps[row] = StepOf(draft.operations, order, row);
    Scenario scenario = scenario_;
    scenario.servers().transfer_priorities = std::move(ranks_);
    absl::StatusOr<Profile> written = Profile::Create(std::move(draft));
    if (!written.ok()) return written.status();
    return ServerProfile{.profile = written->WithChange(profile_.change(), profile_),
                         .scenario = std::move(scenario),
                         .sources = std::move(sources_)};
  }

 private:
  const Operation& SourceOf(const PlannedOperation& planned) const {
    return profile_.operations()[Index(planned.source)];
  }
  std::string ParameterOf(const PlannedOperation& planned) const {
    const Operation& source = SourceOf(planned);
    return source.parameter.empty() ? source.name : source.parameter;
  }
  static std::string Unused(std::unordered_set<std::string>& names, const std::string& wanted) {
    std::string name = wanted;
    for (int again = 2; !names.insert(name).second; ++again)
      name = absl::StrCat(wanted.substr(0, kMostOfName), "#", again);
    return name;
  }

  int32_t Add(const PlannedOperation& planned, Operation operation, int32_t duration_of,
              ProfileDraft& draft) {
    // The first that is made of an operation has its name.
    if (operation.name != SourceOf(planned).name || !named_.insert(planned.source).second)
      operation.name = Unused(names_, operation.name);
    const auto at = static_cast<int32_t>(draft.operations.size());
    draft.operations.push_back(std::move(operation));
    sources_.push_back(planned.source);
    durations_of_.push_back(duration_of);
    return at;
  }

  Operation Transfer(const PlannedOperation& planned, Resource resource) const {
    return {.name = SourceOf(planned).name,
            .resource = resource,
            .parameter_server = placement_.ServerOf(planned.source, /*part=*/0),
            .size_bytes = SourceOf(planned).size_bytes,
            .waiting_for = {},
            .parameter = parameters_.at(planned.source)};
  }

  // Returns its index.
  int32_t AddPull(const PlannedOperation& planned, ProfileDraft& draft) {
    Operation pull = Transfer(planned, Resource::kDownlink);
    const auto rank = scenario_.servers().transfer_priorities.find(pull.name);
    pull.name = absl::StrCat("pull/", pull.name.substr(0, kMostOfName));
    const int32_t at = Add(planned, std::move(pull), kNoTime, draft);
    if (rank != scenario_.servers().transfer_priorities.end())
      ranks_.emplace(draft.operations.back().name, rank->second);
    return at;
  }

  void AddDownload(const ParameterDownload& download, ProfileDraft& draft) {
    const int32_t at = AddPull(step_.plan[Index(download.gradient)], draft);
    arrives_[download.user].push_back(at);
  }

  void AddPlanned(size_t index, ProfileDraft& draft) {
    const PlannedOperation& planned = step_.plan[index];
    if (planned.kind == Collective::kUnspecified) {
      Operation operation = SourceOf(planned);
      operation.resource = Resource::kWorker;
      operation.size_bytes = 0;
      operation.collective = Collective::kUnspecified;
      operation.group.clear();
      operation.stream = planned.stream;
      operation.waiting_for.clear();
      made_[index] = Add(planned, std::move(operation), static_cast<int32_t>(index), draft);
      sent_[index] = made_[index];
      return;
    }
    sent_[index] = Add(planned, Transfer(planned, Resource::kUplink), kNoTime, draft);
    made_[index] = sent_[index];
    if (!scenario_.sums()) return;
    made_[index] = AddPull(planned, draft);
    draft.operations[Index(made_[index])].waiting_for = {sent_[index]};
  }

  // Dependents of a gradient wait for the last of what became of it.
  void Connect(ProfileDraft& draft) const {
    for (size_t i = 0; i < step_.plan.size(); ++i) {
      std::vector<int32_t>& waiting_for = draft.operations[Index(sent_[i])].waiting_for;
      for (const int32_t before : step_.plan[i].waiting_for)
        waiting_for.push_back(made_[Index(before)]);
      const auto arrives = arrives_.find(static_cast<int32_t>(i));
      if (arrives != arrives_.end())
        waiting_for.insert(waiting_for.end(), arrives->second.begin(), arrives->second.end());
      SortUnique(waiting_for);
    }
  }

  RecordedStep StepOf(const std::vector<Operation>& operations, const std::vector<int32_t>& order,
                      size_t row) const {
    const RecordedStep& recorded = profile_.steps()[row];
    RecordedStep step;
    step.start_ns.assign(operations.size(), 0);
    step.end_ns.assign(operations.size(), 0);
    int64_t computed_until = 0;
    for (const int32_t at : order) {
      int64_t start = 0;
      for (const int32_t before : operations[Index(at)].waiting_for)
        start = std::max(start, step.end_ns[Index(before)]);
      int64_t length = 0;
      if (const int32_t planned = durations_of_[Index(at)]; planned != kNoTime) {
        start = std::max(start, computed_until);
        length = DurationOf(step_.plan[Index(planned)], recorded, row).ticks / kTicksPerNanosecond;
        computed_until = start + length;
      }
      step.start_ns[Index(at)] = start;
      step.end_ns[Index(at)] = start + length;
    }
    return step;
  }

  static constexpr int32_t kNoTime = -1;
  // Bytes of a name that others are made of, which are not to be over the limit of names.
  static constexpr size_t kMostOfName = 480;

  const Profile& profile_;
  const Scenario& scenario_;
  const ServerStep step_;
  const Placement placement_;
  std::vector<int32_t> sent_;                        // by operation of the plan: what it became
  std::vector<int32_t> made_;                        // likewise: the last of that
  std::map<int32_t, std::vector<int32_t>> arrives_;  // likewise: the downloads it waits for besides
  std::map<int32_t, std::string> parameters_;        // by operation of the profile
  std::unordered_set<std::string> names_;
  std::unordered_set<int32_t> named_;  // operations of the profile whose names are given away
  std::unordered_set<std::string> parameter_names_;
  std::map<std::string, int32_t> ranks_;  // by name of the new profile
  // By operation of the new profile:
  std::vector<int32_t> sources_;
  std::vector<int32_t> durations_of_;  // the computation of the plan that it is as long as
};

}  // namespace

absl::StatusOr<ServerProfile> ServerProfileOf(const Profile& profile, const Scenario& scenario,
                                              StopCheck stop) {
  absl::StatusOr<ServerStep> step = ServerStepOf(profile, scenario, stop);
  if (!step.ok()) return step.status();
  return ProfileWriter(profile, scenario, *std::move(step)).Write();
}

}  // namespace stepcast
