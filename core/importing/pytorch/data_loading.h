// The time for which a worker of a traced step waits for its next batch, as PyTorch's DataLoader
// marks it. Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/importing/common/time_spans.h"
#include "core/importing/pytorch/pytorch_reader.h"
#include "core/importing/pytorch/pytorch_steps.h"

namespace stepcast {

// The times in which the host is in a DataLoader's __next__ (UnionOf).
std::vector<TimeSpan> DataLoadingOf(const PyTorchTrace& trace);

// Nanoseconds of them between two instants.
int64_t DataLoadingBetween(const std::vector<TimeSpan>& loading, int64_t begin_ns, int64_t end_ns);

// Puts what was found of each step (first_data_ns and last_data_ns) before its first piece, as a
// piece of the pass kDataLoading, and takes it out of the first and the last one. With a note.
void SplitOffDataLoading(TracedSteps& steps);

}  // namespace stepcast
