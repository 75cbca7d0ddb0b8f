#include "core/calibrate/collective_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/bandwidth.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/student_t.h"
#include "core/calibrate/measured_line.h"
#include "core/calibrate/weighted_median.h"
#include "core/communication/collective_time.h"
#include "core/model/fault_list.h"

namespace stepcast {

namespace {

// The coefficients, by what is kept rather than the next where points do not tell two apart.
enum Coefficient : uint8_t { kPerByte, kLatency, kPerAddedByte };
constexpr size_t kCoefficients = 3;
using Coefficients = std::array<double, kCoefficients>;
// The coefficients that are fitted; the others are 0.
using Chosen = std::array<bool, kCoefficients>;

double Product(const Coefficients& a, const Coefficients& b) {
  double sum = 0;
  for (size_t j = 0; j < kCoefficients; ++j) sum += a[j] * b[j];
  return sum;
}

// A symmetric matrix of the coefficients, and what belongs to its right.
class NormalEquations {
 public:
  void Add(const Coefficients& row, double target, double weight) {
    for (size_t i = 0; i < kCoefficients; ++i) {
      right_[i] += weight * row[i] * target;
      for (size_t j = 0; j < kCoefficients; ++j) left_[i][j] += weight * row[i] * row[j];
    }
  }

  double QuadraticForm(const Coefficients& by) const {
    double sum = 0;
    for (size_t i = 0; i < kCoefficients; ++i) sum += by[i] * Product(left_[i], by);
    return sum;
  }

  // The wanted coefficients, less those whose column the ones before them explain all but
  // kLeastOwnShare of.
  Chosen Separable(const Chosen& wanted) const {
    Chosen chosen{};
    for (size_t j = 0; j < kCoefficients; ++j) {
      if (!wanted[j] || !(left_[j][j] > 0)) continue;
      chosen[j] = true;
      if (!Inverse(chosen)) chosen[j] = false;
    }
    return chosen;
  }

  // None where the chosen columns depend on each other.
  std::optional<std::array<Coefficients, kCoefficients>> Inverse(const Chosen& chosen) const {
    // Gauss and Jordan, of a matrix with ones on the diagonal.
    std::array<Coefficients, kCoefficients> matrix{};
    std::array<Coefficients, kCoefficients> inverse{};
    Coefficients unit{};
    for (size_t j = 0; j < kCoefficients; ++j) {
      inverse[j][j] = 1;
      unit[j] = chosen[j] && left_[j][j] > 0 ? std::sqrt(left_[j][j]) : 1;
    }
    for (size_t i = 0; i < kCoefficients; ++i) {
      for (size_t j = 0; j < kCoefficients; ++j) {
        matrix[i][j] =
            chosen[i] && chosen[j] ? left_[i][j] / (unit[i] * unit[j]) : (i == j ? 1 : 0);
      }
    }
    for (size_t pivot = 0; pivot < kCoefficients; ++pivot) {
      if (!(matrix[pivot][pivot] > kLeastOwnShare)) return std::nullopt;
      const double by = 1 / matrix[pivot][pivot];
      for (size_t j = 0; j < kCoefficients; ++j) {
        matrix[pivot][j] *= by;
        inverse[pivot][j] *= by;
      }
      for (size_t i = 0; i < kCoefficients; ++i) {
        if (i == pivot) continue;
        const double factor = matrix[i][pivot];
        for (size_t j = 0; j < kCoefficients; ++j) {
          matrix[i][j] -= factor * matrix[pivot][j];
          inverse[i][j] -= factor * inverse[pivot][j];
        }
      }
    }
    for (size_t i = 0; i < kCoefficients; ++i) {
      for (size_t j = 0; j < kCoefficients; ++j) {
        inverse[i][j] = chosen[i] && chosen[j] ? inverse[i][j] / (unit[i] * unit[j]) : 0;
      }
    }
    return inverse;
  }

  std::optional<Coefficients> Solve(const Chosen& chosen) const {
    const auto inverse = Inverse(chosen);
    if (!inverse) return std::nullopt;
    Coefficients solution{};
    for (size_t i = 0; i < kCoefficients; ++i) solution[i] = Product((*inverse)[i], right_);
    return solution;
  }

