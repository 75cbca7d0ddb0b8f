// Profiles built from published network architectures: no file, no GPU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "core/model/profile.h"
#include "core/model/step_schedule.h"

namespace stepcast {

struct ZooOptions {
  int32_t batch_size = 32;
  Platform platform;                      // bandwidth is required
  double device_flops_per_second = 5e12;  // computation time = FLOPs / this
  StepVariationDraft variation;           // nothing was recorded
};

// Names accepted by BuildZooProfile, in ascending order.
std::vector<std::string_view> ZooModels();

// Fails with INVALID_ARGUMENT, reason IMPORT_INVALID, and every fault with its path relative to
// ModelZooOptions (`model`, `platform.bandwidth_bytes_per_second`).
absl::StatusOr<Profile> BuildZooProfile(std::string_view model, const ZooOptions& options,
                                        const ProfileLimits& limits = {});

}  // namespace stepcast
