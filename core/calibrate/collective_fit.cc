#include "core/calibrate/collective_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/bandwidth.h"
#include "core/base/error.h"
#include "core/calibrate/benchmark_fit.h"
#include "core/calibrate/robust_statistics.h"

namespace stepcast {

namespace {

// Checks a draft; its methods are in the order of the fields.
class CollectiveFitResolver {
 public:
  explicit CollectiveFitResolver(const CollectiveFitDraft& draft) : draft_(draft) {}

  absl::StatusOr<CollectiveFitQuery> Run() && {
    CollectiveFitQuery query{.measurements = draft_.measurements};
    query.algorithm = draft_.algorithm.value_or(query.algorithm);
    if (query.algorithm != CollectiveAlgorithm::kRing &&
        query.algorithm != CollectiveAlgorithm::kGloo) {
      faults_.Add("algorithm",
                  absl::StrCat(NameOf(query.algorithm),
                               " has no constants that are fitted here: RING or GLOO"));
    }
    query.confidence_level = draft_.confidence_level.value_or(query.confidence_level);
    if (!(query.confidence_level > 0 && query.confidence_level < 1)) {
      faults_.Add("confidence_level",
                  absl::StrCat(query.confidence_level, " is not above 0 and below 1"));
    }
    query.workers_per_node = draft_.workers_per_node.value_or(query.workers_per_node);
    if (query.workers_per_node < 1)
      faults_.Add("workers_per_node", absl::StrCat(query.workers_per_node, " is not at least 1"));
    CheckPointCount();
    for (size_t i = 0; i < Points().size() && !faults_.full(); ++i) CheckPoint(i, Points()[i]);
    if (faults_.empty()) CheckNodes(query.workers_per_node);
    if (!faults_.empty()) return FaultsError("REQUEST_INVALID", std::move(faults_).Take());
    return query;
  }

 private:
  const std::vector<MeasuredCollective>& Points() const { return draft_.measurements; }

  void CheckPointCount() {
    if (Points().size() < kFewestCollectiveMeasurements) {
      faults_.Add("measurements",
                  absl::StrCat(Points().size(),
                               " are too few: bandwidth, latency and how sure they are need ",
                               kFewestCollectiveMeasurements));
    } else if (Points().size() > kMaxCollectiveMeasurements) {
      faults_.Add("measurements",
                  absl::StrCat(Points().size(), " are more than ", kMaxCollectiveMeasurements));
    } else if (std::all_of(Points().begin(), Points().end(), [&](const MeasuredCollective& m) {
                 return m.size_bytes == Points().front().size_bytes;
               })) {
      faults_.Add("measurements", absl::StrCat("all are of ", Points().front().size_bytes,
                                               " bytes: what a byte takes and what a message takes "
                                               "can only be told apart with another size"));
    }
  }

  void CheckPoint(size_t index, const MeasuredCollective& m) {
    const auto field = [&](const char* name) {
      return absl::StrCat("measurements[", index, "].", name);
    };
    if (m.kind == Collective::kUnspecified)
      faults_.Add(field("kind"), "a measured collective needs a kind");
    if (m.workers < 2 || m.workers > kMaxMeasuredWorkers) {
      faults_.Add(field("workers"),
                  absl::StrCat(m.workers, " is not from 2 to ", kMaxMeasuredWorkers));
    }
    if (m.size_bytes < 1 || m.size_bytes > kMaxCollectiveBytes) {
      faults_.Add(field("size_bytes"),
                  absl::StrCat(m.size_bytes, " is not from 1 to ", kMaxCollectiveBytes));
    }
    // Not a number fails both comparisons.
    if (!(m.seconds >= kLeastCollectiveSeconds && m.seconds <= kMaxCollectiveSeconds)) {
      faults_.Add(field("seconds"),
                  absl::StrCat(m.seconds, " is not from ", kLeastCollectiveSeconds, " to ",
                               kMaxCollectiveSeconds));
    }
  }

  void CheckNodes(int32_t workers_per_node) {
    if (workers_per_node == 1) return;
    const auto is_inside = [&](const MeasuredCollective& m) {
      return m.workers <= workers_per_node;
    };
    const bool first = is_inside(Points().front());
    for (size_t i = 0; i < Points().size() && !faults_.full(); ++i) {
      const std::string field = absl::StrCat("measurements[", i, "].workers");
      const int32_t workers = Points()[i].workers;
      if (is_inside(Points()[i]) != first) {
        faults_.Add(field, absl::StrCat(workers, " beside ", Points().front().workers, " with ",
                                        workers_per_node,
                                        " on a node: links inside a node and between nodes are to "
                                        "be fitted one after the other"));
        return;
      }
      if (!first && workers % workers_per_node != 0)
        faults_.Add(field, absl::StrCat(workers, " do not fill nodes of ", workers_per_node));
    }
  }

  const CollectiveFitDraft& draft_;
  FaultList faults_;
};

// The warnings of a fit, in the order of the coefficients.
class FitWarnings {
 public:
  explicit FitWarnings(const CollectiveFitQuery& query) : query_(query) {}

