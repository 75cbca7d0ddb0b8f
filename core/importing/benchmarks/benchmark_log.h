// Reader of the logs of nccl-tests, rccl-tests, OSU's and Intel's MPI benchmarks.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "core/importing/benchmarks/benchmark_sections.h"

namespace stepcast {

// The field of a fault at a line: "line 7".
std::string LineField(size_t line);

// The tables of the log, one after the other, with the faults of their rows. The number of workers
// is the benchmark's own, else as NCCL's debugging output or the command line before it says.
std::vector<BenchmarkSection> ReadBenchmarkLog(absl::string_view text);

// The fault of a row whose rate is not what its size and time give, so that its units may be
// others. Empty: there is none.
std::string RateFault(const BenchmarkRow& row);

}  // namespace stepcast
