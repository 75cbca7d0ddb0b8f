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
  for (const RecordedStep& step : content_->steps)
    mean_step_ns_ += static_cast<double>(*std::max_element(step.end_ns.begin(), step.end_ns.end()));
  mean_step_ns_ /= static_cast<double>(content_->steps.size());
}

Profile Profile::OfWorker(int32_t worker) const {
  auto alone = std::make_shared<ProfileDraft>(*content_);
  alone->recording.reset();
  if (worker > 0) alone->steps = steps_of(worker);
  return Profile(std::move(alone));
}

Profile Profile::OfWorkers(const std::vector<int32_t>& workers) const {
  auto chosen = std::make_shared<ProfileDraft>(*content_);
  std::vector<WorkerRecording>& recorded = chosen->recording->workers;
  recorded.clear();
  chosen->steps = steps_of(workers.front());
  for (const int32_t worker : workers) {
    recorded.push_back(content_->recording->workers[Index(worker)]);
    recorded.back().steps.clear();
    if (recorded.size() > 1) recorded.back().steps = steps_of(worker);
  }
  return Profile(std::move(chosen));
}

absl::StatusOr<Profile> Profile::Create(ProfileDraft draft, const ProfileLimits& limits) {
  std::vector<Fault> faults = ValidateProfile(draft, limits);
  if (!faults.empty()) return FaultsError("PROFILE_INVALID", std::move(faults));
  return Profile(std::make_shared<const ProfileDraft>(std::move(draft)));
}

}  // namespace stepcast