  std::vector<FitWarning> Of(const CollectiveFit& fit) && {
    OfBandwidth(fit.bandwidth);
    OfLatency(fit.latency);
    OfReduction(fit.reduction);
    OfWorkers(fit.by_workers);
    OfPoints(fit);
    return std::move(warnings_);
  }

 private:
  using Reason = FitWarning::Reason;

  template <typename... Parts>
  void Add(Reason reason, const Parts&... parts) {
    warnings_.push_back({.reason = reason, .message = absl::StrCat(parts...)});
  }
  void CheckBounds(const char* what, const FittedCoefficient& fitted, double least, double most) {
    if (fitted.value <= 0 || (fitted.value >= least && fitted.value <= most)) return;
    Add(Reason::kNoScenario, what, " ", fitted.value, " is not from ", least, " to ", most,
        ", as a scenario takes it");
  }

  void OfBandwidth(const FittedCoefficient& bandwidth) {
    if (bandwidth.value <= 0)
      Add(Reason::kBandwidthNotTold, "no time grows with the size; measure larger sizes");
    CheckBounds("bandwidth", bandwidth, Bandwidth::kMinBytesPerSecond, kMaxFittedBandwidth);
  }
  void OfLatency(const FittedCoefficient& latency) {
    if (!latency.is_told) {
      Add(Reason::kLatencyNotTold,
          "latency 0: every measurement sends as many bytes a message, so that it is in the "
          "bandwidth; measure other sizes with the same number of workers");
    } else if (latency.lower <= 0 && latency.upper > 0) {
      Add(Reason::kLatencyNotTold, "latency is not told from 0, at most ",
          absl::StrFormat("%.3g", 1e6 * latency.upper), " us; measure smaller sizes");
    }
    CheckBounds("latency", latency, 0, AllReduceLimits().max_latency_seconds);
  }
  void OfReduction(const FittedCoefficient& reduction) {
    if (reduction.is_told && reduction.value > 0 && IsAmbiguous(query_)) {
      Add(Reason::kReductionAmbiguous,
          "adding is taken to be faster than the link; a faster link and slower additions take the "
          "same time; measure all-gathers, too");
    } else if (reduction.is_told && reduction.value <= 0 && reduction.upper > 0) {
      Add(Reason::kReductionNotTold, "reduction is not told from 0, at most ",
          absl::StrFormat("%.3g", 1e9 * reduction.upper), " ns a byte, and taken as 0");
    } else if (!reduction.is_told) {
      Add(Reason::kReductionNotTold, "reduction 0: ", WhyReductionIsNotTold());
    }
    CheckBounds("reduction", reduction, 0, AllReduceLimits().max_reduction_seconds_per_byte);
  }
  std::string WhyReductionIsNotTold() const {
    if (query_.measurements.size() <= kCoefficients) {
      return absl::StrCat(query_.measurements.size(),
                          " measurements are too few to tell it from the bandwidth");
    }
    return query_.algorithm == CollectiveAlgorithm::kRing
               ? "a ring adds the same share of the bytes that it sends whatever the size and the "
                 "workers, so that it is in the bandwidth; measure all-gathers, too"
               : "no measurement tells it from the bandwidth, so that it is in it; measure several "
                 "numbers of workers";
  }
  void OfWorkers(const std::vector<WorkersResidual>& by_workers) {
    if (by_workers.size() == 1 && by_workers.front().workers == 2) {
      Add(Reason::kTwoWorkersOnly,
          "only two workers, whose collectives have too few messages to say what the latency of "
          "more is; measure more");
    }
    for (const WorkersResidual& at : by_workers) {
      if (std::abs(at.bias) < kNotableBias) continue;
      Add(Reason::kAlgorithmFails, "with ", at.workers, " workers half of the times are ",
          absl::StrFormat("%.0f", 100 * std::abs(at.bias)), "% or more ",
          at.bias > 0 ? "above" : "below", " what is fitted; is the algorithm another?");
    }
  }
  void OfPoints(const CollectiveFit& answer) {
    if (answer.points.empty()) return;
    Add(Reason::kNoLine, "the points follow no line: half are off by ",
        absl::StrFormat("%.0f", 100 * answer.relative_residual), "% or more, and ", answer.outliers,
        " of ", query_.measurements.size(),
        " are of no weight, as where a library changes its protocol with the size; take the "
        "measured times themselves");
  }

  static constexpr double kNotableBias = 0.1;

