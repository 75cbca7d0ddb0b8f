#include "core/advise/contention_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/advise/overlap_model.h"
#include "core/base/distributions.h"
#include "core/base/error.h"
#include "core/calibrate/normal_equations.h"
#include "core/calibrate/robust_statistics.h"

namespace stepcast {

namespace {

// A relative error of less is what arithmetic leaves.
constexpr double kExactError = 1e-9;
constexpr double kOffExact = 1e-6;
constexpr int kPasses = 20;
// gamma3 threads^gamma4 that are looked at: from a rate that is all but straight to one that is all
// but flat at the fewest threads.
constexpr double kLeastExponent = 0.05;
constexpr double kMostExponent = 20;
constexpr int kExponents = 60;
constexpr int kRefinements = 40;

// A point of a curve: y is to be base - factor * shape, relative errors counting `share` of what
// they are in y.
struct CurvePoint {
  int32_t threads = 0;
  double y = 0;
  double share = 1;
};

struct Curve {
  double base = 0;
  double factor = 0;
  double exponent = 0;  // gamma3; 0: a straight line

  double At(double threads, double gamma4) const {
    return base -
           factor * (exponent > 0 ? std::exp(-exponent * std::pow(threads, gamma4)) : threads);
  }
};

// A robust fit of one curve.
class CurveFit {
 public:
  CurveFit(std::vector<CurvePoint> points, double gamma4, bool is_straight)
      : points_(std::move(points)), gamma4_(gamma4), is_straight_(is_straight) {}

  absl::Status Run(StopCheck stop) {
    StartFromMedians();
    for (int pass = 0; pass < kPasses; ++pass) {
      Rescale();
      for (size_t i = 0; i < points_.size(); ++i) weights_[i] = WeightOf(i);
      curve_ = Best(points_, weights_);
      if (absl::Status status = stop(); !status.ok()) return status;
    }
    Rescale();
    return absl::OkStatus();
  }

  const Curve& curve() const { return curve_; }
  int32_t Outliers() const {
    int32_t count = 0;
    for (size_t i = 0; i < points_.size(); ++i) count += WeightOf(i) > 0 ? 0 : 1;
    return count;
  }
  double RelativeResidual() const { return Median(Distances()); }
  // From the fewest threads measured to the most, as a share of the base.
  double Rise() const {
    const auto [least, most] = Ends(points_);
    return curve_.factor * (Shape(curve_.exponent, least) - Shape(curve_.exponent, most)) /
           curve_.base;
  }

  // Half-widths of base, factor and exponent, by the asymptotic variance of an M-estimate (Huber
  // and Ronchetti, "Robust Statistics", 2009, 7.6); none where the points do not tell them apart.
  std::optional<Coefficients> HalfWidths(double level) const {
    NormalEquations equations;
    double squares = 0;
    double slopes = 0;
    for (size_t i = 0; i < points_.size(); ++i) {
      const double error = ErrorOf(i);
      const double weight = WeightOf(i);
      equations.Add(RowOf(i), 0, 1);
      squares += weight * weight * error * error;
      slopes += scale_ > 0 ? BiweightSlope(error / Reach()) : weight;
    }
    const auto inverse = equations.Inverse({true, true, !is_straight_});
    const int degrees = static_cast<int>(points_.size()) - (is_straight_ ? 2 : 3);
    if (!inverse || degrees < 1 || !(slopes > 0)) return std::nullopt;
    const double by_slope = static_cast<double>(points_.size()) / slopes;
    const double variance = squares / degrees * by_slope * by_slope;
    const double quantile = StudentTQuantile(degrees, level);
    Coefficients widths{};
    for (size_t j = 0; j < kCoefficients; ++j)
      widths[j] = quantile * std::sqrt(std::max(0.0, (*inverse)[j][j] * variance));
    return widths;
  }

