// Import of layer profiles: measured forward and backward times, parameter bytes and edges, one
// layer a line.
//
// Formats, told by the text itself: a table with a header, or a profile of Sailor's
// (layer_table.h), which become a step of all-reduce training; or lines `nodeK -- Op -- key=value,
// ...` with forward_compute_time, backward_compute_time (milliseconds) and parameter_size (bytes),
// and edges `<tab>nodeA -- nodeB`, which become a step against a parameter server. The node whose
// Op is Input is data loading: its time is no computation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "core/importing/common/recording_import.h"
#include "core/model/made_steps.h"
#include "core/model/profile.h"

namespace stepcast {

struct LayerProfileOptions {
  std::string model;
  int32_t batch_size = 0;        // required
  Platform platform;             // bandwidth is required
  StepVariationDraft variation;  // the text has mean times only
  int32_t tensor_parallel = 0;   // of a profile of Sailor's; 0: the only one there is
  std::string sizes;             // likewise, its training configuration; empty: not given
};

// Makes of a table the operations of BuildAllReduceGraph. Of other text, per layer in graph order:
// a download if it has parameters, a forward operation (waits for its download and the forward
// operations of the layers before it), a backward operation (waits for those of the layers after
// it), an upload of the gradient, and an update on the server. Fails with INVALID_ARGUMENT, reason
// IMPORT_INVALID: faults of the text have the path `line N`, those of the options their field's.
absl::StatusOr<ImportedProfile> ImportLayerProfile(std::string_view text,
                                                   const LayerProfileOptions& options,
                                                   const ProfileLimits& limits = {});

}  // namespace stepcast
