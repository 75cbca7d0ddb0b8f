// The names of a recording's operations.
#pragma once

#include <cstdint>
#include <vector>

#include "core/importing/recorded_rows.h"
#include "core/model/profile.h"

namespace stepcast {

// Names each operation by the node it was recorded as, so that no two are called the same: see
// recorded_operations.h. The names do not depend on the order of the nodes.
void NameOperations(const RecordedRows& rows, const std::vector<int32_t>& recorded,
                    std::vector<Operation>& operations);

}  // namespace stepcast
