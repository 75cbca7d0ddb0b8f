// Jobs whose step is a chain of computations with gradients, and the obvious way to say how long a
// step of them takes with a strategy.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "core/advise/strategy_query.h"
#include "core/model/profile.h"
#include "core/predict/throughput.h"

namespace stepcast {

// One computation after the other, and the bytes of the gradients that are ready when each has
// ended.
struct ChainJob {
  std::vector<int64_t> lengths_ns;
  std::vector<std::vector<int64_t>> gradient_bytes;  // parallel

  size_t gradients() const;
};

// Of 1 to `most` computations, each with no gradient, one, or now and then two; the last one with
// one. Lengths of microseconds, bytes that take about as long at 1e9 a second.
ChainJob RandomChain(std::mt19937_64& random, size_t most);

// At 1e9 bytes a second: `compute/N`, `gradient/N/M`, and an `optimizer` of 1 us that waits for all
// of them. `steps`: recorded, all alike, but for factors on the lengths.
Profile ProfileOf(const ChainJob& job, const std::vector<double>& factors = {1});

// Groups: 1 where one ends with that computation, or gradient.
struct ChainGroups {
  std::vector<uint8_t> computations;
  std::vector<uint8_t> gradients;
};

// Of numbers whose bits are the ends, but for the last, which is one.
ChainGroups GroupsOfBits(const ChainJob& job, uint32_t computations, uint32_t gradients);

// The end of the last computation or collective, ns: groups of computations take `fused`, all but
// the last one of a group's time by that share; a collective `sync`, by its bytes, when all before
// it have ended and every computation of the groups that its gradients wait for has.
double NaiveEnd(const ChainJob& job, const ChainGroups& groups, double share,
                const std::function<double(int64_t)>& sync);

// Checked, with an all-reduce by a ring of so many workers and a latency.
ScenarioDraft RingOf(int32_t workers, double latency_seconds);

}  // namespace stepcast
