#include "server/handlers/request_faults.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepcast::server {

absl::Status WithFaults(std::vector<Fault> faults, const absl::Status& status) {
  if (faults.empty()) return status;
  ErrorDetails details = DetailsOf(status);
  if (details.faults.empty()) details = {.reason = "REQUEST_INVALID"};
  const size_t own = faults.size();
  for (Fault& fault : details.faults) {
    const bool known =
        std::any_of(faults.begin(), faults.begin() + static_cast<std::ptrdiff_t>(own),
                    [&](const Fault& other) { return other.field == fault.field; });
    if (!known) faults.push_back(std::move(fault));
  }
  const Fault& first = faults.front();
  std::string message = absl::StrCat(first.field, ": ", first.description);
  const size_t others = faults.size() - 1 + details.faults_left_out;
  if (others > 0) absl::StrAppend(&message, " (and ", others, " more)");
  details.faults = std::move(faults);
  return MakeError(absl::StatusCode::kInvalidArgument, message, std::move(details));
}

std::vector<Fault> FaultsUnder(const std::string& prefix, std::vector<Fault> faults) {
  for (Fault& fault : faults) fault.field = absl::StrCat(prefix, ".", fault.field);
  return faults;
}

}  // namespace stepcast::server
