// The summary of one run, the estimate of its throughput, and its bytes for another process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/step_time_histogram.h"
#include "core/engine/simulation.h"

namespace stepcast {

// The estimate of the throughput from one run, and its standard error by that run alone.
//
// Warm-up: where it was not asked for, the run is cut where the standard error of what remains is
// least (MSER-5: White, "An effective truncation heuristic for bias reduction in simulation
// output", Simulation 1997, on means of five observations as White, Cobb and Spratt propose, WSC
// 2000); the observations are the times from mark to mark of the run's completion series, and at
// most half of them are dropped.
// Error: from batch means, kBatches of them, of equal numbers of completions (Law, Simulation
// Modeling and Analysis, 9.5.3).
// Threads: pure functions.
struct RunEstimate {
  double steps_per_second = 0;
  double standard_error = 0;  // of steps_per_second; 0 where the run is too short to say
  double warmup_seconds = 0;  // dropped, from the start of the run
};

inline constexpr int kBatches = 16;

// The number of the values that MSER-5 drops: a multiple of five, at most half of them. 0 for fewer
// than fifty.
size_t TruncationOf(const std::vector<double>& values);

// `automatic_warmup`: what the run was told to drop is the least, not all. REQUIRES:
// result.measured.
RunEstimate EstimateOf(const RunResult& result, bool automatic_warmup);

// The change of the logarithm of throughput with the logarithm of what steps compute, and with that
// of the deviations of their factors.
struct Sensitivity {
  double to_mean = 0;
  double to_deviation = 0;
  // A change in the world with wider deviations beyond what waiting for the slowest explains: its
  // regime is another, or chance. It is known to be so large there, and counts once.
  double leap = 0;

  // `change`: of the logarithm of throughput, with deviations `wider` times as large; `most`: that
  // waiting explains, of to_deviation.
  void AnswerToWider(double change, double wider, double most);
};

// All that replications need of a run, with few of its completions.
//
// Memory: 10 to 30 KiB, whatever the length of the run.
// Threads: none; immutable once made.
struct RunSummary {
  RunEstimate estimate;
  double drift = 0;  // second half minus first half of the counted time, in steps per second
  double late_steps_per_second = 0;  // of the second half
  StepTimeHistogram step_times;
  double opening_steps_per_second = 0;  // of the run's begin (Replications); 0: not known
  double half_rate_ratio = 0;           // of throughput at half the links' rate; 0: not known
  double first_come_ratio = 0;          // of that with links first come, first served; 0: not known
  Sensitivity sensitivity;              // of the first run; as recorded: 0
  std::vector<double> utilization;      // by lane
  double exposed_communication_fraction = 0;
  double waiting_fraction = 0;
  double straggler_fraction = 0;
  std::vector<JointTimes> joint_times;  // as RunResult's
  CompletionSeries completions;         // thinned
  int64_t simulated_operations = 0;
  EnginePath path = EnginePath::kPlain;

  // The size of all it holds, itself included, to within what the allocator adds.
  size_t bytes() const;
};

// A window of a run, which begins where the one before ends; the first at the run's origin.
struct ThroughputPoint {
  double end_seconds = 0;
  double examples_per_second = 0;  // of all workers, in the window
};

// The most points that a run's throughput over time is told in.
inline constexpr int32_t kMaxSeriesPoints = 200;

// A series of the marks, evenly: all of them, or at least kMaxSeriesPoints and fewer than twice
// as many.
CompletionSeries Thinned(const CompletionSeries& series);

// The throughput of a run over time, in at most so many windows of equal length, none of them
// shorter than from one mark to the next in the mean. `examples` of a step. Between two marks
// throughput is taken to be even. Empty where no step ended.
std::vector<ThroughputPoint> SeriesOf(const CompletionSeries& series, double examples,
                                      int32_t points);

// `automatic_warmup`: see EstimateOf. REQUIRES: result.measured.
RunSummary SummaryOf(const RunResult& result, bool automatic_warmup);

// The bytes of a run's summary, for whoever hands it to another process of the same program.
//
// Exact: what is read is what was written, to the bit. For machines of one byte order. Threads:
// pure functions. Cost: linear; 1 to 10 KiB a run.

std::string BytesOf(const RunSummary& run);

// Null where the bytes are none that BytesOf gives.
std::shared_ptr<const RunSummary> RunOfBytes(std::string_view bytes);

}  // namespace stepcast
