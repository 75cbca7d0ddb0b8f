// Profiles built from published network architectures: no file, no GPU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "core/model/made_steps.h"
#include "core/model/profile.h"

namespace stepcast {

// The way the workers of the job meet, which decides on the networks there are: with parameter
// servers those of TF-slim, with all-reduces those of torchvision and HuggingFace's transformers.
enum class ZooCommunication : uint8_t { kParameterServers, kAllReduce };

struct ZooOptions {
  int32_t batch_size = 32;
  Platform platform;                      // bandwidth is required
  double device_flops_per_second = 5e12;  // computation time = FLOPs / this
  StepVariationDraft variation;           // nothing was recorded
  ZooCommunication communication = ZooCommunication::kParameterServers;
};

// Names accepted by BuildZooProfile for such jobs, in ascending order.
std::vector<std::string_view> ZooModels(
    ZooCommunication communication = ZooCommunication::kParameterServers);

// A profile as one worker alone would have recorded it. Every layer's output is kept for the
// backward pass, in float32.
//
// kAllReduce: one ALL_REDUCE a gradient tensor, in the order in which PyTorch makes them ready
// (BuildAllReduceGraph), which DistributedDataParallel's default buckets fuse, and an optimizer's
// step after them.
// Fails with INVALID_ARGUMENT, reason IMPORT_INVALID, and every fault with its path relative to
// ModelZooOptions (`model`, `platform.bandwidth_bytes_per_second`).
absl::StatusOr<Profile> BuildZooProfile(std::string_view model, const ZooOptions& options,
                                        const ProfileLimits& limits = {});

}  // namespace stepcast
