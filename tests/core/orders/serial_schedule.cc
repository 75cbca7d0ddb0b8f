#include "tests/core/orders/serial_schedule.h"

#include <algorithm>
#include <cstddef>

namespace stepcast::testing {

namespace {

constexpr Span kNotYet{-1};

struct Waits {
  std::vector<std::vector<int32_t>> before;

  explicit Waits(const TransferGraph& graph) : before(static_cast<size_t>(graph.size())) {
    for (int32_t op = 0; op < graph.size(); ++op) {
      for (const int32_t after : graph.dependents(op))
        before[static_cast<size_t>(after)].push_back(op);
    }
  }
};

}  // namespace

Span SerialMakespan(const TransferGraph& graph, const std::vector<int32_t>& order) {
  const Waits waits(graph);
  std::vector<Span> end(static_cast<size_t>(graph.size()), kNotYet);
  Span link;
  for (const int32_t op : order) end[static_cast<size_t>(op)] = link += graph.operation(op).time;
  Span makespan = link;
  Span processor;
  for (auto left = static_cast<size_t>(graph.size()) - order.size(); left > 0; --left) {
    int32_t next = -1;
    Span next_ready;
    for (int32_t op = 0; op < graph.size();
         ++op) {  // the one ready first, the lower index of several
      if (end[static_cast<size_t>(op)] != kNotYet) continue;
      Span ready;
      bool known = true;
      for (const int32_t before : waits.before[static_cast<size_t>(op)]) {
        known = known && end[static_cast<size_t>(before)] != kNotYet;
        ready = std::max(ready, end[static_cast<size_t>(before)]);
      }
      if (!known || (next >= 0 && next_ready <= ready)) continue;
      next = op;
      next_ready = ready;
    }
    processor = std::max(processor, next_ready) + graph.operation(next).time;
    end[static_cast<size_t>(next)] = processor;
    makespan = std::max(makespan, processor);
  }
  return makespan;
}

Span BestSerialMakespan(const TransferGraph& graph) {
  std::vector<int32_t> order = graph.downloads();
  Span best = SerialMakespan(graph, order);
  while (std::next_permutation(order.begin(), order.end()))
    best = std::min(best, SerialMakespan(graph, order));
  return best;
}

}  // namespace stepcast::testing
