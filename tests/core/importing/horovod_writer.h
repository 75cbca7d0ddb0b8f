// Timelines as Horovod writes them.
#pragma once

#include <string>

namespace stepcast::testing {

// Of rank 0 of two: fc.weight and fc.bias, of which fc.bias is ready first, 600 us after the step
// before has ended and a microsecond more each step, fc.weight 200 us later; a step ends 1 ms after
// the one before. `ended`: with the closing bracket.
std::string WriteHorovodTimeline(int steps, bool ended = true);

}  // namespace stepcast::testing
