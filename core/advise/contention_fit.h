// The robust fit of LIBRA's constants of contention to measurements on a few workers.
//
// alpha1 and alpha2: the straight line of computation's speed in the threads beside it. gamma1 to
// gamma3, of transfers beside computation and of those alone: the rates r(threads) = gamma1 -
// gamma2 exp(-gamma3 threads^gamma4), by least squares of relative errors in seconds, gamma1 and
// gamma2 linearly for each gamma3 that is looked at. Residuals are weighed by Tukey's biweight,
// starting from the medians at each number of threads, so that a few gross outliers do not count.
// Source: Liu et al., "LIBRA", INFOCOM 2023, Eq. 3-6. Threads: pure functions; deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/all_reduce.h"

namespace stepcast {

// An all-reduce that was beside computation for all of its time, or for none.
struct MeasuredTransfer {
  int32_t threads = 0;
  int64_t bytes = 0;
  double seconds = 0;
  bool overlapped = false;

  friend bool operator==(const MeasuredTransfer&, const MeasuredTransfer&) = default;
};
// The same computation beside all-reduces with so many threads, and alone.
struct MeasuredSlowdown {
  int32_t threads = 0;  // 0: alone
  double slowdown = 1;  // its seconds over those alone

  friend bool operator==(const MeasuredSlowdown&, const MeasuredSlowdown&) = default;
};

struct ContentionMeasurements {
  int32_t workers = 2;         // that met in the all-reduces
  double latency_seconds = 0;  // of a hop, as a fit of collectives says it
  std::vector<MeasuredTransfer> transfers;
  std::vector<MeasuredSlowdown> slowdowns;
  double gamma4 = 0.6;
  double confidence_level = 0.95;
};

struct FittedConstant {
  double value = 0;
  double lower = 0;
  double upper = 0;
};
struct FittedRate {
  FittedConstant gamma1;
  FittedConstant gamma2;
  FittedConstant gamma3;
  // False where the constants are not told apart (a rate that is straight or flat over the threads
  // measured), their intervals are their values; the rates at those threads hold none the less.
  bool is_told = false;
  int32_t outliers = 0;
  double relative_residual = 0;  // median of the distances between measured and fitted seconds
};
struct ContentionFit {
  FittedConstant alpha1;
  FittedConstant alpha2;
  FittedRate overlapped;
  FittedRate alone;
  int32_t slowdown_outliers = 0;
  Contention contention;  // the values
};

// The numbers of threads of the transfers, ascending, each once.
std::vector<int32_t> ThreadsOf(const ContentionMeasurements& measurements);

// The failure of FitContention that does not depend on the fit. Linear.
absl::Status CheckMeasurements(const ContentionMeasurements& measurements);

// Intervals are Student's t around the linearised fit, at the confidence level. Cost: some thousand
// passes over the measurements. Failure: INVALID_ARGUMENT, reason REQUEST_INVALID, naming
// `transfers[i]...`, `slowdowns[i]...`, or that there are too few: transfers with three numbers of
// threads at least, both overlapped and alone, and slow-downs at two (and of each more than
// constants); what `stop` returns.
absl::StatusOr<ContentionFit> FitContention(const ContentionMeasurements& measurements,
                                            StopCheck stop);

}  // namespace stepcast
