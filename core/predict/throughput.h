// The throughput of a job: the front door of the simulation.
//
// Meaning: ICPE 2020, sections 3 and 5; the estimator and the interval are defined in
// core/README.md.
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/scenario_edits.h"
#include "core/model/simulation_options.h"
#include "core/pipeline/shares.h"
#include "core/predict/device_use.h"
#include "core/predict/run_memory.h"
#include "core/predict/run_summary.h"
#include "core/predict/shared_batch.h"
#include "core/predict/training_plan.h"
#include "core/predict/what_if.h"

namespace stepcast {

// The version of the engine: the same version, profile, scenario, options and seed give the same
// answer.
inline constexpr char kEngineVersion[] = "12";

struct Interval {
  double lower = 0;
  double upper = 0;
  double level = 0.95;
};

// The error that predictions of one kind of job were last measured to have.
struct ModelError {
  double fraction = 0;  // mean absolute error, of throughput
  std::string source;
};

// The length of one worker's step, in seconds.
struct StepTime {
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
};

StepTime StepTimeOf(const StepTimeHistogram& steps);

// Share of the counted time in which a resource was in use; links: of its capacity; computation:
// mean over workers.
struct ResourceUtilization {
  Resource resource = Resource::kUnspecified;
  int32_t index = 0;  // of the server; of kWorker: of its stream
  double fraction = 0;
};

struct SimulationStatistics {
  int64_t simulated_operations = 0;  // of all runs, recalled ones too
  std::string engine_path;           // NameOf the engines that ran, each once, separated by ", "
  int64_t runs = 0;
  int64_t recalled_runs = 0;  // of them, those that a memory had

  void Add(const SimulationStatistics& other);
};

// One of two throughputs that runs of the same job settle at, by how its workers happen to lie in
// time.
struct Regime {
  double examples_per_second = 0;        // mean of its runs
  int32_t replications = 0;              // runs of the start asked for that fell in it
  int32_t other_start_replications = 0;  // runs of the other start that did
};

// A warning that a reader should know before trusting a number.
struct Warning {
  enum class Reason : uint8_t {
    kNotSteady,             // throughput still drifts
    kTwoRegimes,            // runs settle at two throughputs
    kNothingRandom,         // so the interval has no width
    kOneReplication,        // so the interval is of one run's own batches
    kFiniteHorizon,         // the first steps or seconds were asked for: no steady state
    kCollectivesStartFree,  // a collective takes no time but that of its bytes
    kLinkRateNotMeasured,   // nor said to be
    kLinkSharingMatters,    // of several servers, and nothing says it
    kKeptBytesNotKnown,     // so memory is a lower bound
    kRestBelowZero,         // of the line through measured runs, which goes through zero instead
    kPrecisionNotReached,   // with as many runs as were allowed
    kGradientsNotKnown,     // of recorded buckets that a strategy sends together
  };

  Reason reason = Reason::kNotSteady;
  std::string message;  // in plain words

  friend bool operator==(const Warning&, const Warning&) = default;
};

// One of a step's collectives, after fusing, sharding and cutting; times are means, from the
// instant at which the last worker began the step.
struct CollectiveTiming {
  std::vector<std::string> operations;  // the profile's whose buffers it carries
  Collective kind = Collective::kAllReduce;
  bool is_gradient = true;  // gradients, or parts of their sums
  int64_t size_bytes = 0;
  double ready_seconds = 0;  // on the last worker
  double start_seconds = 0;
  double end_seconds = 0;
};

// The resource of a job of collectives whose change would bring most.
enum class CollectiveBottleneck : uint8_t {
  kComputation,
  kLinkBetweenNodes,
  kLinkInsideNode,
  kSlowestWorker,
  kHost,     // for which the workers' devices wait
  kLatency,  // of messages
};

// The report on a job's collectives. Seconds are of a step, means over workers.
struct CollectiveReport {
  double exposed_seconds = 0;  // a collective under way, and no computation
  double waiting_seconds = 0;  // a collective ready, none under way, and no computation
  // Lower bounds of a step: one worker's alone, and the collectives' one after the other.
  double computation_seconds = 0;
  double collective_seconds = 0;
  // The latter while nothing is computed: more only with contention.
  double lone_collective_seconds = 0;
  // The rate if no computation ran beside a collective: a step is the sum of both.
  double no_overlap_examples_per_second = 0;
  CollectiveBottleneck bottleneck = CollectiveBottleneck::kComputation;
  LinkPlace links = LinkPlace::kBetweenNodes;  // that would shorten collectives more
  std::vector<CollectiveTiming> collectives;   // in the order in which they begin
};

// The report on a job of pipelines (core/pipeline/shares.h).
struct PipelineReport {
  struct Device {
    double utilization = 0;  // mean over replicas
    int32_t chunks_in_flight = 0;
    int64_t memory_bytes = 0;  // 0: not known
    double micro_batch_seconds = 0;
    int64_t gradient_bytes = 0;
    std::vector<std::string> first_operations;  // by chunk
  };

