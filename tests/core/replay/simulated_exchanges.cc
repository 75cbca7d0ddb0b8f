#include "tests/core/replay/simulated_exchanges.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/index.h"
#include "core/base/random.h"

namespace stepcast::testing {

namespace {

double Between(Random& random, double least, double most) {
  return least + (most - least) * random.Unit();
}

}  // namespace

int64_t TrueClock::ReadingOf(double true_ns) const {
  return static_cast<int64_t>(std::floor((true_ns - offset_ns) / (1 + drift) + 0.5));
}

double TrueClock::OffsetAt(int64_t reading_ns) const {
  return offset_ns + drift * static_cast<double>(reading_ns);
}

SimulatedExchanges SimulateExchanges(uint64_t seed, const SimulatedJob& job) {
  Random random({seed, 1901});
  SimulatedExchanges made;
  RecordedExchanges& exchanges = made.exchanges;
  for (int32_t node = 0; node < job.nodes; ++node) {
    exchanges.nodes.push_back("worker" + std::to_string(node));
    made.clocks.push_back(
        node == 0 ? TrueClock{}
                  : TrueClock{.offset_ns = Between(random, -job.max_offset_ns, job.max_offset_ns),
                              .drift = Between(random, -job.max_drift, job.max_drift)});
  }
  exchanges.families = {"all_reduce/bucket0", "all_reduce/bucket1", "send/next", "send/back"};
  const double step_ns = Between(random, 5e6, 2e8);
  const double wire_ns = Between(random, 2e4, step_ns / 10);
  std::vector<double> at(Index(job.nodes), 0);  // by node, in true time
  const auto vary = [&](double mean) {
    return mean * std::max(0.1, 1 + job.jitter * random.Normal());
  };
  const auto reading = [&](int32_t node, double true_ns) {
    return made.clocks[Index(node)].ReadingOf(true_ns);
  };
  for (int32_t step = 0; step < job.steps; ++step) {
    for (double& now : at) now += vary(step_ns) * Between(random, 0.9, 1.2);
    if (job.ring) {
      for (int32_t node = 0; node < job.nodes; ++node) {
        for (const int32_t way : {1, -1}) {
          const int32_t to = (node + way + job.nodes) % job.nodes;
          const double launched = at[Index(to)] - Between(random, 0, 1) * step_ns / 2;
          const double sent = at[Index(node)];
          const double received = std::max(launched, sent) + vary(wire_ns);
          exchanges.messages.push_back({.family = way > 0 ? 2 : 3,
                                        .step = step,
                                        .sender = node,
                                        .receiver = to,
                                        .send_start_ns = reading(node, sent),
                                        .send_end_ns = reading(node, sent),
                                        .receive_start_ns = reading(to, launched),
                                        .receive_end_ns = reading(to, received)});
        }
      }
    }
    for (int32_t bucket = 0; job.collectives && bucket < 2; ++bucket) {
      RecordedCollective collective{.family = bucket, .step = step};
      const double last = *std::max_element(at.begin(), at.end());
      const double length = vary(wire_ns * (bucket + 1));
      for (int32_t node = 0; node < job.nodes; ++node) {
        const double end = last + length + Between(random, 0, wire_ns / 20);
        collective.members.push_back({.node = node,
                                      .start_ns = reading(node, at[Index(node)]),
                                      .end_ns = reading(node, end)});
        at[Index(node)] = end;
      }
      exchanges.collectives.push_back(collective);
    }
  }
  return made;
}

SimulatedJob RandomJobOf(uint64_t seed) {
  Random random({seed, 1902});
  const auto kind = random.Below(3);
  SimulatedJob job{.nodes = 2 + static_cast<int32_t>(random.Below(7)),
                   .steps = 5 + static_cast<int32_t>(random.Below(40)),
                   .collectives = kind != 1,
                   .ring = kind != 0};
  if (random.Below(4) == 0) job.max_drift = 0;
  return job;
}

}  // namespace stepcast::testing