  const CollectiveFitQuery& query_;
  std::vector<FitWarning> warnings_;
};

std::vector<WorkersResidual> ByWorkers(const CollectiveFitQuery& query, const BenchmarkFit& fit) {
  std::map<int32_t, std::vector<size_t>> points;
  for (size_t i = 0; i < query.measurements.size(); ++i)
    points[query.measurements[i].workers].push_back(i);
  std::vector<WorkersResidual> rows;
  for (const auto& [workers, at] : points) {
    WorkersResidual row{.workers = workers, .measurements = static_cast<int32_t>(at.size())};
    std::vector<double> errors;
    std::vector<double> distances;
    for (const size_t i : at) {
      row.outliers += fit.IsOutlier(i) ? 1 : 0;
      errors.push_back(fit.RelativeError(i));
      distances.push_back(std::abs(errors.back()));
    }
    // The mean of the two in the middle, so that it leans to neither side.
    std::sort(errors.begin(), errors.end());
    row.bias = (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]) / 2;
    row.relative_residual = Median(std::move(distances));
    rows.push_back(row);
  }
  return rows;
}

// Times that change their course with the size, as where a library changes its protocol: half of
// the points, or of those of some workers, are off by more than a tenth, or a third is of no
// weight.
bool FollowNoLine(const CollectiveFit& fit, size_t points) {
  constexpr double kFar = 0.1;
  constexpr size_t kOutliersOf = 3;
  return fit.relative_residual > kFar || static_cast<size_t>(fit.outliers) * kOutliersOf > points ||
         std::any_of(fit.by_workers.begin(), fit.by_workers.end(),
                     [](const WorkersResidual& row) { return row.relative_residual > kFar; });
}

std::vector<MeasuredCollective> PointsOf(const CollectiveFitQuery& query) {
  std::map<std::tuple<Collective, int32_t, int64_t>, std::vector<double>> times;
  for (const MeasuredCollective& point : query.measurements)
    times[{point.kind, point.workers, point.size_bytes}].push_back(point.seconds);
  std::vector<MeasuredCollective> points;
  for (auto& [key, seconds] : times) {
    const auto& [kind, workers, size] = key;
    points.push_back({.kind = kind,
                      .workers = workers,
                      .size_bytes = size,
                      .seconds = Median(std::move(seconds))});
  }
  return points;
}

// The coefficients, of which those that the points do not tell from others are left out.
absl::StatusOr<BenchmarkFit> FitSeparable(const CollectiveFitQuery& query, Chosen wanted,
                                          StopCheck stop) {
  BenchmarkFit fit(query, wanted);
  // A coefficient that is left out is never taken in again, so this ends.
  while (true) {
    if (absl::Status status = fit.Run(stop); !status.ok()) return status;
    const Chosen separable = fit.Separable();
    if (separable == fit.chosen()) return fit;
    fit = BenchmarkFit(query, separable);
  }
}

FittedCoefficient Inverted(const FittedCoefficient& per_byte) {
  const auto inverse = [](double value) {
    return value > 1 / kMaxFittedBandwidth ? 1 / value : kMaxFittedBandwidth;
  };
  return {.is_told = true,
          .value = per_byte.value > 0 ? inverse(per_byte.value) : 0,
          .lower = inverse(per_byte.upper),
          .upper = inverse(per_byte.lower)};
}

}  // namespace

absl::StatusOr<CollectiveFitQuery> ResolveCollectiveFit(const CollectiveFitDraft& draft) {
  return CollectiveFitResolver(draft).Run();
}

absl::StatusOr<CollectiveFit> FitCollectives(const CollectiveFitQuery& query, StopCheck stop) {
  const bool has_enough = query.measurements.size() > kCoefficients;
  const auto with_reduction = FitSeparable(query, {true, true, has_enough}, stop);
  if (!with_reduction.ok()) return with_reduction.status();
  const auto intervals = with_reduction->Intervals(query.confidence_level);
  // Adding that is not told from nothing is nothing; how sure the others are stays.
  Chosen chosen = with_reduction->chosen();
  if (intervals[kPerAddedByte].lower <= 0) chosen[kPerAddedByte] = false;
  const auto fit =
      chosen == with_reduction->chosen() ? with_reduction : FitSeparable(query, chosen, stop);
  if (!fit.ok()) return fit.status();
  std::array<FittedCoefficient, kCoefficients> fitted;
  for (size_t j = 0; j < kCoefficients; ++j) {
    const double value = fit->coefficients()[j];
    fitted[j] = {.is_told = with_reduction->chosen()[j],
                 .value = value,
                 .lower = std::min(intervals[j].lower, value),
                 .upper = std::max(intervals[j].upper, value)};
  }
  CollectiveFit answer{
      .algorithm = query.algorithm,
      .workers_per_node = query.workers_per_node,
      .is_inside_node = query.workers_per_node > 1 &&
                        query.measurements.front().workers <= query.workers_per_node,
      .bandwidth = Inverted(fitted[kPerByte]),
      .latency = fitted[kLatency],
      .reduction = fitted[kPerAddedByte],
      .by_workers = ByWorkers(query, *fit),
      .confidence_level = query.confidence_level};
  std::vector<double> distances;
  for (size_t i = 0; i < query.measurements.size(); ++i) {
    answer.outliers += fit->IsOutlier(i) ? 1 : 0;
    distances.push_back(std::abs(fit->RelativeError(i)));
  }
  answer.relative_residual = Median(std::move(distances));
  if (FollowNoLine(answer, query.measurements.size())) answer.points = PointsOf(query);
  answer.warnings = FitWarnings(query).Of(answer);
  return answer;
}

}  // namespace stepcast
