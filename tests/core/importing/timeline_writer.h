// Timelines as TensorFlow 1 and Horovod write them.
#pragma once

#include <cstdint>
#include <string>

#include "core/importing/tensorflow/tensorflow_readers.h"

namespace stepcast::testing {

// TensorFlow's, in Chrome's JSON: processes first, then events, with the keys of their arguments in
// no order.
std::string WriteTimeline(const Timeline& timeline);

// A step of one machine with the variables var0 and up, a function of its seed: reads, computations
// that wait for some of them, and an update a variable. Each node ran once, on one process.
Timeline RandomTimeline(uint64_t seed);

// Horovod's, of rank 0 of two: fc.weight and fc.bias, of which fc.bias is ready first, 600 us after
// the step before has ended and a microsecond more each step, fc.weight 200 us later; a step ends 1
// ms after the one before. `ended`: with the closing bracket.
std::string WriteHorovodTimeline(int steps, bool ended = true);

}  // namespace stepcast::testing
