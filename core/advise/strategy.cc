#include "core/advise/strategy.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/communication/all_reduce.h"
#include "core/model/scenario_edits.h"

namespace stepcast {

namespace {

// The operations of a profile that a group of gradients takes along.
struct TensorOperations {
  std::vector<int32_t> gradients;
  std::vector<int32_t> updates;    // on parameter servers, of what was uploaded
  std::vector<int32_t> downloads;  // of their parameters
  int32_t partitions = 1;
};

// The upload that each operation of a server's parameter belongs to, by operation; -1: to none. An
// update is one that waits, directly or not, for its parameter's upload; a download of a parameter
// that is not uploaded stays as it is.
std::vector<int32_t> UploadsOf(const std::vector<Operation>& operations) {
  std::vector<int32_t> upload_of(operations.size(), -1);
  std::unordered_map<std::string_view, int32_t> uploads;
  std::vector<std::vector<int32_t>> dependents(operations.size());
  std::vector<int32_t> left;
  for (size_t i = 0; i < operations.size(); ++i) {
    const auto at = static_cast<int32_t>(i);
    for (const int32_t before : operations[i].waiting_for) dependents[Index(before)].push_back(at);
    if (operations[i].resource != Resource::kUplink) continue;
    uploads.emplace(operations[i].parameter, at);
    upload_of[i] = at;
    left.push_back(at);
  }
  // Its server's work follows an upload without anything of a worker in between.
  while (!left.empty()) {
    const int32_t before = left.back();
    left.pop_back();
    for (const int32_t after : dependents[Index(before)]) {
      const Operation& operation = operations[Index(after)];
      if (upload_of[Index(after)] >= 0 || operation.resource != Resource::kParameterServer ||
          operation.parameter != operations[Index(upload_of[Index(before)])].parameter)
        continue;
      upload_of[Index(after)] = upload_of[Index(before)];
      left.push_back(after);
    }
  }
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].resource != Resource::kDownlink) continue;
    const auto found = uploads.find(operations[i].parameter);
    if (found != uploads.end()) upload_of[i] = found->second;
  }
  return upload_of;
}

