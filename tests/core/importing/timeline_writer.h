// Timelines as TensorFlow 1 writes them.
#pragma once

#include <cstdint>
#include <string>

#include "core/importing/timeline_reader.h"

namespace stepcast::testing {

// Chrome's JSON: processes first, then events, with the keys of their arguments in no order.
std::string WriteTimeline(const Timeline& timeline);

// A step of one machine with the variables var0 and up, a function of its seed: reads, computations
// that wait for some of them, and an update a variable. Each node ran once, on one process.
Timeline RandomTimeline(uint64_t seed);

}  // namespace stepcast::testing
