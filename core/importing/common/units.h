// The units of recordings, and their texts in the form that absl takes.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace stepcast {

inline constexpr double kNsPerMs = 1e6;
inline constexpr double kMebibyte = 1 << 20;

// Debian 12's absl has a string_view of its own.
inline absl::string_view AbslView(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace stepcast
