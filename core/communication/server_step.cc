#include "core/communication/server_step.h"

#include <algorithm>
#include <utility>

#include "core/communication/full_sharding.h"
#include "core/communication/step_overlap.h"

namespace stepcast {

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
