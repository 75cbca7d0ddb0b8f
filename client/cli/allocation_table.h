// Allocations, as people read them.
#pragma once

#include <string>

#include "stepcast/allocation.h"

namespace stepcast::client {

// A row a job, the total, what one more worker would give, and the jobs with an error of their own.
std::string AllocationText(const AllocateWorkersResponse& response);

}  // namespace stepcast::client
