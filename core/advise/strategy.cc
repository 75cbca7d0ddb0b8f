#include "core/advise/strategy.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/advise/tensor_route.h"
#include "core/base/index.h"
#include "core/base/message_text.h"

namespace stepcast {

namespace {

// The operations of a profile that a group of gradients takes along.
struct TensorOperations {
  std::vector<int32_t> gradients;
  std::vector<int32_t> updates;    // on parameter servers, of what was uploaded
  std::vector<int32_t> downloads;  // of their parameters
  int32_t partitions = 1;
};

// Writes the operations of a job with a strategy, and their times.
class StrategyWriter {
 public:
  StrategyWriter(const Profile& profile, const Scenario& scenario, const Strategy& strategy,
                 const FusionCosts& costs)
      : profile_(profile),
        operations_(profile.operations()),
        route_(TensorRoute::Of(profile, scenario)),
        strategy_(strategy),
        costs_(costs),
        fused_(operations_.size(), -1),
        carried_(operations_.size(), -1),
        became_(operations_.size()) {
    for (size_t i = 0; i < strategy.fused.size(); ++i) {
      for (const int32_t member : strategy.fused[i])
        fused_[Index(member)] = static_cast<int32_t>(i);
    }
    FindTensors();
  }

  absl::StatusOr<AppliedStrategy> Write() && {
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
        const TensorOperations& tensors = tensors_[Index(carried_[i])];
        if (at == tensors.gradients.back()) AddParts(tensors.gradients, Made::kGradient, at, draft);
        if (!tensors.updates.empty() && at == tensors.updates.back())
          AddParts(tensors.updates, Made::kUpdate, at, draft);
        if (!tensors.downloads.empty() && at == tensors.downloads.front())
          AddParts(tensors.downloads, Made::kDownload, at, draft);
      } else {
        Add({.made = Made::kAsIs, .operations = {at}}, operations_[i], draft);
      }
    }
    for (size_t i = 0; i < draft.operations.size(); ++i) Rewire(static_cast<int32_t>(i), draft);
    route_->Place(sources_, draft);
    RewriteSteps(draft, [this](const RecordedStep& old) { return StepOf(old); });
    Scenario scenario = route_->ScenarioOf(strategy_, sources_, draft);
    absl::StatusOr<Profile> profile = Profile::Create(std::move(draft));
    if (!profile.ok()) return profile.status();
    AppliedStrategy written{.profile = *std::move(profile), .scenario = std::move(scenario)};
    if (absl::Status status = route_->Check(written); !status.ok()) return status;
    return written;
  }

 private:
  using Made = WrittenOperation::Made;

  // Groups of gradients with what they take along.
  void FindTensors() {
    const bool keeps_lone = route_->KeepsLoneTensors();
    for (const FusedTensors& group : strategy_.tensors) {
      if (keeps_lone && group.gradients.size() == 1 && group.partitions == 1) continue;
      for (const int32_t member : group.gradients)
        carried_[Index(member)] = static_cast<int32_t>(tensors_.size());
      tensors_.push_back({.gradients = group.gradients, .partitions = group.partitions});
    }
    const std::vector<int32_t> carriers = route_->CarriersOf();
    for (size_t i = 0; i < operations_.size(); ++i) {
      const auto at = static_cast<int32_t>(i);
      if (carriers[i] < 0 || carriers[i] == at) continue;
      carried_[i] = carried_[Index(carriers[i])];
      if (carried_[i] < 0) continue;
      TensorOperations& tensors = tensors_[Index(carried_[i])];
      (operations_[i].resource == Resource::kDownlink ? tensors.downloads : tensors.updates)
          .push_back(at);
    }
  }

  void Add(WrittenOperation source, Operation operation, ProfileDraft& draft) {
    const auto now = static_cast<int32_t>(draft.operations.size());
    for (const int32_t old : source.operations) became_[Index(old)].push_back(now);
    draft.operations.push_back(std::move(operation));
    sources_.push_back(std::move(source));
  }

  Operation Joined(const std::vector<int32_t>& members, int32_t at) const {
    Operation joined = operations_[Index(at)];
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
    Add({.made = Made::kFused, .operations = members}, std::move(joined), draft);
  }

  // The parts of one operation that is made of some, which stands where `at` stood.
  void AddParts(const std::vector<int32_t>& members, Made made, int32_t at, ProfileDraft& draft) {
    const TensorOperations& tensors = tensors_[Index(carried_[Index(at)])];
    Operation joined = Joined(members, at);
    joined.size_bytes = 0;
    for (const int32_t member : members) joined.size_bytes += operations_[Index(member)].size_bytes;
    joined.parameter = route_->ParameterOf(tensors.gradients);
    const int64_t all = joined.size_bytes;
    const std::string name = joined.name;
    for (int32_t part = 0; part < tensors.partitions; ++part) {
      Operation piece = joined;
      piece.size_bytes = all * (part + 1) / tensors.partitions - all * part / tensors.partitions;
      if (part > 0) {
        piece.name = Unused(absl::StrCat(name, "#", part + 1));
        piece.parameter = route_->PartOf(joined.parameter, part);
      }
      Add({.made = made, .operations = members, .part = part, .parts = tensors.partitions},
          std::move(piece), draft);
    }
  }

