// The printing of rows: a line each on a terminal, or all as JSON.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/benchmark.h"

namespace stepcast::bench {

std::string TableHeading();
std::string TableLine(const Row& row);

// A list of {name, sides, direction, ratio, low, high, minimum, aim, holds, ours_ns, theirs_ns,
// note}; times are per operation.
std::string ToJson(const std::vector<Row>& rows);

}  // namespace stepcast::bench
