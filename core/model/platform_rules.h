// The rules of what describes machines and links, wherever it is given: in a profile, a scenario or
// an import's options.
#pragma once

#include <string_view>

#include "core/model/fault_list.h"
#include "core/model/profile.h"

namespace stepcast {

// Longest time a receiver may need for a tensor's byte and for a tensor: beyond them a unit was
// mistaken.
inline constexpr double kMaxOverheadSecondsPerByte = 1;
inline constexpr double kMaxOverheadSeconds = 3600;

// A fault at `path` unless the value is finite and from Bandwidth::kMinBytesPerSecond to
// Bandwidth::kMaxBytesPerSecond.
void CheckBandwidth(std::string_view path, double bytes_per_second, FaultList& faults);

// A fault below `path` for each coefficient that is not finite, negative, or above its constant.
void CheckParsingOverhead(std::string_view path, const ParsingOverhead& overhead,
                          FaultList& faults);

// All of the above, and a window that is not negative; paths below `path`.
void CheckPlatform(std::string_view path, const Platform& platform, FaultList& faults);

}  // namespace stepcast
