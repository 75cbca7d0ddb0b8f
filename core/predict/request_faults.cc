#include "core/predict/request_faults.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/communication/all_reduce.h"
#include "core/communication/job.h"

namespace stepcast {

void RequestFaults::AddPart(std::string_view path, const absl::Status& status,
                            const std::map<std::string, std::string>& renamed) {
  if (status.ok()) return;
  const absl::Status placed = UnderPath(path, status);
  if (placed.code() != absl::StatusCode::kInvalidArgument) {
    if (other_.ok()) other_ = placed;
    return;
  }
  for (Fault& fault : DetailsOf(placed).faults) {
    const auto other_name = renamed.find(fault.field);
    Add(other_name == renamed.end() ? fault.field : other_name->second,
        std::move(fault.description));
  }
}

void RequestFaults::Add(std::string field, std::string description) {
  if (faults_.size() >= kMaxKept) return;
  Fault fault{.field = std::move(field), .description = std::move(description)};
  if (std::find(faults_.begin(), faults_.end(), fault) == faults_.end())
    faults_.push_back(std::move(fault));
}

absl::Status RequestFaults::ToStatus(std::string_view reason) && {
  if (!faults_.empty()) return FaultsError(reason, std::move(faults_));
  return other_;
}

ScenarioDraft WithVariedWorkers(const ScenarioDraft& draft, const std::string& because,
                                RequestFaults& faults) {
  ScenarioDraft varied = draft;
  faults.AddIf(draft.workers.has_value(), "scenario.workers", "is ", draft.workers,
               ", but must be unset: ", because);
  faults.AddIf(!draft.start_offsets_ns.empty(), "scenario.start_offsets_ns",
               draft.start_offsets_ns.size(), " given, must be empty: ", because);
  faults.AddIf(!draft.worker_groups.empty(), "scenario.worker_groups", draft.worker_groups.size(),
               " given, must be empty: ", because);
  varied.workers.reset();
  varied.start_offsets_ns.clear();
  varied.worker_groups.clear();
  return varied;
}

absl::StatusOr<Scenario> ResolveWithServers(const Profile& profile, const ScenarioDraft& draft,
                                            int32_t servers, int32_t most,
                                            const ScenarioLimits& limits) {
  ScenarioDraft chosen = draft;
  chosen.servers().servers = servers;
  absl::StatusOr<Scenario> scenario = ResolveRunnable(profile, chosen, nullptr, limits);
  if (scenario.ok() && most > 1 && scenario->assumed.Has(Assumed::kLinkSharing))
    scenario->servers().link_sharing = UsualSharing(profile, /*on_two_links=*/true);
  return scenario;
}

BeforeServers ResolveBeforeServers(const Profile& profile, const ScenarioDraft& draft, bool chooses,
                                   const ScenarioLimits& limits) {
  // A choice of servers does not make servers of collectives.
  BeforeServers before{.scenario = chooses && !profile.has_collectives()
                                       ? ResolveWithServers(profile, draft, 1, 1, limits)
                                       : ResolveRunnable(profile, draft, nullptr, limits)};
  before.has_none = before.scenario.ok() ? before.scenario->server_count() == 0
                                         : chooses && profile.has_collectives();
  return before;
}

void CheckHorizonOfPipelines(Horizon horizon, RequestFaults& faults) {
  if (horizon == Horizon::kFirstSeconds)
    faults.Add("options.horizon", "FIRST_SECONDS is not of pipelines");
}

absl::StatusOr<Scenario> ResolveRunnable(const Profile& profile, const ScenarioDraft& draft,
                                         const Scenario* known, const ScenarioLimits& limits) {
  absl::StatusOr<Scenario> scenario = ResolveScenario(profile, draft, limits);
  if (!scenario.ok() || scenario->pipeline.has_value()) return scenario;
  if (known != nullptr && HaveSameJobProgram(*known, *scenario)) return scenario;
  if (absl::Status status = CheckCollectives(profile, *scenario); !status.ok()) return status;
  return scenario;
}

}  // namespace stepcast