  // The least squares with none below 0, and with kPerAddedByte at most kPerByte if that is asked
  // for: the best of what its subsets give. None where no subset gives one by which every
  // collective takes time.
  std::optional<Coefficients> SolveWithin(const Chosen& chosen, bool adds_faster) const {
    std::optional<Coefficients> best;
    double best_explained = 0;
    const auto offer = [&](const std::optional<Coefficients>& solution) {
      if (!solution || *std::min_element(solution->begin(), solution->end()) < 0) return;
      if (!((*solution)[kPerByte] > 0 || (*solution)[kLatency] > 0)) return;
      if (adds_faster && (*solution)[kPerAddedByte] > (*solution)[kPerByte]) return;
      const double explained = Product(*solution, right_);
      if (best && explained <= best_explained) return;
      best = solution;
      best_explained = explained;
    };
    for (size_t bits = 1; bits < (size_t{1} << kCoefficients); ++bits) {
      Chosen subset{};
      bool is_part = true;
      for (size_t j = 0; j < kCoefficients; ++j) {
        subset[j] = ((bits >> j) & 1) != 0;
        is_part = is_part && (chosen[j] || !subset[j]);
      }
      if (is_part) offer(Solve(subset));
    }
    if (adds_faster && chosen[kPerAddedByte]) {
      for (const bool has_latency : {true, false}) {
        if (chosen[kLatency] || !has_latency) offer(SolveAlike(has_latency));
      }
    }
    return best;
  }

 private:
  static constexpr double kLeastOwnShare = 1e-6;

  // With kPerAddedByte equal to kPerByte.
  std::optional<Coefficients> SolveAlike(bool has_latency) const {
    NormalEquations alike = *this;
    for (size_t j = 0; j < kCoefficients; ++j) alike.left_[kPerByte][j] += left_[kPerAddedByte][j];
    for (size_t i = 0; i < kCoefficients; ++i)
      alike.left_[i][kPerByte] += alike.left_[i][kPerAddedByte];
    alike.right_[kPerByte] += right_[kPerAddedByte];
    std::optional<Coefficients> solution = alike.Solve({true, has_latency, false});
    if (solution) (*solution)[kPerAddedByte] = (*solution)[kPerByte];
    return solution;
  }

  std::array<Coefficients, kCoefficients> left_{};
  Coefficients right_{};
};

constexpr double kBiweightReach = 4.685;
constexpr double kDeviationPerMedian = 1.4826;
// A relative error of less is what arithmetic and ticks leave.
constexpr double kExact = 1e-6;
constexpr int kStarts = 300;
constexpr size_t kStartsRefined = 8;
constexpr int kConcentrations = 5;
constexpr size_t kScoredPoints = 500;
// The share of the points that a start is to be near. Of two kinds of collectives one is half of
// the points, and does not tell all that both tell.
constexpr double kCovered = 0.75;
constexpr int kMaxPasses = 100;
// From then on the scale is taken as it is, so that the iteration ends.
constexpr int kScalePasses = 15;
constexpr double kSettled = 1e-10;
constexpr int kHalvings = 12;

double BiweightOf(double u) { return std::abs(u) < 1 ? (1 - u * u) * (1 - u * u) : 0; }
double BiweightSlopeOf(double u) { return std::abs(u) < 1 ? (1 - u * u) * (1 - 5 * u * u) : 0; }
// The loss of which u * BiweightOf(u) is the derivative, 1 at most.
double BiweightLossOf(double u) {
  const double rest = std::abs(u) < 1 ? 1 - u * u : 0;
  return 1 - rest * rest * rest;
}

// True where a link that is slower than adding and one that is as much faster take the same time:
// of n messages a half, an all-reduce takes 2n transmissions and an addition in the one case, n
// transmissions, n additions and a transmission in the other. Where true, adding is taken to be the
// faster one.
bool IsAmbiguous(const CollectiveFitQuery& query) {
  const Collective kind = query.measurements.front().kind;
  return query.algorithm == CollectiveAlgorithm::kGloo &&
         (kind == Collective::kAllReduce || kind == Collective::kReduceScatter) &&
         std::all_of(query.measurements.begin(), query.measurements.end(),
                     [&](const MeasuredCollective& m) { return m.kind == kind; });
}

// One fit with the coefficients `chosen`.
class BenchmarkFit {
 public:
  // Borrows.
  BenchmarkFit(const CollectiveFitQuery& query, Chosen chosen)
      : query_(&query), chosen_(chosen), adds_faster_(IsAmbiguous(query)) {
    parts_.reserve(query.measurements.size());
    for (const MeasuredCollective& m : query.measurements) parts_.push_back(PartsOf(m, {}));
  }