  std::string Unused(std::string name) {
    while (!names_.insert(name).second) name += "'";
    return name;
  }

  // Dependencies of the old profile become those of the new one; none is on itself. Of what is made
  // of an upload, its updates and its downloads each part waits for its own only.
  void Rewire(int32_t at, ProfileDraft& draft) const {
    const WrittenOperation& source = sources_[Index(at)];
    std::vector<int32_t> now;
    for (const int32_t old : draft.operations[Index(at)].waiting_for) {
      const bool is_own = (source.made == Made::kUpdate || source.made == Made::kDownload) &&
                          carried_[Index(old)] == carried_[Index(source.operations.front())];
      for (const int32_t operation : became_[Index(old)]) {
        if (operation == at) continue;
        const WrittenOperation& before = sources_[Index(operation)];
        if (is_own && (before.made == source.made || before.part != source.part)) continue;
        now.push_back(operation);
      }
    }
    std::sort(now.begin(), now.end());
    now.erase(std::unique(now.begin(), now.end()), now.end());
    draft.operations[Index(at)].waiting_for = std::move(now);
  }

  RecordedStep StepOf(const RecordedStep& old) const {
    RecordedStep now;
    now.start_ns.reserve(sources_.size());
    now.end_ns.reserve(sources_.size());
    for (const WrittenOperation& source : sources_) {
      const int32_t first = source.operations.front();
      const int32_t last = source.operations.back();
      switch (source.made) {
        case Made::kFused:
          now.start_ns.push_back(old.start_ns[Index(first)]);
          now.end_ns.push_back(now.start_ns.back() + costs_.NanosecondsOf(source.operations, old));
          break;
        case Made::kUpdate: {
          int64_t sum = 0;
          for (const int32_t operation : source.operations) sum += LengthNs(old, operation);
          now.start_ns.push_back(old.start_ns[Index(last)]);
          now.end_ns.push_back(now.start_ns.back() + sum * (source.part + 1) / source.parts -
                               sum * source.part / source.parts);
          break;
        }
        case Made::kDownload:
          now.start_ns.push_back(old.start_ns[Index(first)]);
          now.end_ns.push_back(old.end_ns[Index(first)]);
          break;
        default:
          now.start_ns.push_back(old.start_ns[Index(last)]);
          now.end_ns.push_back(old.end_ns[Index(last)]);
      }
    }
    return now;
  }

  const Profile& profile_;
  const std::vector<Operation>& operations_;
  const std::unique_ptr<const TensorRoute> route_;
  const Strategy& strategy_;
  const FusionCosts& costs_;
  std::vector<TensorOperations> tensors_;
  std::vector<int32_t> fused_;    // by operation, the list that it is in, or -1
  std::vector<int32_t> carried_;  // likewise, the tensors that it goes with
  std::vector<std::vector<int32_t>> became_;
  std::vector<WrittenOperation> sources_;  // by operation of the new profile
  std::set<std::string> names_;
};

}  // namespace

Strategy NothingFused(const Profile& profile) {
  Strategy strategy;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    if (IsGradient(profile.operations()[i]))
      strategy.tensors.push_back({.gradients = {static_cast<int32_t>(i)}});
  }
  return strategy;
}

absl::Status CheckParameters(const Profile& profile) {
  std::unordered_map<std::string_view, const Operation*> uploads;
  for (const Operation& operation : profile.operations()) {
    if (operation.resource != Resource::kUplink) continue;
    if (operation.parameter.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("upload ", Quoted(operation.name),
                       " names no parameter, so it is not known what goes with it"));
    }
    const auto [at, is_new] = uploads.try_emplace(operation.parameter, &operation);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat("uploads ", Quoted(at->second->name), " and ", Quoted(operation.name),
                       " are both of parameter ", Quoted(operation.parameter)));
    }
  }
  if (uploads.empty()) return absl::InvalidArgumentError("nothing is uploaded to a server");
  return absl::OkStatus();
}

absl::StatusOr<AppliedStrategy> Apply(const Profile& profile, const Scenario& scenario,
                                      const Strategy& strategy, const FusionCosts& costs) {
  return StrategyWriter(profile, scenario, strategy, costs).Write();
}

}  // namespace stepcast
