// Valid profiles for tests, each a function of its seed.
#pragma once

#include <cstdint>

#include "core/model/profile.h"

namespace stepcast::server {

// Every field set, every resource and several servers possible, up to 12 operations and 4 steps.
ProfileDraft RandomProfile(uint64_t seed);

// A worker that only computes, for `step_ns`, after a download: the smallest job.
ProfileDraft SmallProfile(int64_t step_ns = 1'000'000);

}  // namespace stepcast::server
