// Simulated recordings of exchanges whose clocks are known.
#pragma once

#include <cstdint>
#include <vector>

#include "core/replay/clock_alignment.h"

namespace stepcast::testing {

// The reading of a node's clock at a true time t: (t - offset + drift * reference) / (1 + drift).
struct TrueClock {
  double offset_ns = 0;
  double drift = 0;

  int64_t ReadingOf(double true_ns) const;
  // The difference that has to be added to that reading.
  double OffsetAt(int64_t reading_ns) const;
};

struct SimulatedExchanges {
  RecordedExchanges exchanges;
  std::vector<TrueClock> clocks;  // the first one is right
};

struct SimulatedJob {
  int32_t nodes = 2;
  int32_t steps = 20;
  bool collectives = true;  // of all nodes
  bool ring = false;        // a message from each node to the next, and one back
  double max_offset_ns = 5e9;
  double max_drift = 1e-4;
  double jitter = 0.05;  // of durations, as a share
};

// The same for the same seed, everywhere. Receives are launched long before, or after, what they
// receive is sent; each step another node may be the slowest.
SimulatedExchanges SimulateExchanges(uint64_t seed, const SimulatedJob& job);

// A job of any kind, of 2 to 8 nodes.
SimulatedJob RandomJobOf(uint64_t seed);

}  // namespace stepcast::testing