  absl::Status Run(StopCheck stop) {
    if (absl::Status status = Start(stop); !status.ok()) return status;
    return IsPlain() ? Settle(
                           stop, [](double) { return 1.0; }, [](double u) { return u * u; })
                     : Settle(stop, BiweightOf, BiweightLossOf);
  }

  const Coefficients& coefficients() const { return fitted_; }
  const Chosen& chosen() const { return chosen_; }
  bool IsOutlier(size_t i) const {
    return !IsPlain() && std::abs(residuals_[i]) >= (scale_ > 0 ? Reach() : kOffExact);
  }
  // (measured - fitted) / fitted.
  double RelativeError(size_t i) const { return std::expm1(residuals_[i]); }

  // The coefficients that the points tell from those before them, where they are now.
  Chosen Separable() const {
    NormalEquations equations;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (!IsOutlier(i)) equations.Add(RowOf(i), 0, 1);
    }
    return equations.Separable(chosen_);
  }

  struct Interval {
    double lower = 0;
    double upper = 0;
  };
  // Around the least squares without bounds, and wide enough for what was fitted.
  std::array<Interval, kCoefficients> Intervals(double level) const;

 private:
  static constexpr double kOffExact = 1e-5;

  struct Unbounded {
    Coefficients centre{};
    Coefficients variances{};
    int degrees = 0;  // of freedom
  };
  std::optional<Unbounded> WithoutBounds() const;

  bool IsPlain() const { return parts_.size() < kFewestForOutliers; }
  double Reach() const { return kBiweightReach * scale_; }

  Coefficients PartsOf(const MeasuredCollective& m, const Coefficients& at) const {
    const CollectiveParts parts =
        query_->algorithm == CollectiveAlgorithm::kGloo
            ? GlooParts(m.kind, m.size_bytes, m.workers, at[kLatency], at[kPerByte],
                        at[kPerAddedByte])
            : RingParts(m.kind, static_cast<double>(m.size_bytes), m.workers);
    return {parts.sent_bytes, parts.latencies, parts.added_bytes};
  }
  double LogError(size_t i, const Coefficients& at) const {
    const MeasuredCollective& m = query_->measurements[i];
    const double fitted = Product(PartsOf(m, at), at);
    return std::log(m.seconds / fitted);
  }
  // The derivative of the fitted time's logarithm: the parts over the fitted time.
  Coefficients RowOf(size_t i) const {
    const double fitted = Product(parts_[i], fitted_);
    Coefficients row = parts_[i];
    for (double& value : row) value /= fitted;
    return row;
  }

  // Sets what is fitted, and what follows from it.
  void MoveTo(const Coefficients& coefficients) {
    fitted_ = coefficients;
    residuals_.resize(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      parts_[i] = PartsOf(query_->measurements[i], fitted_);
      residuals_[i] = std::log(query_->measurements[i].seconds / Product(parts_[i], fitted_));
    }
  }
  void Rescale() {
    std::vector<double> distances;
    distances.reserve(residuals_.size());
    for (const double residual : residuals_) distances.push_back(std::abs(residual));
    // Few points lie nearer to what is fitted to them (Rousseeuw and Leroy, "Robust Regression and
    // Outlier Detection", 1987, 5.1).
    const double few =
        1 + 5 / std::max(1.0, static_cast<double>(parts_.size()) - double{kCoefficients});
    scale_ = few * kDeviationPerMedian * Median(std::move(distances));
    if (scale_ < kExact) scale_ = 0;
  }

  absl::Status Start(StopCheck stop);
  std::vector<size_t> Drawn(Random& random) const;
  Coefficients ThroughAll() const;
  // Through these points, in relative errors.
  std::optional<Coefficients> Through(std::span<const size_t> points) const;
  std::optional<Coefficients> Concentrated(Coefficients at, std::span<const size_t> scored) const;
  double Score(const Coefficients& at, std::span<const size_t> scored) const;
  template <typename Weight, typename Loss>
  absl::Status Settle(StopCheck stop, Weight weight, Loss loss);
  template <typename Loss>
  double LossAt(const Coefficients& at, Loss loss) const;

