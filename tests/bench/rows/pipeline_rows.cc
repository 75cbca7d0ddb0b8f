// Pipelines: a prediction for 10,752 GPUs, all layouts of 64, and the engine beside an event loop
// in Python, pipelines.*.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/executor.h"
#include "core/base/index.h"
#include "core/base/stop_check.h"
#include "core/importing/layers/layer_profile.h"
#include "core/layouts/layout_search.h"
#include "core/pipeline/simulation.h"
#include "core/predict/throughput.h"
#include "tests/bench/cpu_clock.h"
#include "tests/bench/rows/answers.h"
#include "tests/bench/rows/rows.h"

namespace stepcast::bench {

namespace {

constexpr int64_t kForwardMs = 4;
constexpr int64_t kBackwardMs = 8;

// A transformer of 96 alike layers, of a size of GPT-3's on four devices each.
Profile Transformer() {
  std::string table = "forward_ms,backward_ms,activation_bytes,parameter_bytes\n";
  for (int32_t layer = 0; layer < 96; ++layer)
    absl::StrAppend(&table, kForwardMs, ",", kBackwardMs, ",50331648,452984832\n");
  return Required(ImportLayerProfile(
                      table, {.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 5e10}}))
      .profile;
}

// The layout of MLPerf Training's GPT-3 175B on 10,752 GPUs, of which a replica has 32.
Outcome TimePredictionOf10752(int rounds) {
  const Profile profile = Transformer();
  ThroughputDraft draft{.worker_counts = {336}};
  draft.scenario.emplace();
  draft.scenario->pipeline = PipelineDraft{
      .stages = 8, .micro_batches = 8, .schedule = PipelineSchedule::kInterleaved, .chunks = 12};
  double step_seconds = 0;
  Outcome outcome = TimeAnswer(
      [&] {
        const ThroughputQuery query = Required(ResolveThroughput(profile, draft));
        const ThroughputAnswer answer = Required(PredictThroughput(profile, query, NeverStop));
        step_seconds = 336 / answer.predictions.front().steps_per_second;
        return answer.simulation.simulated_operations;
      },
      kInSeconds, rounds);
  const double closed = 96.0 / 8 * (kForwardMs + kBackwardMs) * 1e-3 * (8 + 7.0 / 12);
  outcome.note = absl::StrFormat(
      "step %.3f s; c (m + (p - 1) / v) is %.3f s, without transfers, reductions and chance",
      step_seconds, closed);
  return outcome;
}

Outcome TimeLayouts(int rounds) {
  const Profile profile = Transformer();
  const LayoutDraft draft{
      .devices = 64,
      .examples_per_step = 256,
      .schedules = {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward,
                    PipelineSchedule::kInterleaved, PipelineSchedule::kLoopedBreadthFirst}};
  std::string note;
  Outcome outcome = TimeAnswer(
      [&] {
        const LayoutQuery query = Required(ResolveLayouts(profile, draft));
        const LayoutAnswer answer =
            Required(RecommendLayout(profile, query, NeverStop, InOrder(), KnownRuns{}));
        note = absl::StrFormat("%d layouts, %d of them pruned by their bounds",
                               answer.layouts.size() + Index(answer.pruned), answer.pruned);
        return answer.simulation.simulated_operations;
      },
      kInSeconds, rounds);
  outcome.note = note;
  return outcome;
}

struct LoopInPython {
  int64_t end_ns = 0;
  Cost cost;
};

LoopInPython RunPython(const PipelineLayout& layout, int64_t transfer_ns) {
  const std::string command = absl::StrCat(
      "/usr/bin/python3 -B " STEPCAST_PIPELINE_LOOP " ", layout.devices, " ", layout.micro_batches,
      " ", kForwardMs * 1'000'000, " ", kBackwardMs * 1'000'000, " ", transfer_ns);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (pipe == nullptr) throw std::runtime_error("cannot start /usr/bin/python3");
  LoopInPython loop;
  long long end = 0;
  long long computations = 0;
  double seconds = 0;
  if (std::fscanf(pipe.get(), "%lld %lld %lf", &end, &computations, &seconds) != 3)
    throw std::runtime_error("the loop in Python printed something else");
  return {.end_ns = end, .cost = {.cpu_ns = seconds * 1e9, .operations = computations}};
}

Outcome CompareWithPython(int rounds) {
  constexpr int64_t kTransferNs = 1'000'000;
  PipelineJob job{.layout = {.devices = 16, .micro_batches = 512}};
  const StageTimes times{.forward = Nanoseconds(kForwardMs * 1'000'000),
                         .backward = Nanoseconds(kBackwardMs * 1'000'000)};
  job.times = {std::vector<StageTimes>(16, times)};
  job.output_bytes.assign(15, 1'000'000);
  job.bytes_per_second = 1e9;
  job.reductions.resize(16);
  job.tails.resize(16);
  const int64_t expected = RunPython(job.layout, kTransferNs).end_ns;
  const auto ours = [&] {
    const double begin = ThreadCpuNs();
    const PipelineRun run = Required(SimulatePipeline(job, NeverStop));
    const double ns = ThreadCpuNs() - begin;
    if (std::llround(ToSeconds(run.step_ends.back() - Instant{}) * 1e9) != expected)
      throw std::runtime_error("the step does not end where Python's does");
    return Cost{.cpu_ns = ns, .operations = int64_t{2} * 16 * 512};
  };
  return {
      .rounds = TakeTurns(
          rounds, ours, [&] { return RunPython(job.layout, kTransferNs).cost; }, TheirsOverOurs)};
}

}  // namespace

void AddPipelineRows(Registry& registry) {
  registry.Add({.name = "pipelines.10752_gpus_seconds",
                .sides = "GPT-3's layout: 8 stages, 12 chunks, 8 micro-batches, 336 replicas",
                .goal = AtMost(0.15, 0.05),
                .rounds = 5,
                .run = TimePredictionOf10752});
  registry.Add({.name = "pipelines.layouts_of_64_seconds",
                .sides = "RecommendLayout, 96 layers on 64 devices, 256 examples a step",
                .goal = AtMost(6, 2),
                .rounds = 3,
                .run = TimeLayouts});
  registry.Add({.name = "pipelines.python_loop",
                .sides = "engine, an event loop in Python: 1F1B, 16 devices, 512 micro-batches",
                .goal = AtLeast(10, 30),
                .run = CompareWithPython});
}

}  // namespace stepcast::bench
