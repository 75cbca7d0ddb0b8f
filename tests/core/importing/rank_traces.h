// Traces of all ranks of one job with DistributedDataParallel on hosts, of which the truth is
// known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/model/multi_rank_recording.h"

namespace stepcast::testing {

struct RankTracesForm {
  int ranks = 3;
  int steps = 6;                                               // the first two warm up
  std::vector<int64_t> elements = {1000, 5000, 300, 70, 900};  // of gradients, 4 bytes each
  std::vector<size_t> buckets = {2, 2, 1};                     // gradients in each
  int64_t collective_ns = 300'000;                             // of the first; others take longer
  bool broadcasts = true;                                      // buffers, before the forward pass
  size_t at_once = 1;                          // collectives that a rank runs at once
  double straggler = 1;                        // computation of the last rank takes so many times
  std::vector<int64_t> clock_offsets_ns = {};  // by rank: the reading is the true time less this
  bool names_rank = true;                      // in distributedInfo
  uint64_t seed = 1;
};

struct RankTraces {
  std::vector<std::string> texts;                    // by rank
  std::vector<std::vector<int64_t>> step_begins_ns;  // by rank and step, in true time
  std::vector<std::vector<int64_t>> step_ends_ns;
};

// A step broadcasts, goes forward, goes back gradient by gradient, sends a bucket when its last
// gradient is there, waits for all of them and updates. A collective begins when every rank has
// launched it, those before have begun, and fewer than `at_once` go on; a rank's run of it begins
// when that rank could.
RankTraces WriteRankTraces(const RankTracesForm& form);

// A few bytes of them changed, left out, doubled or cut off, or another digit, which leaves a text
// readable.
void MutateOneOf(std::vector<std::string>& texts, Random& random);

// Of batches of 8 on links of 1 GB/s. REQUIRES: they can be imported.
MultiRankRecording ImportRankTraces(const RankTraces& traces);

}  // namespace stepcast::testing
