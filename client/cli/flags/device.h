// Devices by name, whose peak rates say how fast one is beside another.
//
// Presets are data, client/devices/presets.json, each with its maker's data sheet: dense rates of
// 16 and 32 bits in TFLOP/s (matrix units at 16 bits, vector units at 32), and of memory in GB/s.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stepcast::client {

// The file of presets, as it is in the tree.
extern const std::string_view kDevicePresets;

// The speed of devices over that of the recorded one.
struct ComputeSpeed {
  double factor = 1;
  std::string told;  // lines for people on where it is from; empty: it was given as a number
};

// A number, or NEW/RECORDED or NEW/RECORDED:fp32 of devices' names: the ratio of their peak rates.
// Failure: INVALID_ARGUMENT; of a name that is not known with all that are.
absl::StatusOr<ComputeSpeed> ParseComputeSpeed(const std::string& text);

}  // namespace stepcast::client
