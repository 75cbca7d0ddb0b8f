// The check that traces of ranks are those of one replica of a pipeline, all of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "core/importing/pytorch/pipeline_ranks.h"

namespace stepcast {

// "4 of 1310720 bytes".
std::string TensorsOf(const std::map<int64_t, int64_t>& tensors);

// The first rank sends on alone, the last back alone, all others both ways, and each what its
// neighbours receive. Ranks of replicas lie in a grid, as of a device mesh: those of one are
// equally far apart, and all replicas together make up the job. What numbers cannot tell is added
// to `doubts`. Failure: INVALID_ARGUMENT, reason IMPORT_INVALID, at the path of the rank that
// contradicts. REQUIRES: ascending ranks, not empty.
absl::Status CheckReplica(const std::vector<PipelineRank>& ranks, std::vector<std::string>& doubts);

}  // namespace stepcast
