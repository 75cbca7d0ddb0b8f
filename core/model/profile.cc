#include "core/model/profile.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/model/validate_profile.h"

namespace stepcast {

namespace {

// The share by which bytes may be faster than the link, as a burst, and by which transfers must be
// slower than it to have waited.
constexpr double kTransferTolerance = 0.02;

// Nanoseconds of one step's transfers of a connection and direction, and sums of them.
struct TransferTimes {
  double of_bytes = 0;   // at the platform's bandwidth
  double under_way = 0;  // one of them at least
  double lasted = 0;     // each by itself
};

// `transfers`: indices of operations. Sorts them.
TransferTimes TimesOf(const ProfileDraft& draft, const RecordedStep& step,
                      std::vector<size_t>& transfers) {
  std::sort(transfers.begin(), transfers.end(),
            [&](size_t a, size_t b) { return step.start_ns[a] < step.start_ns[b]; });
  TransferTimes times;
  int64_t end = INT64_MIN;
  for (const size_t i : transfers) {
    times.of_bytes += static_cast<double>(draft.operations[i].size_bytes) * 1e9 /
                      draft.platform.bandwidth_bytes_per_second;
    times.lasted += static_cast<double>(step.end_ns[i] - step.start_ns[i]);
    if (step.end_ns[i] <= end) continue;
    times.under_way += static_cast<double>(step.end_ns[i] - std::max(end, step.start_ns[i]));
    end = step.end_ns[i];
  }
  return times;
}

// See Profile::knows_transfer_order.
bool KnowsTransferOrder(const ProfileDraft& draft) {
  if (draft.framework == kZooFramework || draft.framework == kLayersFramework ||
      draft.framework == kTimelineFramework)
    return false;
  std::map<std::pair<Resource, int32_t>, std::vector<size_t>> connections;
  for (size_t i = 0; i < draft.operations.size(); ++i) {
    const Operation& operation = draft.operations[i];
    if (IsTransfer(operation.resource) && operation.size_bytes > 0)
      connections[{operation.resource, operation.parameter_server}].push_back(i);
  }
  TransferTimes sum;
  for (const RecordedStep& step : draft.steps) {
    for (auto& [connection, transfers] : connections) {
      const TransferTimes times = TimesOf(draft, step, transfers);
      if (times.of_bytes > (1 + kTransferTolerance) * times.under_way) return false;
      sum.of_bytes += times.of_bytes;
      sum.under_way += times.under_way;
      sum.lasted += times.lasted;
    }
  }
  return sum.lasted > (1 + kTransferTolerance) * std::max(sum.of_bytes, sum.under_way);
}

}  // namespace

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

std::string_view PassName(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return "FORWARD";
    case Pass::kBackward:
      return "BACKWARD";
    case Pass::kBackwardInput:
      return "BACKWARD_INPUT";
    case Pass::kBackwardWeight:
      return "BACKWARD_WEIGHT";
    case Pass::kOptimizer:
      return "OPTIMIZER";
    case Pass::kOther:
      return "OTHER";
    case Pass::kDataLoading:
      return "DATA_LOADING";
    case Pass::kUnspecified:
      break;
  }
  return "PASS_UNSPECIFIED";
}

Profile::Profile(std::shared_ptr<const ProfileDraft> content)
    : content_(std::move(content)),
      has_collectives_(std::any_of(
          content_->operations.begin(), content_->operations.end(),
          [](const Operation& operation) { return operation.resource == Resource::kCollective; })),
      knows_transfer_order_(KnowsTransferOrder(*content_)) {
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
