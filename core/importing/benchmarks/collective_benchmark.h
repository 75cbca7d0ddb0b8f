// Benchmarks of collectives, read as points for a scenario's MEASURED algorithm.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "core/model/all_reduce.h"

namespace stepcast {

struct CollectiveBenchmarkOptions {
  // The collective measured, where the text does not say it, or the only one to read of several;
  // and its workers, where the text does not say them.
  Collective kind = Collective::kUnspecified;
  std::optional<int32_t> workers;  // at least 2
};

// Forms, told by their content:
// - what nccl-tests and rccl-tests print, of 2020 to 2025, in colour or not, with whatever a
//   launcher puts before each line; the times are those in place, where there are some, as training
//   has them;
// - what the MPI benchmarks of OSU and of Intel print of collectives that block; the times are the
//   means over the processes. A size of an all-gather is a process's, and becomes the whole;
// - the JSON of nccl-tests and rccl-tests, one object or one a line;
// - lines with commas, semicolons or tabs, the first of which names the columns kind, workers,
//   size_bytes, seconds in any order (kind as ALL_REDUCE or all_reduce);
// - JSON: a list of objects with these four keys, or an object that has it as `measured`; keys and
//   numbers may be as proto JSON has them.
//
// A log may have several tests, each by the name and the workers that stand before its table; one
// of another kind than the four is a fault, unless options ask for a kind, which alone is then
// read. A test without a name is told by its reduction and rates, where these tell it.
// The points are in the order of kind, workers and size; of points that come several times the
// median is taken; `notes`, where given, gets what was left out. Failure: INVALID_ARGUMENT, reason
// IMPORT_INVALID, with faults at `line N` or `measured[N]`, or at `workers`, `kind` of the options.
// Threads: a pure function. Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md, for what the columns
// mean.
absl::StatusOr<std::vector<MeasuredCollective>> ReadCollectiveBenchmark(
    std::string_view text, const CollectiveBenchmarkOptions& options,
    const AllReduceLimits& limits = {}, std::vector<std::string>* notes = nullptr);

}  // namespace stepcast