  const CollectiveFitQuery* query_;
  Chosen chosen_;
  bool adds_faster_;
  std::vector<Coefficients> parts_;  // by point
  Coefficients fitted_{};
  std::vector<double> residuals_;  // logarithms of measured over fitted
  double scale_ = 0;               // standard deviation of the residuals; 0: they are exact
};

std::optional<Coefficients> BenchmarkFit::Through(std::span<const size_t> points) const {
  Coefficients at{};
  // By GLOO the parts depend on what is fitted.
  const int rounds = query_->algorithm == CollectiveAlgorithm::kGloo ? 4 : 1;
  for (int round = 0; round < rounds; ++round) {
    NormalEquations equations;
    for (const size_t i : points) {
      Coefficients row = PartsOf(query_->measurements[i], at);
      for (double& value : row) value /= query_->measurements[i].seconds;
      equations.Add(row, 1, 1);
    }
    const std::optional<Coefficients> next = equations.SolveWithin(chosen_, adds_faster_);
    if (!next) return std::nullopt;
    at = *next;
  }
  return at;
}

double BenchmarkFit::Score(const Coefficients& at, std::span<const size_t> scored) const {
  std::vector<double> distances;
  distances.reserve(scored.size());
  for (const size_t i : scored) distances.push_back(std::abs(LogError(i, at)));
  return Quantile(std::move(distances), kCovered);
}

// The fit through the nearest points, again and again.
std::optional<Coefficients> BenchmarkFit::Concentrated(Coefficients at,
                                                       std::span<const size_t> scored) const {
  std::vector<std::pair<double, size_t>> nearest(scored.size());
  const auto covered =
      static_cast<size_t>(std::ceil(kCovered * static_cast<double>(scored.size())));
  for (int step = 0; step < kConcentrations; ++step) {
    for (size_t k = 0; k < scored.size(); ++k)
      nearest[k] = {std::abs(LogError(scored[k], at)), scored[k]};
    std::sort(nearest.begin(), nearest.end());
    std::vector<size_t> kept;
    for (size_t k = 0; k < covered; ++k) kept.push_back(nearest[k].second);
    const std::optional<Coefficients> next = Through(kept);
    if (!next) return std::nullopt;
    at = *next;
  }
  return at;
}

// As many of the points as are scored, drawn without putting back.
std::vector<size_t> BenchmarkFit::Drawn(Random& random) const {
  std::vector<size_t> points(parts_.size());
  std::iota(points.begin(), points.end(), size_t{0});
  const size_t count = std::min(kScoredPoints, points.size());
  for (size_t k = 0; k < count; ++k)
    std::swap(points[k], points[k + random.Below(points.size() - k)]);
  points.resize(count);
  return points;
}

// The fit to all points. Where there is none, by the bandwidth alone.
Coefficients BenchmarkFit::ThroughAll() const {
  std::vector<size_t> all(parts_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (const std::optional<Coefficients> through = Through(all)) return *through;
  std::vector<double> rates;
  for (size_t i = 0; i < parts_.size(); ++i)
    rates.push_back(query_->measurements[i].seconds / parts_[i][kPerByte]);
  return {Median(std::move(rates))};
}

absl::Status BenchmarkFit::Start(StopCheck stop) {
  const Coefficients all = ThroughAll();
  MoveTo(all);
  if (IsPlain()) return stop();
  Random random({parts_.size(), 15});
  const std::vector<size_t> scored = Drawn(random);
  const auto count = static_cast<size_t>(std::count(chosen_.begin(), chosen_.end(), true));
  std::vector<std::pair<double, Coefficients>> starts = {{Score(all, scored), all}};
  for (int start = 0; start < kStarts; ++start) {
    if (start % 16 == 0) {
      if (absl::Status status = stop(); !status.ok()) return status;
    }
    std::array<size_t, kCoefficients> points{};
    for (size_t k = 0; k < count; ++k) points[k] = random.Below(parts_.size());
    const auto through = Through(std::span(points).first(count));
    if (through) starts.emplace_back(Score(*through, scored), *through);
  }
  std::sort(starts.begin(), starts.end());
  starts.resize(std::min(kStartsRefined, starts.size()));
  std::pair<double, Coefficients> least = starts.front();
  for (const auto& [score, start] : starts) {
    if (absl::Status status = stop(); !status.ok()) return status;
    const auto concentrated = Concentrated(start, scored);
    if (concentrated) least = std::min(least, {Score(*concentrated, scored), *concentrated});
  }
  MoveTo(least.second);
  return absl::OkStatus();
}

template <typename Loss>
double BenchmarkFit::LossAt(const Coefficients& at, Loss loss) const {
  double sum = 0;
  for (size_t i = 0; i < parts_.size(); ++i) sum += loss(LogError(i, at) / Reach());
  return sum;
}

// Weighted least squares from where it is, until that is where it ends.
template <typename Weight, typename Loss>
absl::Status BenchmarkFit::Settle(StopCheck stop, Weight weight, Loss loss) {
  Rescale();
  for (int pass = 0; pass < kMaxPasses && scale_ > 0; ++pass) {
    if (absl::Status status = stop(); !status.ok()) return status;
    NormalEquations equations;
    for (size_t i = 0; i < parts_.size(); ++i)
      equations.Add(RowOf(i), 1 + residuals_[i], weight(residuals_[i] / Reach()));
    std::optional<Coefficients> next = equations.SolveWithin(chosen_, adds_faster_);
    if (!next) break;
    // The step is halved until it is one for the better.
    const double before = LossAt(fitted_, loss);
    double after = LossAt(*next, loss);
    for (int halving = 0; halving < kHalvings && !(after < before); ++halving) {
      if (absl::Status status = stop(); !status.ok()) return status;
      for (size_t j = 0; j < kCoefficients; ++j) (*next)[j] = ((*next)[j] + fitted_[j]) / 2;
      after = LossAt(*next, loss);
    }
    const bool is_better = after < before * (1 - kSettled);
    if (after < before) MoveTo(*next);
    if (pass < kScalePasses) {
      const double scale = scale_;
      Rescale();
      if (!is_better && std::abs(scale_ - scale) <= kSettled * scale) break;
    } else if (!is_better) {
      break;
    }
  }
  return absl::OkStatus();
}

// The least squares without bounds, from where it is, and its variances; none where they are
// exact, or too few.
std::optional<BenchmarkFit::Unbounded> BenchmarkFit::WithoutBounds() const {
  Unbounded unbounded;
  for (size_t i = 0; i < parts_.size(); ++i) unbounded.degrees += IsOutlier(i) ? 0 : 1;
  const int counted = unbounded.degrees;
  unbounded.degrees -= static_cast<int>(std::count(chosen_.begin(), chosen_.end(), true));
  if (scale_ <= 0 || unbounded.degrees <= 0) return std::nullopt;
  NormalEquations weights;
  NormalEquations slopes;
  NormalEquations squares;
  double spread = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const double u = residuals_[i] / Reach();
    const double weight = IsPlain() ? 1 : BiweightOf(u);
    const double pull = weight * residuals_[i];
    weights.Add(RowOf(i), 1 + residuals_[i], weight);
    slopes.Add(RowOf(i), 0, IsPlain() ? 1 : BiweightSlopeOf(u));
    squares.Add(RowOf(i), 0, pull * pull);
    spread += pull * residuals_[i];
  }
  const auto classical = weights.Inverse(chosen_);
  const std::optional<Coefficients> centre = weights.Solve(chosen_);
  if (!classical || !centre) return std::nullopt;
  unbounded.centre = *centre;
  // Few points may have none but steep parts.
  const auto bread = slopes.Inverse(chosen_).value_or(*classical);
  for (size_t j = 0; j < kCoefficients; ++j) {
    const double sandwich = squares.QuadraticForm(bread[j]) * counted / unbounded.degrees;
    unbounded.variances[j] = std::max(sandwich, (*classical)[j][j] * spread / unbounded.degrees);
  }
  return unbounded;
}

std::array<BenchmarkFit::Interval, kCoefficients> BenchmarkFit::Intervals(double level) const {
  std::array<Interval, kCoefficients> intervals;
  for (size_t j = 0; j < kCoefficients; ++j) intervals[j] = {fitted_[j], fitted_[j]};
  const std::optional<Unbounded> unbounded = WithoutBounds();
  if (!unbounded) return intervals;
  const double quantile = StudentTQuantile(unbounded->degrees, level);
  for (size_t j = 0; j < kCoefficients; ++j) {
    if (!chosen_[j]) continue;
    const double half = quantile * std::sqrt(std::max(unbounded->variances[j], 0.0));
    const double lower = std::max(0.0, unbounded->centre[j] - half);
    const double upper = std::max(0.0, unbounded->centre[j] + half);
    intervals[j] = {std::min(lower, fitted_[j]), std::max(upper, fitted_[j])};
  }
  return intervals;
}

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
    // Of two in the middle the mean, so that it leans to neither side.
    std::sort(errors.begin(), errors.end());
    row.bias = (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]) / 2;
    row.relative_residual = Median(std::move(distances));
    rows.push_back(row);
  }
  return rows;
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
  answer.warnings = FitWarnings(query).Of(answer);
  return answer;
}

}  // namespace stepcast
