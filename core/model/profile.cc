#include "core/model/profile.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/model/validate_profile.h"

namespace stepcast {

std::string_view ResourceName(Resource resource) {
  switch (resource) {
    case Resource::kDownlink:
      return "DOWNLINK";
    case Resource::kWorker:
      return "WORKER";
    case Resource::kUplink:
      return "UPLINK";
    case Resource::kParameterServer:
      return "PARAMETER_SERVER";
    case Resource::kCollective:
      return "COLLECTIVE";
    case Resource::kUnspecified:
      break;
  }
  return "RESOURCE_UNSPECIFIED";
}

Profile::Profile(std::shared_ptr<const ProfileDraft> content)
    : content_(std::move(content)),
      has_collectives_(std::any_of(
          content_->operations.begin(), content_->operations.end(),
          [](const Operation& operation) { return operation.resource == Resource::kCollective; })) {
  auto means = std::make_shared<std::vector<double>>();
  means->reserve(Index(recorded_workers()));
  for (int32_t worker = 0; worker < recorded_workers(); ++worker) {
    double sum = 0;
    for (const RecordedStep& step : steps_of(worker))
      sum += static_cast<double>(*std::max_element(step.end_ns.begin(), step.end_ns.end()));
    means->push_back(sum / static_cast<double>(content_->steps.size()));
  }
  mean_step_ns_ = std::move(means);
}

Profile Profile::OfWorkers(const std::vector<int32_t>& workers) const {
  Profile chosen = *this;
  chosen.workers_.clear();
  chosen.workers_.reserve(workers.size());
  for (const int32_t worker : workers) chosen.workers_.push_back(RecordedAs(worker));
  return chosen;
}

absl::StatusOr<Profile> Profile::Create(ProfileDraft draft, const ProfileLimits& limits) {
  std::vector<Fault> faults = ValidateProfile(draft, limits);
  if (!faults.empty()) return FaultsError("PROFILE_INVALID", std::move(faults));
  return Profile(std::make_shared<const ProfileDraft>(std::move(draft)));
}

}  // namespace stepcast