 private:
  // The fewest and the most threads.
  static std::pair<int32_t, int32_t> Ends(const std::vector<CurvePoint>& points) {
    const auto [least, most] =
        std::minmax_element(points.begin(), points.end(),
                            [](const auto& a, const auto& b) { return a.threads < b.threads; });
    return {least->threads, most->threads};
  }
  double Shape(double exponent, int32_t threads) const {
    return is_straight_ ? threads : std::exp(-exponent * std::pow(threads, gamma4_));
  }
  // Relative error; of the seconds, where y is a rate.
  double ErrorOf(size_t i) const {
    const CurvePoint& point = points_[i];
    return point.share * (curve_.At(point.threads, gamma4_) / point.y - 1);
  }
  Coefficients RowOf(size_t i) const {
    const CurvePoint& point = points_[i];
    const double unit = point.share / point.y;
    const double shape = Shape(curve_.exponent, point.threads);
    const double slope =
        is_straight_ ? 0 : curve_.factor * shape * std::pow(point.threads, gamma4_);
    return {unit, -unit * shape, unit * slope};
  }
  std::vector<double> Distances() const {
    std::vector<double> distances;
    for (size_t i = 0; i < points_.size(); ++i) distances.push_back(std::abs(ErrorOf(i)));
    return distances;
  }
  double Reach() const { return kBiweightReach * scale_; }
  void Rescale() {
    scale_ = kDeviationPerMedian * Median(Distances());
    if (scale_ < kExactError) scale_ = 0;
  }
  double WeightOf(size_t i) const {
    if (scale_ > 0) return Biweight(ErrorOf(i) / Reach());
    return std::abs(ErrorOf(i)) < kOffExact ? 1 : 0;  // of a majority that is exact
  }

  void StartFromMedians() {
    std::map<int32_t, std::vector<double>> by_threads;
    for (const CurvePoint& point : points_) by_threads[point.threads].push_back(point.y);
    std::vector<CurvePoint> medians;
    medians.reserve(by_threads.size());
    for (auto& [threads, values] : by_threads)
      medians.push_back({.threads = threads, .y = Median(std::move(values))});
    weights_.assign(medians.size(), 1);
    curve_ = Best(medians, weights_);
    weights_.assign(points_.size(), 1);
  }

  struct Scored {
    Curve curve;
    double squares = std::numeric_limits<double>::infinity();
  };
  // The weighted least squares of base and factor, which is not below 0.
  Scored With(double exponent, const std::vector<CurvePoint>& points,
              const std::vector<double>& weights) const {
    std::array<double, 5> sums{};  // of 1, s, s^2, y, s y, in relative units
    for (size_t i = 0; i < points.size(); ++i) {
      const double weight = weights[i] * std::pow(points[i].share / points[i].y, 2);
      const double shape = Shape(exponent, points[i].threads);
      const std::array<double, 5> terms = {1, shape, shape * shape, points[i].y,
                                           shape * points[i].y};
      for (size_t k = 0; k < sums.size(); ++k) sums[k] += weight * terms[k];
    }
    const auto& [one, s, ss, y, sy] = sums;
    Scored scored{.curve = {.exponent = is_straight_ ? 0 : exponent}};
    const double determinant = one * ss - s * s;
    if (determinant > 1e-14 * one * ss)
      scored.curve.factor = std::max(0.0, (s * y - one * sy) / determinant);
    scored.curve.base = one > 0 ? (y + scored.curve.factor * s) / one : 0;
    scored.squares = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      const double at =
          scored.curve.base - scored.curve.factor * Shape(exponent, points[i].threads);
      scored.squares += weights[i] * std::pow(points[i].share * (at / points[i].y - 1), 2);
    }
    return scored;
  }
  Curve Best(const std::vector<CurvePoint>& points, const std::vector<double>& weights) const {
    if (is_straight_) return With(0, points, weights).curve;
    const auto [fewest, most] = Ends(points);
    const double least = std::log(kLeastExponent / std::pow(most, gamma4_));
    const double step =
        (std::log(kMostExponent / std::pow(fewest, gamma4_)) - least) / (kExponents - 1);
    const auto at = [&](double log) { return With(std::exp(log), points, weights); };
    double best = least;
    Scored scored = at(best);
    for (int i = 1; i < kExponents; ++i) {
      Scored next = at(least + i * step);
      if (next.squares >= scored.squares) continue;
      scored = next;
      best = least + i * step;
    }
    // Golden sections around it.
    const double section = (std::sqrt(5.0) - 1) / 2;
    double lower = best - step;
    double upper = best + step;
    for (int i = 0; i < kRefinements; ++i) {
      const Scored left = at(upper - section * (upper - lower));
      const Scored right = at(lower + section * (upper - lower));
      (left.squares <= right.squares ? upper : lower) = left.squares <= right.squares
                                                            ? lower + section * (upper - lower)
                                                            : upper - section * (upper - lower);
      const Scored& better = left.squares <= right.squares ? left : right;
      if (better.squares < scored.squares) scored = better;
    }
    return scored.curve;
  }

