// The text form of a layer profile, read and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/model/profile.h"

namespace stepcast {

struct MeasuredLayer {
  int64_t number = 0;  // K of nodeK
  std::string type;    // the leading word of its operation, for instance "Conv2d"
  double forward_ms = 0;
  double backward_ms = 0;
  int64_t parameter_bytes = 0;
  std::vector<int32_t> inputs;  // indices of earlier layers
  int64_t line = 0;             // of the text, from 1

  // Data loading.
  bool is_input() const { return type == "Input"; }
  std::string name() const { return "node" + std::to_string(number) + "/" + type; }
};

// The layers so that each comes after its inputs; where that leaves a choice, by number. Lines may
// come in any order.
//
// Adds a fault at `line N` for each line that is neither a layer nor an edge nor blank, each value
// that is missing, twice there, no number or out of bounds, each layer or edge that is there twice,
// each edge of unknown layers, into data loading or from a layer to itself, and one for a cycle;
// the result is then of no use. Stops at the first line that passes a limit. Cost: O(n log n) in
// the text; whatever bytes it is.
std::vector<MeasuredLayer> ParseLayerGraph(std::string_view text, const ProfileLimits& limits,
                                           FaultList& faults);

// Between the fields of a line, and the two ends of an edge.
inline constexpr char kLayerSeparator[] = " -- ";

// K of `nodeK`; empty if it is anything else, or too large for an int64.
std::optional<int64_t> ParseNode(std::string_view text);

// Reads a line that describes a layer: `nodeK -- Op -- key=value, ...`. Appends to `wrong` what is
// wrong with the line, if anything is; the layer is then of no use. Keys
// other than forward_compute_time, backward_compute_time and parameter_size are not looked into.
MeasuredLayer ParseLayerLine(std::string_view line, const ProfileLimits& limits,
                             std::vector<std::string>& wrong);

}  // namespace stepcast
