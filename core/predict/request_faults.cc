#include "core/predict/request_faults.h"

#include <algorithm>
#include <utility>

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

}  // namespace stepcast
