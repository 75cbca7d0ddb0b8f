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
  // The collective measured and its workers, where the text of nccl-tests says neither: the kind
  // follows from the reduction and from bus over algorithm bandwidth, the workers from the lines
  // that begin with Rank.
  Collective kind = Collective::kUnspecified;
  std::optional<int32_t> workers;  // at least 2
};

// Three forms, told by their first bytes:
// - what nccl-tests (and rccl-tests) print, of 2020 to 2025, with whatever a launcher puts before
//   each line; the times are those in place, where there are some, as training has them;
// - lines with commas, the first of which names the columns kind, workers, size_bytes, seconds in
//   any order (kind as ALL_REDUCE or all_reduce);
// - JSON: a list of objects with these four keys, or an object that has it as `measured`; keys and
//   numbers may be as proto JSON has them.
//
// The points are in the order of kind, workers and size; of points that come several times the
// median is taken. Failure: INVALID_ARGUMENT, reason IMPORT_INVALID, with faults at `line N` or
// `measured[N]`, or at `workers`, `kind` of the options. Threads: a pure function.
// Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md, for what the columns mean.
absl::StatusOr<std::vector<MeasuredCollective>> ReadCollectiveBenchmark(
    std::string_view text, const CollectiveBenchmarkOptions& options,
    const AllReduceLimits& limits = {});

}  // namespace stepcast
