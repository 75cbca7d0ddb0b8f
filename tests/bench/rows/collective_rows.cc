// Jobs whose workers meet in collectives: collectives.*.
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"

#include "core/advise/communication_tuning.h"
#include "core/advise/optimize_job.h"
#include "core/advise/thread_allocation.h"
#include "core/base/stop_check.h"
#include "core/communication/job.h"
#include "core/model/scenario.h"
#include "core/predict/throughput.h"
#include "core/zoo/model_zoo.h"
#include "tests/bench/agreement.h"
#include "tests/bench/cpu_clock.h"
#include "tests/bench/engine_run.h"
#include "tests/bench/job.h"
#include "tests/bench/peers/simgrid_peer.h"
#include "tests/bench/rows/answers.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/rows/steady_load.h"

namespace stepcast::bench {

namespace {

constexpr int32_t kStepsCompared = 2;
constexpr int32_t kWorkersPerNode = 8;
constexpr int32_t kMostWorkers = 1024;
constexpr int32_t kCounts = 30;

// A model of the zoo on links of 10 Gbit/s, its gradients in DDP's default buckets, in twenty
// recorded steps that vary by a tenth.
Profile VaryingModel(const char* model) {
  ZooOptions options{.platform = {.bandwidth_bytes_per_second = 1.25e9},
                     .variation = {.own = 0.1, .steps = 20}};
  options.communication = ZooCommunication::kAllReduce;
  absl::StatusOr<Profile> profile = BuildZooProfile(model, options);
  if (!profile.ok()) throw std::runtime_error(profile.status().ToString());
  return *std::move(profile);
}

Profile ResNet50() { return VaryingModel("resnet50"); }

ScenarioDraft ScenarioOf(int32_t workers_per_node) {
  AllReduceDraft job{.latency_seconds = 20e-6,
                     .workers_per_node = workers_per_node,
                     .fusion = Buckets{.first_bytes = 1 << 20, .cap_bytes = 25 << 20}};
  if (workers_per_node > 1) {
    job.intra_node_bandwidth_bytes_per_second = 50e9;
    job.intra_node_latency_seconds = 5e-6;
  }
  return {.communication = std::move(job)};
}

// The engine's job, without what runs of one program may share: each run pays for all of it.
JobGraph GraphOf(const Profile& profile, int32_t workers) {
  ScenarioDraft draft = ScenarioOf(1);
  draft.workers = workers;
  const absl::StatusOr<Scenario> scenario = ResolveScenario(profile, draft);
  if (!scenario.ok()) throw std::runtime_error(scenario.status().ToString());
  const absl::StatusOr<JobProgram> program = BuildJobProgram(profile, *scenario, NeverStop);
  if (!program.ok()) throw std::runtime_error(program.status().ToString());
  JobGraph graph = JobOf(*program, nullptr, *scenario);
  graph.joint.prepared = nullptr;
  return graph;
}

RunOptions OptionsOf(const JobGraph& graph, int64_t operations) {
  const int64_t a_step = int64_t{graph.workers()} * graph.program(0).size();
  RunOptions options{.steps_per_worker = static_cast<int32_t>(
                         std::max<int64_t>(kStepsCompared, (operations + a_step - 1) / a_step))};
  for (int32_t worker = 0; worker < graph.workers(); ++worker)
    options.start_offsets.push_back(Microseconds(137 * worker % 100'000));
  return options;
}

Outcome RunAgainstSimGrid(int32_t workers, int rounds) {
  const JobGraph graph = GraphOf(ResNet50(), workers);
  const RunOptions first = OptionsOf(graph, 0);
  RequireAgreement("SimGrid", EngineStepEnds(graph, first),
                   RunSimGridCollectives(graph, first).step_ends, kStepsCompared, kAgreement);
  const RunOptions ours = OptionsOf(graph, 100 * kOurOperations);
  const RunOptions theirs = OptionsOf(graph, kSlowOperations);
  return {.rounds = TakeTurns(
              rounds, [&] { return RunEngine(graph, ours); },
              [&] { return RunSimGridCollectives(graph, theirs).cost; }, TheirsOverOurs)};
}

Outcome RunMoreWorkers(int32_t more, int32_t fewer, int rounds) {
  const Profile profile = ResNet50();
  const JobGraph more_graph = GraphOf(profile, more);
  const JobGraph fewer_graph = GraphOf(profile, fewer);
  const RunOptions more_options = OptionsOf(more_graph, 100 * kOurOperations);
  const RunOptions fewer_options = OptionsOf(fewer_graph, 100 * kOurOperations);
  return {.rounds = TakeTurns(
              rounds, [&] { return RunEngine(more_graph, more_options); },
              [&] { return RunEngine(fewer_graph, fewer_options); }, OursOverTheirs)};
}

// A prediction for jobs of so many workers to a node.
Outcome TimeCounts(const std::vector<int32_t>& counts, int32_t workers_per_node,
                   const SimulationOptionsDraft& options, double unit, int rounds) {
  const ThroughputDraft draft{
      .worker_counts = counts, .scenario = ScenarioOf(workers_per_node), .options = options};
  return TimePrediction(ResNet50(), draft, unit, rounds);
}

// Advice for ResNet-50 and BERT-base, from the request on; a round's value is what both take.
Outcome RunAdvice(const std::vector<TuningMethod>& methods, int rounds) {
  constexpr int32_t kTunedWorkers = 8;
  const Profile models[] = {ResNet50(), VaryingModel("bert_base")};
  TuningDraft draft{.scenario = ScenarioOf(1), .methods = methods};
  draft.scenario.workers = kTunedWorkers;
  Outcome outcome;
  for (int round = 0; round <= rounds; ++round) {
    double operations = 0;
    outcome.note = "step over the least there could be, less 1:";
    const double begin = ThreadCpuNs();
    for (const Profile& profile : models) {
      const absl::StatusOr<TuningQuery> query = ResolveTuning(profile, draft);
      if (!query.ok()) throw std::runtime_error(query.status().ToString());
      const absl::StatusOr<TuningAnswer> answer = OptimizeCommunication(profile, *query, NeverStop);
      if (!answer.ok()) throw std::runtime_error(answer.status().ToString());
      operations += static_cast<double>(answer->simulation.simulated_operations);
      const Tuning& tuning = answer->tunings.front();
      absl::StrAppendFormat(&outcome.note, " %.1f %%", 100 * tuning.strategies.back().gap);
    }
    const double ns = ThreadCpuNs() - begin;
    if (round == 0) continue;
    outcome.rounds.push_back({.ours = ns / operations, .theirs = 0, .value = ns * 1e-9});
  }
  return outcome;
}

// A strategy for a model, from the request on; seconds.
double SecondsOfStrategy(const Profile& profile, const SearchShortcuts& shortcuts) {
  StrategyDraft draft{
      .scenario = ScenarioOf(1), .fused_share = kDproFusedShare, .shortcuts = shortcuts};
  draft.scenario.workers = 8;
  const double begin = ThreadCpuNs();
  const absl::StatusOr<StrategyQuery> query = ResolveStrategies(profile, draft);
  if (!query.ok()) throw std::runtime_error(query.status().ToString());
  const absl::StatusOr<StrategyAnswer> answer = OptimizeJob(profile, *query, NeverStop);
  if (!answer.ok()) throw std::runtime_error(answer.status().ToString());
  return (ThreadCpuNs() - begin) * 1e-9;
}

// With all of dPRO's shortcuts; the note has what its Table 5 has, one more of them each time.
Outcome RunStrategies(int rounds) {
  const Profile profile = ResNet50();
  Outcome outcome;
  SearchShortcuts shortcuts{.coarsened_view = false, .partial_replay = false, .symmetry = false};
  outcome.note = absl::StrFormat("without any %.2f s", SecondsOfStrategy(profile, shortcuts));
  shortcuts.coarsened_view = true;
  absl::StrAppendFormat(&outcome.note, ", coarsened view %.2f",
                        SecondsOfStrategy(profile, shortcuts));
  shortcuts.partial_replay = true;
  absl::StrAppendFormat(&outcome.note, ", and partial replay %.2f",
                        SecondsOfStrategy(profile, shortcuts));
  for (int round = 0; round < rounds; ++round) {
    const double seconds = SecondsOfStrategy(profile, {});
    outcome.rounds.push_back({.ours = seconds * 1e9, .theirs = 0, .value = seconds});
  }
  return outcome;
}

// LIBRA's dynamic program at its largest: 60 layers of even computation whose gradients grow, as a
// convolutional network's do, in at most 10 groups, 150 chunks and 13 numbers of threads.
Outcome RunThreadAllocation(int rounds) {
  std::vector<BackwardLayer> layers;
  for (int32_t layer = 0; layer < 60; ++layer)
    layers.push_back({.seconds = 1e-3, .bytes = int64_t{100'000} * (60 - layer)});
  const OverlapSetting setting{
      .workers = 16,
      .latency_seconds = 20e-6,
      .contention = {.alpha1 = 1,
                     .alpha2 = 1e-4,
                     .overlapped = {.gamma1 = 8e9, .gamma2 = 5e9, .gamma3 = 0.02},
                     .alone = {.gamma1 = 1e10, .gamma2 = 4e9, .gamma3 = 0.03}}};
  AllocationOptions options;
  options.threads.clear();
  for (int32_t threads = 128; options.threads.size() < 13; threads += 128)
    options.threads.push_back(threads);
  Outcome outcome;
  for (int round = 0; round <= rounds; ++round) {
    const double begin = ThreadCpuNs();
    const absl::StatusOr<ThreadAllocation> answer =
        AllocateThreads(layers, setting, options, NeverStop);
    const double ns = ThreadCpuNs() - begin;
    if (!answer.ok()) throw std::runtime_error(answer.status().ToString());
    outcome.note = absl::StrFormat("%d groups, within %.1f %% of the least there could be",
                                   answer->groups.size(), 100 * (answer->guarantee - 1));
    if (round == 0) continue;
    outcome.rounds.push_back({.ours = ns, .theirs = 0, .value = ns * 1e-9});
  }
  return outcome;
}

// From one node to so many workers, about evenly.
std::vector<int32_t> CountsUpTo(int32_t most) {
  std::vector<int32_t> counts;
  const int32_t nodes = most / kWorkersPerNode;
  for (int32_t i = 1; i <= kCounts; ++i)
    counts.push_back(kWorkersPerNode * std::max(i, nodes * i / kCounts));
  return counts;
}

std::vector<int32_t> OneTo(int32_t most) {
  std::vector<int32_t> counts;
  for (int32_t workers = 1; workers <= most; ++workers) counts.push_back(workers);
  return counts;
}

}  // namespace

void AddCollectiveRows(Registry& registry) {
  for (const int32_t workers : {2, 8, 64}) {
    registry.Add({.name = "collectives.simgrid.w" + std::to_string(workers),
                  .sides = "SimGrid / engine, ResNet-50, all-reduce",
                  .goal = AtLeast(150, 3000),
                  .rounds = 3,
                  .run = [workers](int rounds) { return RunAgainstSimGrid(workers, rounds); }});
  }
  registry.Add({.name = "collectives.w1024_over_w16",
                .sides = "engine W=1024 / W=16, ResNet-50, all-reduce",
                .goal = AtMost(1.2, 1),
                .run = [](int rounds) { return RunMoreWorkers(kMostWorkers, 16, rounds); }});
  registry.Add({.name = "collectives.w1024_seconds",
                .sides = "one prediction, W=1024, 8 a node, 5 x 1000 steps",
                .goal = AtMost(0.5, 0.1),
                .run = [](int rounds) {
                  return TimeCounts({kMostWorkers}, kWorkersPerNode,
                                    {.steps_per_worker = 1000, .replications = 5}, kInSeconds,
                                    rounds);
                }});
  registry.Add({.name = "collectives.30_counts_seconds",
                .sides = "30 counts up to W=1024, at 1 % precision",
                .goal = AtMost(1, 0.2),
                .run = [](int rounds) {
                  return TimeCounts(CountsUpTo(kMostWorkers), kWorkersPerNode,
                                    {.relative_precision = 0.01}, kInSeconds, rounds);
                }});
  registry.Add(
      {.name = "collectives.w1_to_64_milliseconds",
       .sides = "W=1..64, defaults",
       .goal = AtMost(20, 10),
       .run = [](int rounds) { return TimeCounts(OneTo(64), 1, {}, kInMilliseconds, rounds); }});
  registry.Add({.name = "collectives.tune_caps_seconds",
                .sides = "ResNet-50 and BERT-base, W=8, bucket caps of 0.25 to 200 MiB",
                .goal = AtMost(1, 0.5),
                .run = [](int rounds) { return RunAdvice({TuningMethod::kDdpBuckets}, rounds); }});
  registry.Add({.name = "collectives.libra_seconds",
                .sides = "LIBRA's threads and groups: 60 layers, 10 groups, 150 chunks, 13 threads",
                .goal = AtMost(2, 0.1),
                .run = RunThreadAllocation});
  registry.Add({.name = "collectives.strategy_seconds",
                .sides = "dPRO's strategies, ResNet-50, W=8, with every shortcut",
                .goal = AtMost(5, 2),
                .rounds = 3,
                .run = RunStrategies});
  registry.Add({.name = "collectives.tune_search_seconds",
                .sides = "the same, and a search over all groupings",
                .goal = AtMost(6, 3),
                .run = [](int rounds) {
                  return RunAdvice({TuningMethod::kDdpBuckets, TuningMethod::kSearch}, rounds);
                }});
}

}  // namespace stepcast::bench
