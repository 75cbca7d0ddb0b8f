// The variables that recorded operations belong to.
#pragma once

#include <cstdint>
#include <vector>

#include "core/importing/graph_dependencies.h"
#include "core/importing/tensorflow_graph.h"
#include "core/model/profile.h"

namespace stepcast {

// Sets the parameter of each operation of a server that is, hands on, reads or updates a variable,
// of each download that carries one, and of each upload that the update of exactly one variable
// waits for. Returns the number of transfers without one. `recorded`: parallel to the operations.
int64_t NameParameters(const TensorflowGraph& graph, const GraphDependencies& dependencies,
                       const std::vector<int32_t>& recorded, std::vector<Operation>& operations);

}  // namespace stepcast
