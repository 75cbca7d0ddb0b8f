// The configuration file: a YAML map from the names of flags, without their dashes, to values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/app/given_setting.h"

namespace stepcast::server {

inline constexpr size_t kMaxConfigBytes = size_t{1} << 20;

// In the order of the file; which names there are is not known here. An empty file gives nothing.
// INVALID_ARGUMENT, reason CONFIG_INVALID, with every fault and its line: no file, too large, not
// YAML, not a map of plain values, a key twice.
absl::StatusOr<std::vector<GivenSetting>> ReadConfigFile(const std::string& path);

}  // namespace stepcast::server
