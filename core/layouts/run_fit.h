// The step time of other layouts from measured runs of pipelines, by the line
// T = seconds_per_micro_batch (m + (p - 1) / v) p0 / p + rest_seconds, with p0 the stages of the
// smallest run: a device of p stages computes p0 / p of what one of p0 does.
//
// Method: least squares of relative errors. The deviation of a single run is a prior of kPriorRuns
// runs that vary by kPriorDeviation, pooled with what the line leaves; intervals are Student's t
// with the degrees of both. Source of the prior: repeated runs in MLPerf Training's logs differ by
// 0.2 %, at worst 1.3. A run of other stages varies by kStagesDeviation besides, which is what 14
// of vTrain's runs on 64 and 512 GPUs did. One run alone, or runs that are all as long, tell
// no rest: it is taken as 0, and in intervals as kUnknownRest of a micro-batch's seconds, which it
// is in MLPerf's GPT-3. A rest below 0 is none: the line goes through zero, with a warning, and
// its intervals are as wide as it is off. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/predict/throughput.h"

namespace stepcast {

struct MeasuredRun {
  std::string name;
  int64_t devices = 0;
  int32_t stages = 0;
  int32_t chunks = 1;
  int32_t micro_batches = 0;
  std::optional<double> step_seconds;  // none: to be predicted
};

enum class RunBasis : uint8_t { kSmallest, kAll };

struct RunFitDraft {
  std::vector<MeasuredRun> runs;
  std::optional<RunBasis> basis;
  std::optional<double> confidence_level;
};

struct RunFit {
  struct Run {
    double step_seconds = 0;
    Interval step_interval;          // of one run
    double linear_step_seconds = 0;  // in proportion to micro-batches, and to 1 / stages
    bool fitted = false;
    std::optional<double> relative_error;         // where it was measured
    std::optional<double> linear_relative_error;  // likewise
  };

  double seconds_per_micro_batch = 0;  // of a device of the smallest run
  Interval seconds_per_micro_batch_interval;
  double rest_seconds = 0;
  Interval rest_interval;
  std::vector<Run> runs;  // in the order asked for
  std::vector<Warning> warnings;
};

inline constexpr size_t kMaxMeasuredRuns = 10'000;

// Failure: INVALID_ARGUMENT, reason REQUEST_INVALID, and every fault: a number out of bounds, no
// run that was measured, or more work of a device in no more seconds.
absl::StatusOr<RunFit> FitMeasuredRuns(const RunFitDraft& draft);

}  // namespace stepcast
