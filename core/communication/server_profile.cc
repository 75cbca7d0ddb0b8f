#include "core/communication/server_profile.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/index.h"
#include "core/communication/placement.h"
#include "core/communication/server_step.h"
#include "core/communication/step_plan.h"

namespace stepcast {

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
    return ServerProfile{.profile = written->WithChange(profile_.change()),
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