// Writes the operations of a job with a strategy, and their times.
class StrategyWriter {
 public:
  StrategyWriter(const Profile& profile, const Scenario& scenario, const Strategy& strategy,
                 const FusionCosts& costs)
      : profile_(profile),
        operations_(profile.operations()),
        scenario_(scenario),
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
    if (scenario_.has_servers()) PlaceParts(draft);
    RewriteSteps(draft, [this](const RecordedStep& old) { return StepOf(old); });
    Scenario scenario = ScenarioOf(draft);
    absl::StatusOr<Profile> written = Profile::Create(std::move(draft));
    if (!written.ok()) return written.status();
    return AppliedStrategy{.profile = *std::move(written), .scenario = std::move(scenario)};
  }

 private:
  enum class Made : uint8_t { kAsIs, kFused, kGradient, kUpdate, kDownload };
  // An operation of the new profile: what it is made of, and the part of it that it is.
  struct Source {
    Made made = Made::kAsIs;
    std::vector<int32_t> operations;
    int32_t part = 0;
    int32_t parts = 1;
  };

  // Groups of gradients with what they take along. One gradient that goes whole to a server as it
  // did stays as it is.
  void FindTensors() {
    std::vector<int32_t> group_of(operations_.size(), -1);
    for (const FusedTensors& group : strategy_.tensors) {
      if (scenario_.has_servers() && group.gradients.size() == 1 && group.partitions == 1) continue;
      for (const int32_t member : group.gradients)
        group_of[Index(member)] = static_cast<int32_t>(tensors_.size());
      tensors_.push_back({.gradients = group.gradients, .partitions = group.partitions});
    }
    carried_ = group_of;
    if (!scenario_.has_servers()) return;
    const std::vector<int32_t> uploads = UploadsOf(operations_);
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (uploads[i] < 0 || operations_[i].resource == Resource::kUplink) continue;
      const int32_t group = group_of[Index(uploads[i])];
      if (group < 0) continue;
      carried_[i] = group;
      TensorOperations& tensors = tensors_[Index(group)];
      (operations_[i].resource == Resource::kDownlink ? tensors.downloads : tensors.updates)
          .push_back(static_cast<int32_t>(i));
    }
  }

  void Add(Source source, Operation operation, ProfileDraft& draft) {
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
    if (scenario_.has_servers()) {
      joined.parameter = operations_[Index(tensors.gradients.back())].parameter;
    } else if (members.size() > 1) {
      joined.parameter.clear();
    }
    const int64_t all = joined.size_bytes;
    const std::string name = joined.name;
    for (int32_t part = 0; part < tensors.partitions; ++part) {
      Operation piece = joined;
      piece.size_bytes = all * (part + 1) / tensors.partitions - all * part / tensors.partitions;
      if (part > 0) {
        piece.name = Unused(absl::StrCat(name, "#", part + 1));
        if (!scenario_.has_servers()) {
          piece.parameter.clear();
        } else {
          absl::StrAppend(&piece.parameter, "#", part + 1);
        }
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
    const Source& source = sources_[Index(at)];
    std::vector<int32_t> now;
    for (const int32_t old : draft.operations[Index(at)].waiting_for) {
      const bool is_own = (source.made == Made::kUpdate || source.made == Made::kDownload) &&
                          carried_[Index(old)] == carried_[Index(source.operations.front())];
      for (const int32_t operation : became_[Index(old)]) {
        if (operation == at) continue;
        const Source& before = sources_[Index(operation)];
        if (is_own && (before.made == source.made || before.part != source.part)) continue;
        now.push_back(operation);
      }
    }
    std::sort(now.begin(), now.end());
    now.erase(std::unique(now.begin(), now.end()), now.end());
    draft.operations[Index(at)].waiting_for = std::move(now);
  }

  // Gives groups and parts their servers. On another number of servers than recorded everything is
  // placed by its parameter (PlaceParameters).
  void PlaceParts(ProfileDraft& draft) const {
    std::vector<int64_t> load(Index(draft.parameter_servers), 0);
    std::unordered_map<std::string_view, int64_t> bytes;
    for (const Operation& operation : draft.operations) {
      if (!IsTransfer(operation.resource)) continue;
      int64_t& most = bytes[operation.parameter];
      most = std::max(most, operation.size_bytes);
    }
    for (size_t i = 0; i < draft.operations.size(); ++i) {
      const Operation& operation = draft.operations[i];
      if (sources_[i].made == Made::kAsIs && operation.resource == Resource::kUplink)
        load[Index(operation.parameter_server)] += bytes[operation.parameter];
    }
    std::unordered_map<std::string_view, int32_t> placed;
    for (size_t i = 0; i < draft.operations.size(); ++i) {
      Operation& operation = draft.operations[i];
      if (sources_[i].made == Made::kAsIs || operation.resource == Resource::kWorker) continue;
      const auto [at, is_new] = placed.try_emplace(operation.parameter, 0);
      if (is_new) {
        const auto least = std::min_element(load.begin(), load.end());
        at->second = static_cast<int32_t>(least - load.begin());
        *least += bytes[operation.parameter];
      }
      operation.parameter_server = at->second;
    }
  }

  RecordedStep StepOf(const RecordedStep& old) const {
    RecordedStep now;
    now.start_ns.reserve(sources_.size());
    now.end_ns.reserve(sources_.size());
    for (const Source& source : sources_) {
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

  // Ranks of every transfer that names its parameter.
  static std::map<std::string, int32_t> RanksByLayer(const ProfileDraft& draft) {
    std::unordered_map<std::string_view, int32_t> rank_of;
    const auto add = [&](const Operation& operation) {
      rank_of.try_emplace(operation.parameter, static_cast<int32_t>(rank_of.size()));
    };
    for (const Operation& operation : draft.operations) {
      if (operation.resource == Resource::kDownlink && operation.waiting_for.empty())
        add(operation);
    }
    for (size_t i = draft.operations.size(); i > 0; --i) {
      if (draft.operations[i - 1].resource == Resource::kUplink) add(draft.operations[i - 1]);
    }
    std::map<std::string, int32_t> ranks;
    for (const Operation& operation : draft.operations) {
      const auto found = rank_of.find(operation.parameter);
      if (IsTransfer(operation.resource) && found != rank_of.end())
        ranks.emplace(operation.name, found->second);
    }
    return ranks;
  }

  Scenario ScenarioOf(const ProfileDraft& draft) const {
    if (!scenario_.has_servers()) return WithFusion(scenario_, Fusion{}, 0);
    Scenario scenario = scenario_;
    scenario.servers().partition_bytes = 0;  // parts are the strategy's
    if (strategy_.by_layer) {
      scenario.servers().transfer_order = TransferOrder::kExplicit;
      scenario.servers().transfer_priorities = RanksByLayer(draft);
      return scenario;
    }
    const std::map<std::string, int32_t>& asked = scenario_.servers().transfer_priorities;
    std::map<std::string, int32_t>& ranks = scenario.servers().transfer_priorities;
    ranks.clear();
    for (size_t i = 0; i < draft.operations.size() && !asked.empty(); ++i) {
      for (const int32_t old : sources_[i].operations) {
        const auto found = asked.find(operations_[Index(old)].name);
        if (found == asked.end()) continue;
        const auto [at, is_new] = ranks.try_emplace(draft.operations[i].name, found->second);
        if (!is_new) at->second = std::min(at->second, found->second);
      }
    }
    return scenario;
  }

  const Profile& profile_;
  const std::vector<Operation>& operations_;
  const Scenario& scenario_;
  const Strategy& strategy_;
  const FusionCosts& costs_;
  std::vector<TensorOperations> tensors_;
  std::vector<int32_t> fused_;    // by operation, the list that it is in, or -1
  std::vector<int32_t> carried_;  // likewise, the tensors that it goes with
  std::vector<std::vector<int32_t>> became_;
  std::vector<Source> sources_;  // by operation of the new profile
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
  absl::StatusOr<AppliedStrategy> applied =
      StrategyWriter(profile, scenario, strategy, costs).Write();
  if (!applied.ok() || scenario.has_servers()) return applied;
  if (absl::Status status = CheckCollectives(applied->profile, applied->scenario); !status.ok())
    return status;
  return applied;
}

}  // namespace stepcast