  const std::vector<CurvePoint> points_;
  const double gamma4_;
  const bool is_straight_;
  std::vector<double> weights_;
  Curve curve_;
  double scale_ = 0;  // of relative errors; 0: they are exact
};

// The checks, and the points of each curve.
class ContentionFitter {
 public:
  explicit ContentionFitter(const ContentionMeasurements& measurements)
      : measurements_(measurements) {}

  absl::Status Checked() {
    Check();
    if (faults_.empty()) return absl::OkStatus();
    return FaultsError("REQUEST_INVALID", std::move(faults_).Take());
  }

  absl::StatusOr<ContentionFit> Run(StopCheck stop) {
    if (absl::Status status = Checked(); !status.ok()) return status;
    CurveFit speed(speeds_, measurements_.gamma4, true);
    if (absl::Status status = speed.Run(stop); !status.ok()) return status;
    ContentionFit fit;
    const auto widths = speed.HalfWidths(measurements_.confidence_level).value_or(Coefficients{});
    fit.alpha1 = Around(speed.curve().base, widths[0]);
    fit.alpha2 = Around(speed.curve().factor, widths[1]);
    fit.slowdown_outliers = speed.Outliers();
    fit.contention.alpha1 = fit.alpha1.value;
    fit.contention.alpha2 = fit.alpha2.value;
    fit.contention.gamma4 = measurements_.gamma4;
    const auto fit_rate = [&](bool overlapped, FittedRate& rate, TransferRate& values) {
      CurveFit curve(rates_[overlapped ? 1 : 0], measurements_.gamma4, false);
      if (absl::Status status = curve.Run(stop); !status.ok()) return status;
      rate = RateOf(curve);
      values = {
          .gamma1 = rate.gamma1.value, .gamma2 = rate.gamma2.value, .gamma3 = rate.gamma3.value};
      return absl::OkStatus();
    };
    if (absl::Status status = fit_rate(true, fit.overlapped, fit.contention.overlapped);
        !status.ok())
      return status;
    if (absl::Status status = fit_rate(false, fit.alone, fit.contention.alone); !status.ok())
      return status;
    return fit;
  }

 private:
  static FittedConstant Around(double value, double half_width) {
    return {.value = value, .lower = value - half_width, .upper = value + half_width};
  }
  FittedRate RateOf(const CurveFit& curve) const {
    const auto widths = curve.HalfWidths(measurements_.confidence_level);
    const Coefficients half = widths.value_or(Coefficients{});
    return {.gamma1 = Around(curve.curve().base, half[0]),
            .gamma2 = Around(curve.curve().factor, half[1]),
            .gamma3 = Around(curve.curve().exponent, half[2]),
            .is_told = widths.has_value() && curve.Rise() > kOffExact,
            .outliers = curve.Outliers(),
            .relative_residual = curve.RelativeResidual()};
  }

  template <typename... Parts>
  void Refuse(const std::string& field, const Parts&... parts) {
    faults_.Add(field, absl::StrCat(parts...));
  }

  void Check() {
    const OverlapLimits limits;
    if (measurements_.workers < 2 || measurements_.workers > limits.max_workers)
      Refuse("workers", measurements_.workers, " is not from 2 to ", limits.max_workers);
    if (!(measurements_.latency_seconds >= 0 &&
          measurements_.latency_seconds <= limits.max_latency_seconds)) {
      Refuse("latency_seconds", measurements_.latency_seconds, " is not from 0 to ",
             limits.max_latency_seconds);
    }
    if (!(measurements_.gamma4 > 0 && measurements_.gamma4 <= 2))
      Refuse("gamma4", measurements_.gamma4, " is not above 0 and at most 2");
    if (!(measurements_.confidence_level > 0 && measurements_.confidence_level < 1))
      Refuse("confidence_level", measurements_.confidence_level, " is not between 0 and 1");
    const size_t points = measurements_.transfers.size() + measurements_.slowdowns.size();
    if (points > kMaxPoints) {
      Refuse("transfers", OverLimit(static_cast<int64_t>(points), "max_points", kMaxPoints));
      return;
    }
    CheckTransfers(limits);
    CheckSlowdowns();
  }

