// The union of the faults that several checks of one request found.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "core/base/error.h"

namespace stepcast::server {

// `status` with `faults` before its own, one fault a field, under its reason. `faults` come first
// because they are about what the core never saw, so a status that is not about faults
// (UNIMPLEMENTED, NOT_FOUND) gives way to them: reason REQUEST_INVALID. Without any, `status` as it
// is.
absl::Status WithFaults(std::vector<Fault> faults, const absl::Status& status);

// The same faults under a longer path.
std::vector<Fault> FaultsUnder(const std::string& prefix, std::vector<Fault> faults);

}  // namespace stepcast::server
