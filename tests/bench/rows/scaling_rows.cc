// The engine against itself, with more of everything: workers.wN_over_wM, size.100k_over_2500.
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "absl/strings/str_format.h"

#include "tests/bench/engine_run.h"
#include "tests/bench/job.h"
#include "tests/bench/memory_growth.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/rows/steady_load.h"

namespace stepcast::bench {

namespace {

constexpr int64_t kMaxMemory = 64 * 1024 * 1024;
// Of the generated networks: five operations a layer.
constexpr int32_t kSmallLayers = 500;
constexpr int32_t kLargeLayers = 20'000;
constexpr int32_t kRecordedSteps = 5;
constexpr int32_t kSizeWorkers = 4;
// The engine counts the operations of steps that have ended, so a run of few steps would seem
// dearer than it is.
constexpr int32_t kLeastSteps = 25;

RunOptions LongRun(const Job& job, int32_t workers) {
  RunOptions options = OptionsForOperations(job, workers, kOurOperations);
  options.steps_per_worker = std::max(options.steps_per_worker, kLeastSteps);
  return options;
}

std::vector<Round> Compare(const Job& more, const RunOptions& more_options, const Job& less,
                           const RunOptions& less_options, int rounds) {
  return TakeTurns(
      rounds, [&] { return RunEngine(more, more_options); },
      [&] { return RunEngine(less, less_options); }, OursOverTheirs);
}

Outcome RunWorkers(int32_t more, int32_t fewer, int rounds) {
  const Job job = ZooJob("resnet50");
  return {.rounds = Compare(job, LongRun(job, more), job, LongRun(job, fewer), rounds)};
}

Outcome RunManyWorkers(int rounds) {
  const Job job = ZooJob("resnet50");
  const RunOptions options = LongRun(job, 1024);
  const int64_t memory = PeakGrowthBytes([&] { RunEngine(job, options); });
  if (memory >= kMaxMemory)
    throw std::runtime_error(
        absl::StrFormat("1024 workers need %d bytes of memory, over %d", memory, kMaxMemory));
  return {.rounds = Compare(job, options, job, LongRun(job, 64), rounds),
          .note = absl::StrFormat("peak memory of W=1024: %.1f MiB",
                                  static_cast<double>(memory) / (1024 * 1024))};
}

Outcome RunSizes(int rounds) {
  const Job large = LayeredJob(kLargeLayers, kRecordedSteps, 1);
  const Job small = LayeredJob(kSmallLayers, kRecordedSteps, 1);
  return {.rounds = Compare(large, LongRun(large, kSizeWorkers), small,
                            LongRun(small, kSizeWorkers), rounds)};
}

}  // namespace

void AddScalingRows(Registry& registry) {
  registry.Add({.name = "workers.w128_over_w4",
                .sides = "engine W=128 / W=4, ResNet-50",
                .goal = AtMost(1.6, 1.15),
                .run = [](int rounds) { return RunWorkers(128, 4, rounds); }});
  registry.Add({.name = "workers.w1024_over_w64",
                .sides = "engine W=1024 / W=64, ResNet-50",
                .goal = AtMost(1.5, 1.1),
                .run = RunManyWorkers});
  registry.Add({.name = "size.100k_over_2500",
                .sides = "engine 100,000 / 2,500 operations, W=4",
                .goal = AtMost(1.3, 1),
                .run = RunSizes});
}

}  // namespace stepcast::bench
