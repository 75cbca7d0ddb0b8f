// The cost of a full trace in memory: trace.ns_per_operation.
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "tests/bench/engine_run.h"
#include "tests/bench/job.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/rows/steady_load.h"

namespace stepcast::bench {

namespace {

constexpr int32_t kWorkers = 4;

// Keeps every chunk. Its memory is used again in each round, so that the system's work to provide
// it does not count.
class TraceInMemory : public TraceSink {
 public:
  void OnStep(std::span<const ChunkRecord> chunks) override {
    chunks_.insert(chunks_.end(), chunks.begin(), chunks.end());
  }
  void Forget() { chunks_.clear(); }
  size_t size() const { return chunks_.size(); }

 private:
  std::vector<ChunkRecord> chunks_;
};

Outcome Run(int rounds) {
  const Job job = ZooJob("resnet50");
  const RunOptions untraced = OptionsForOperations(job, kWorkers, kOurOperations);
  TraceInMemory trace;
  RunOptions traced = untraced;
  traced.trace = &trace;
  const auto run_traced = [&] {
    trace.Forget();
    const Cost cost = RunEngine(job, traced);
    if (trace.size() < static_cast<size_t>(cost.operations))
      throw std::runtime_error("the trace is not complete");
    return cost;
  };
  return {.rounds = TakeTurns(
              rounds, run_traced, [&] { return RunEngine(job, untraced); }, OursMinusTheirs)};
}

}  // namespace

void AddTraceRow(Registry& registry) {
  registry.Add({.name = "trace.ns_per_operation",
                .sides = "engine traced - not, ResNet-50, W=4",
                .goal = AtMost(10, 3),
                .run = Run});
}

}  // namespace stepcast::bench
