// A serialised GraphDef, read node by node.
#pragma once

#include "absl/status/status.h"

#include "core/importing/tensorflow_graph.h"
#include "core/importing/wire_reader.h"

namespace stepcast {

// Reads the GraphDef that is the reader's next message. Constants and whatever else is not needed
// are passed over without being kept.
absl::Status ReadNestedGraph(WireReader& reader, TensorflowGraph& graph);
// The same where the GraphDef is all there is.
absl::Status ReadWholeGraph(WireReader& reader, TensorflowGraph& graph);

}  // namespace stepcast
