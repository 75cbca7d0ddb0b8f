// One line of a layer profile that describes a layer: `nodeK -- Op -- key=value, ...`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/importing/layer_graph.h"
#include "core/model/profile_limits.h"

namespace stepcast {

// Between the fields of a line, and the two ends of an edge.
inline constexpr char kLayerSeparator[] = " -- ";

// K of `nodeK`; empty if it is anything else, or too large for an int64.
std::optional<int64_t> ParseNode(std::string_view text);

// Appends to `wrong` what is wrong with the line, if anything is; the layer is then of no use. Keys
// other than forward_compute_time, backward_compute_time and parameter_size are not looked into.
MeasuredLayer ParseLayerLine(std::string_view line, const ProfileLimits& limits,
                             std::vector<std::string>& wrong);

}  // namespace stepcast