  void CheckTransfers(const OverlapLimits& limits) {
    const double others = measurements_.workers - 1;
    const double startup = 2 * others * measurements_.latency_seconds;
    const double sent = 2 * others / measurements_.workers;
    std::array<std::set<int32_t>, 2> threads;
    for (size_t i = 0; i < measurements_.transfers.size() && !faults_.full(); ++i) {
      const MeasuredTransfer& transfer = measurements_.transfers[i];
      const std::string path = absl::StrCat("transfers[", i, "].");
      if (transfer.threads < 1) Refuse(path + "threads", transfer.threads, " is below 1");
      if (transfer.bytes < 1 || transfer.bytes > limits.max_layer_bytes)
        Refuse(path + "size_bytes", transfer.bytes, " is not from 1 to ", limits.max_layer_bytes);
      if (!(transfer.seconds > startup && std::isfinite(transfer.seconds))) {
        Refuse(path + "seconds", transfer.seconds, " is not above ", startup,
               ", the latencies of its hops");
        continue;
      }
      const size_t kind = transfer.overlapped ? 1 : 0;
      threads[kind].insert(transfer.threads);
      const double moving = transfer.seconds - startup;
      rates_[kind].push_back({.threads = transfer.threads,
                              .y = sent * static_cast<double>(transfer.bytes) / moving,
                              .share = moving / transfer.seconds});
    }
    if (!faults_.empty()) return;
    for (const size_t kind : {0, 1}) {
      if (threads[kind].size() >= 3 && rates_[kind].size() >= 4) continue;
      Refuse("transfers", "of those ", kind == 1 ? "overlapped" : "alone", " there are ",
             rates_[kind].size(), " with ", threads[kind].size(),
             " numbers of threads; at least 4 with 3 are needed");
    }
  }

  void CheckSlowdowns() {
    std::set<int32_t> threads;
    for (size_t i = 0; i < measurements_.slowdowns.size() && !faults_.full(); ++i) {
      const MeasuredSlowdown& measured = measurements_.slowdowns[i];
      const std::string path = absl::StrCat("slowdowns[", i, "].");
      if (measured.threads < 0) Refuse(path + "threads", measured.threads, " is below 0");
      if (!(measured.slowdown > 0 && std::isfinite(measured.slowdown))) {
        Refuse(path + "slowdown", measured.slowdown, " is not above 0");
        continue;
      }
      threads.insert(measured.threads);
      speeds_.push_back({.threads = measured.threads, .y = 1 / measured.slowdown});
    }
    if (speeds_.size() < measurements_.slowdowns.size()) return;
    if (threads.size() < 2 || speeds_.size() < 3) {
      Refuse("slowdowns", "there are ", speeds_.size(), " with ", threads.size(),
             " numbers of threads; at least 3 with 2 are needed");
    }
  }

  static constexpr int64_t kMaxPoints = 10'000;

  const ContentionMeasurements& measurements_;
  FaultList faults_;
  std::vector<CurvePoint> speeds_;
  std::array<std::vector<CurvePoint>, 2> rates_;  // alone, overlapped
};

}  // namespace

std::vector<int32_t> ThreadsOf(const ContentionMeasurements& measurements) {
  std::set<int32_t> threads;
  for (const MeasuredTransfer& transfer : measurements.transfers) threads.insert(transfer.threads);
  return {threads.begin(), threads.end()};
}

absl::Status CheckMeasurements(const ContentionMeasurements& measurements) {
  return ContentionFitter(measurements).Checked();
}

absl::StatusOr<ContentionFit> FitContention(const ContentionMeasurements& measurements,
                                            StopCheck stop) {
  return ContentionFitter(measurements).Run(stop);
}

}  // namespace stepcast
