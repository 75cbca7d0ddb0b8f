// The fit of a benchmark of collectives with some of its coefficients.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/calibrate/collective_fit.h"
#include "core/calibrate/measured_line.h"
#include "core/calibrate/normal_equations.h"
#include "core/calibrate/robust_statistics.h"

namespace stepcast {

// True where a link that is slower than adding and one that is as much faster take the same time:
// of n messages a half, an all-reduce takes 2n transmissions and an addition in the one case, n
// transmissions, n additions and a transmission in the other. Where true, adding is taken to be the
// faster one.
bool IsAmbiguous(const CollectiveFitQuery& query);

// One robust fit with the coefficients `chosen`: collective_fit.h says by which method.
//
// Threads: none. Cost: as FitCollectives, once.
class BenchmarkFit {
 public:
  // Borrows.
  BenchmarkFit(const CollectiveFitQuery& query, Chosen chosen)
      : query_(&query), chosen_(chosen), adds_faster_(IsAmbiguous(query)) {
    parts_.reserve(query.measurements.size());
    for (const MeasuredCollective& m : query.measurements) parts_.push_back(PartsOf(m, {}));
  }

  absl::Status Run(StopCheck stop);

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

  Coefficients PartsOf(const MeasuredCollective& m, const Coefficients& at) const;
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
  void Rescale();

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

}  // namespace stepcast
