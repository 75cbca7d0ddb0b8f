// The links of a job of collectives, fitted to a benchmark of them by the formulas of
// core/communication/collective_time.h: T = latencies L + sent bytes / B + added bytes c.
//
// Errors are relative: residuals are the logarithms of measured over fitted times. From the best of
// some hundred fits through as many points as there are coefficients (least quantile of squares,
// Rousseeuw, JASA 1984), iterated weighted least squares with Tukey's biweight (c = 4.685), no
// coefficient below 0; of fewer than kFewestForOutliers points plain least squares. Intervals are
// Student's t with Huber's sandwich covariance (1967), as in measured_line.h; they hold chance, not
// the algorithm's own error, which by_workers shows.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/all_reduce.h"

namespace stepcast {

inline constexpr size_t kFewestCollectiveMeasurements = 3;
inline constexpr size_t kMaxCollectiveMeasurements = 10'000;
inline constexpr int32_t kMaxMeasuredWorkers = 1'000'000;
inline constexpr int64_t kMaxCollectiveBytes = int64_t{1} << 53;
inline constexpr double kLeastCollectiveSeconds = 1e-12;
inline constexpr double kMaxCollectiveSeconds = 86'400;

// A request as it is asked for, unchecked.
struct CollectiveFitDraft {
  std::vector<MeasuredCollective> measurements;
  std::optional<CollectiveAlgorithm> algorithm;  // RING; or GLOO
  std::optional<double> confidence_level;        // 0.95
  std::optional<int32_t> workers_per_node;       // 1
};

// A checked request.
struct CollectiveFitQuery {
  std::vector<MeasuredCollective> measurements;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing;
  double confidence_level = 0.95;
  int32_t workers_per_node = 1;
};

// A coefficient, not below 0. `lower` and `upper` are the ends of its interval, where is_told.
struct FittedCoefficient {
  bool is_told = false;  // else the points do not tell it from the others, and it is 0
  double value = 0;
  double lower = 0;
  double upper = 0;
};

// The points of one number of workers.
struct WorkersResidual {
  int32_t workers = 0;
  int32_t measurements = 0;
  int32_t outliers = 0;
  double relative_residual = 0;  // median of |measured - fitted| / fitted
  double bias = 0;               // median of (measured - fitted) / fitted
};

// A weakness of a fit.
struct FitWarning {
  enum class Reason : uint8_t {
    kBandwidthNotTold,
    kLatencyNotTold,
    kReductionNotTold,
    kReductionAmbiguous,  // a faster link and slower additions take the same time
    kNoScenario,          // beyond what a scenario takes
    kTwoWorkersOnly,
    kAlgorithmFails,  // with some number of workers
    kNoLine,          // half of all points are off by more than a tenth
  };

  Reason reason = Reason::kAlgorithmFails;
  std::string message;  // one sentence, with its numbers

  friend bool operator==(const FitWarning&, const FitWarning&) = default;
};

struct CollectiveFit {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing;
  int32_t workers_per_node = 1;
  // True: all points are of one node, and what was fitted is the link inside it.
  bool is_inside_node = false;
  // Bytes per second. `value` is 0 where no time grows with the size, `upper` at most
  // kMaxFittedBandwidth.
  FittedCoefficient bandwidth;
  FittedCoefficient latency;    // seconds of a message
  FittedCoefficient reduction;  // seconds to add a received byte
  double relative_residual = 0;
  int32_t outliers = 0;  // points without any weight
  std::vector<WorkersResidual> by_workers;
  std::vector<FitWarning> warnings;
  double confidence_level = 0;
  // The points themselves, by kind, workers and size, of equal ones the median, where they follow
  // no line (FitWarning::Reason::kNoLine); else empty.
  std::vector<MeasuredCollective> points;
};

inline constexpr double kMaxFittedBandwidth = 1e15;

// Fails with INVALID_ARGUMENT, reason REQUEST_INVALID, and every fault: another algorithm, fewer
// points than a fit with an interval needs or more than are taken, a kind that is missing, numbers
// out of bounds, all of one size; with several workers a node, points of one node beside points of
// several, or workers that do not fill nodes.
absl::StatusOr<CollectiveFitQuery> ResolveCollectiveFit(const CollectiveFitDraft& draft);

// Cost: 300 starts over at most 500 of the points, and up to 100 passes over all, twice: 0.1 to
// 0.4 s for 10,000. Failure: what `stop` returns.
absl::StatusOr<CollectiveFit> FitCollectives(const CollectiveFitQuery& query, StopCheck stop);

}  // namespace stepcast
