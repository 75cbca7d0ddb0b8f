#include "core/calibrate/benchmark_fit.h"

#include <algorithm>
#include <numeric>

#include "core/base/distributions.h"
#include "core/calibrate/robust_statistics.h"
#include "core/communication/collective_time.h"

namespace stepcast {

namespace {

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

}  // namespace

bool IsAmbiguous(const CollectiveFitQuery& query) {
  const Collective kind = query.measurements.front().kind;
  return query.algorithm == CollectiveAlgorithm::kGloo &&
         (kind == Collective::kAllReduce || kind == Collective::kReduceScatter) &&
         std::all_of(query.measurements.begin(), query.measurements.end(),
                     [&](const MeasuredCollective& m) { return m.kind == kind; });
}

Coefficients BenchmarkFit::PartsOf(const MeasuredCollective& m, const Coefficients& at) const {
  const CollectiveParts parts =
      query_->algorithm == CollectiveAlgorithm::kGloo
          ? GlooParts(m.kind, m.size_bytes, m.workers, at[kLatency], at[kPerByte],
                      at[kPerAddedByte])
          : RingParts(m.kind, static_cast<double>(m.size_bytes), m.workers);
  return {parts.sent_bytes, parts.latencies, parts.added_bytes};
}

void BenchmarkFit::Rescale() {
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

// Points, as many as are scored, drawn without putting back.
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
    const double weight = IsPlain() ? 1 : Biweight(u);
    const double pull = weight * residuals_[i];
    weights.Add(RowOf(i), 1 + residuals_[i], weight);
    slopes.Add(RowOf(i), 0, IsPlain() ? 1 : BiweightSlope(u));
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

absl::Status BenchmarkFit::Run(StopCheck stop) {
  if (absl::Status status = Start(stop); !status.ok()) return status;
  return IsPlain() ? Settle(
                         stop, [](double) { return 1.0; }, [](double u) { return u * u; })
                   : Settle(stop, Biweight, BiweightLoss);
}

}  // namespace stepcast
