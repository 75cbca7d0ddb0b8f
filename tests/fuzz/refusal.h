// The form of every refusal of the service.
#pragma once

#include <initializer_list>

#include "absl/status/status.h"

namespace stepcast::fuzz {

// Demands that `status` has one of `codes`, a message, and a reason, and that what goes over the
// wire of it is UTF-8, within its bounds, and can be read back. REQUIRES: !status.ok().
void DemandSoundRefusal(const absl::Status& status,
                        std::initializer_list<absl::StatusCode> codes = {
                            absl::StatusCode::kInvalidArgument});

}  // namespace stepcast::fuzz