  double idle_fraction = 0;
  double bubble_fraction = 0;
  double imbalance_fraction = 0;
  double transfer_fraction = 0;
  double reduction_fraction = 0;
  double rest_fraction = 0;
  PipelineBottleneck bottleneck = PipelineBottleneck::kComputation;
  double bottleneck_gain = 0;  // of throughput
  int32_t slowest_device = 0;
  std::vector<Device> devices;  // of a replica
};

struct Prediction {
  Scenario scenario;
  double examples_per_second = 0;
  double steps_per_second = 0;
  // Intervals of examples_per_second. Here: of the job's throughput in the long run, its recording
  // being a sample of its steps.
  Interval confidence_interval;
  // Interval of one run as long as those simulated: the same, with its own chance and model_error.
  Interval run_interval;
  // Interval of the mean over more simulated runs, by their chance alone.
  Interval simulation_interval;
  // The share of confidence_interval's width that is the recording's shortness, and half its width
  // had kMoreSteps more been recorded, in examples per second.
  double input_fraction = 0;
  double half_width_with_more_steps = 0;
  ModelError model_error;
  // In examples per second, where the bandwidth between nodes is not a measured one.
  std::optional<double> at_half_the_rate;
  StepTime step_time;
  double speedup = 0;             // over the same scenario with one worker
  double scaling_efficiency = 0;  // speedup / workers
  std::vector<ResourceUtilization> utilization;
  ResourceUtilization most_used;
  // The resource to improve first, of several of its kind the most used. Without a gain: the most
  // used one.
  ResourceUtilization bottleneck;
  std::optional<ResourceGain> bottleneck_gain;
  double exposed_communication_fraction = 0;
  bool steady_state = true;
  std::vector<Warning> warnings;
  int32_t replications = 0;
  int32_t steps_per_worker = 0;  // of each replication, warm-up included; 0 with another horizon
  // Two, the faster first, where runs do not agree on one throughput; else none.
  std::vector<Regime> regimes;
  std::optional<CollectiveReport> collectives;  // none with parameter servers, nor of pipelines
  std::optional<PipelineReport> pipeline;
  int64_t devices = 0;                       // of all workers
  std::optional<TrainingForecast> forecast;  // of the query's plan
  // The passes of the slowest kind of worker.
  std::optional<PassTimes> passes;
  // One device of a worker, of a pipeline the one that needs most; none: nothing is known.
  std::optional<DeviceMemory> memory;
  CompletionSeries completions;         // of the first run, thinned
  std::vector<ThroughputPoint> series;  // of the query's series_points
};

// The number that a decision should rest on: examples_per_second, but where all runs of the start
// asked for fell into the slower of two regimes, the mean over all runs of both starts.
double ExpectedExamplesPerSecond(const Prediction& prediction);

struct ThroughputAnswer {
  std::vector<Prediction> predictions;  // one a scenario, in the order asked for
  SimulationStatistics simulation;
};

// A request as it is asked for, unchecked: either scenarios, or worker_counts that vary `scenario`;
// neither: `scenario` alone.
struct ThroughputDraft {
  std::vector<ScenarioDraft> scenarios;
  std::vector<int32_t> worker_counts;
  std::optional<ScenarioDraft> scenario;
  SimulationOptionsDraft options;
  std::optional<TrainingPlan> plan;
  int32_t series_points = 0;
};

// A checked request.
struct ThroughputQuery {
  std::vector<Scenario> scenarios;
  SimulationOptions options;
  std::optional<TrainingPlan> plan;
  int32_t series_points = 0;  // of each prediction; 0: no series is told
  // Each scenario is then of the profile with its workers' share, and its speed-up over one worker
  // with the whole batch.
  std::optional<SharedBatch> shared;
};

inline constexpr size_t kMaxScenarios = 1024;
// Points of all predictions together.
inline constexpr int64_t kMaxSeriesPointsOfAll = 20'000;

// Pipelines are answered unless `limits` say otherwise. Fails as ResolveScenario and ResolveOptions
// do, all faults at once, reason REQUEST_INVALID, paths relative to the request
// (`scenarios[3].workers`, `worker_counts[0]`, `options.replications`).
absl::StatusOr<ThroughputQuery> ResolveThroughput(
    const Profile& profile, const ThroughputDraft& draft,
    const ScenarioLimits& limits = {.pipelines = true}, const SharedBatch* shared = nullptr);

// The same of a batch that workers divide; refuses, at its place in the request, a number of
// workers that does not divide it. A pipeline's replica has as many micro-batches as its share
// fills; one that says how many, and other changes beside the batch, are refused.
absl::StatusOr<ThroughputQuery> ResolveSharedThroughput(const Profile& recorded,
                                                        const ThroughputDraft& draft,
                                                        SharedBatch shared);

// Predicts every scenario, and one worker of each for the speed-up.
//
// REQUIRES: the query was resolved for this profile.
// Each is also run a few times with the other start, simultaneous or staggered, to tell whether it
// has reached its steady state, and where the number of replications was not asked for and single
// runs scatter widely, in up to 20 of them. Where no length was asked for runs are as short as the
// answer allows (Replications). The runs are the parts given to `executor`; `stop` is
// asked by all of them. The answer does not depend on how many run at once. Cost: 5 to 10 ns per
// simulated operation where the engine is a fast one, some 50 ns where it is the plain one, of
// which there are operations x steps_per_worker x workers x replications for each scenario. Runs
// that are known already are not made again. Failure: what `stop` returns; FAILED_PRECONDITION,
// reason SIMULATION_TOO_SHORT, where a worker does not complete two steps in the counted time;
// OUT_OF_RANGE, reason SIMULATED_TIME_EXHAUSTED, past 21 days of simulated time (base/time.h).
absl::StatusOr<ThroughputAnswer> PredictThroughput(const Profile& profile,
                                                   const ThroughputQuery& query, StopCheck stop,
                                                   const Executor& executor = InOrder(),
                                                   const KnownRuns& known = {});

// The warnings of several predictions, each once: what weakens an answer that is made of them.
//
// Warnings of one reason that differ only in their numbers are one, with the numbers of the first.
struct WarningGroup {
  Warning warning;            // the first
  bool alike = true;          // all have its message
  std::vector<size_t> items;  // whose warning it is, ascending
};

// In the order of their first items. Cost: linear in the messages' bytes, times the number of
// groups.
std::vector<WarningGroup> GroupWarnings(const std::vector<std::vector<Warning>>& by_item);

// `2-8, 16 workers: TEXT`, or `2-8, 16 workers, the numbers are those for 2: TEXT`, one a group.
std::vector<Warning> WarningsByWorkers(const std::vector<Prediction>& predictions);

// `TAC, GRAPH: TEXT`, likewise. REQUIRES: as many names as items.
std::vector<Warning> WarningsByName(const std::vector<std::string>& names,
                                    const std::vector<std::vector<Warning>>& by_item);

}  // namespace stepcast
