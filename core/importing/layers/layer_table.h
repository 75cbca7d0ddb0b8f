// Tables of layers: the forward and backward time, the output and the parameters of each, a row a
// layer, in the order in which they run.
#pragma once

#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/model/made_steps.h"
#include "core/model/profile.h"

namespace stepcast {

// A table's layers; each feeds the next.
struct LayerTable {
  std::vector<TrainingLayer> layers;
  int64_t optimizer_ns = 0;  // of all layers at once
  int64_t bounded = 0;       // layers with the time of a larger micro-batch, which took less
};

// The entry of a Sailor's profile that is meant.
struct SailorChoice {
  int32_t batch_size = 0;    // the micro-batch
  int32_t tensor_width = 0;  // 0: the only one there is of that micro-batch
  std::string_view sizes;    // the text of Sailor's training configuration; empty: not given
};

// True if the text may be a profile of Sailor's: an object of JSON that was given with Sailor's
// configuration, or whose first key is a number.
bool IsSailorProfile(std::string_view text, bool has_configuration);

// JSON of micro-batch, tensor width and layer, to the seconds of its forward and backward pass and
// of the optimizer. The optimizer's count once, the longest of all layers', as Sailor's simulator
// counts them. A layer that takes longer than with a larger micro-batch has the time of that one,
// whose examples it could leave empty. Sizes are those of a transformer in float32, from
// hidden_size, sequence_length, num_layers, vocab_size and max_position_embeddings (0 where it is
// not given) of the configuration: the first layer is its embedding, the last its head. `width` is
// the tensor width chosen. Adds faults at `recording`, `graph` (of the configuration), `batch_size`
// and `tensor_parallel`; the result is then of no use. Source: eth-easl/sailor, its profiler's
// files.
LayerTable ParseSailorProfile(std::string_view text, const SailorChoice& choice,
                              const ProfileLimits& limits, FaultList& faults, int32_t& width);

// True if the first line that is neither blank nor a comment names columns of such a table.
bool IsLayerTable(std::string_view text);

// Columns, in any order, divided by commas, semicolons or tabs: forward_ms and backward_ms, or
// instead of it backward_input_ms and backward_weight_ms, which are required, name (else the row's
// number), activation_bytes (of the output, of one micro-batch),
// parameter_bytes, kept_bytes (until the backward pass) and optimizer_ms, each 0 where it is not
// given. Blank lines and those that begin with # are passed over. Adds a fault at `line N` for each
// value that is missing, no number or out of bounds, for each column that is unknown or there
// twice, and for names that are there twice; the result is then of no use. A cell may be quoted, as
// RFC 4180 has it, on one line. Cost: linear.
LayerTable ParseLayerTable(std::string_view text, const ProfileLimits& limits, FaultList& faults);

}  // namespace stepcast
