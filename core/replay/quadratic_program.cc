#include "core/replay/quadratic_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/base/error.h"

namespace stepcast {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
// A normal whose part outside of the active ones is a smaller share of it depends on them.
constexpr double kDependent = 1e-9;

absl::Status NumericalFailure(const char* reason, const char* what) {
  return MakeError(absl::StatusCode::kFailedPrecondition, what, {.reason = reason});
}

// The lower triangle L with L L' = H; empty: H is not positive definite.
std::vector<double> CholeskyOf(const std::vector<double>& hessian, size_t size) {
  std::vector<double> lower(size * size, 0);
  for (size_t row = 0; row < size; ++row) {
    for (size_t column = 0; column <= row; ++column) {
      double sum = hessian[row * size + column];
      for (size_t k = 0; k < column; ++k) sum -= lower[row * size + k] * lower[column * size + k];
      if (row == column) {
        if (!(sum > 0) || std::isinf(sum)) return {};
        lower[row * size + row] = std::sqrt(sum);
      } else {
        lower[row * size + column] = sum / lower[column * size + column];
      }
    }
  }
  return lower;
}

// Constraints as n' x >= b, with n = -normal and b = -most.
class DualActiveSet {
 public:
  DualActiveSet(size_t size, const std::vector<LinearConstraint>& constraints, double feasibility,
                StopCheck stop)
      : size_(size),
        constraints_(constraints),
        feasibility_(feasibility),
        stop_(stop),
        j_(size * size, 0),
        r_(size * size, 0),
        is_active_(constraints.size(), 0) {}

  absl::StatusOr<QuadraticSolution> Run(const std::vector<double>& hessian,
                                        const std::vector<double>& gradient) {
    if (!Factorize(hessian, gradient))
      return NumericalFailure("PROGRAM_NOT_CONVEX", "the objective is not strictly convex");
    const size_t most_steps = 50 * (size_ + 10) + 2 * constraints_.size();
    for (size_t steps = 0; steps < most_steps; ++steps) {
      if (!stop_.GoesOn(static_cast<int64_t>(size_ * size_ + 4 * constraints_.size()) / 16 + 1))
        return stop_.status();
      const std::optional<size_t> violated = MostViolated();
      if (!violated.has_value()) return Solution(true);
      if (!TakeIn(*violated)) return Solution(false);
    }
    return NumericalFailure(kIllConditioned,
                            "constraints that nearly coincide let the optimum not be reached");
  }

 private:
  struct Active {
    size_t constraint = 0;
    double multiplier = 0;
  };

  // J = L^-T and the minimum without constraints.
  bool Factorize(const std::vector<double>& hessian, const std::vector<double>& gradient) {
    const std::vector<double> lower = CholeskyOf(hessian, size_);
    if (lower.empty() && size_ > 0) return false;
    // Column c of J solves L' j = e_c.
    for (size_t column = 0; column < size_; ++column) {
      for (size_t row = column + 1; row-- > 0;) {
        double sum = row == column ? 1 : 0;
        for (size_t k = row + 1; k <= column; ++k) sum -= lower[k * size_ + row] * J(k, column);
        J(row, column) = sum / lower[row * size_ + row];
      }
    }
    x_.assign(size_, 0);
    for (size_t column = 0; column < size_; ++column) {
      double along = 0;
      for (size_t row = 0; row < size_; ++row) along += J(row, column) * gradient[row];
      for (size_t row = 0; row < size_; ++row) x_[row] -= J(row, column) * along;
    }
    return std::all_of(x_.begin(), x_.end(), [](double value) { return std::isfinite(value); });
  }

  double& J(size_t row, size_t column) { return j_[row * size_ + column]; }
  double& R(size_t row, size_t column) { return r_[row * size_ + column]; }

  // n' x - b: below 0 where it is violated.
  double SlackOf(size_t constraint) const {
    return constraints_[constraint].most - constraints_[constraint].At(x_);
  }

  std::optional<size_t> MostViolated() const {
    std::optional<size_t> found;
    double least = -feasibility_;
    for (size_t i = 0; i < constraints_.size(); ++i) {
      if (is_active_[i] != 0) continue;
      const double slack = SlackOf(i);
      if (slack >= least) continue;
      found = i;
      least = slack;
    }
    return found;
  }

  // False: no point satisfies it together with the active ones; `active_` then has it, too, and the
  // certificate's weights.
  bool TakeIn(size_t constraint) {
    double multiplier = 0;
    while (true) {
      const std::vector<double> d = ProjectionsOf(constraint);
      const std::vector<double> r = WeightsOf(d);
      double outside = 0;
      double whole = 0;
      for (size_t k = 0; k < size_; ++k) {
        whole += d[k] * d[k];
        if (k >= active_.size()) outside += d[k] * d[k];
      }
      const bool depends = outside <= kDependent * kDependent * whole;
      const auto [dual_step, blocking] = LongestDualStep(r);
      const double primal_step = depends ? kNoLimit : -SlackOf(constraint) / outside;
      const double step = std::min(dual_step, primal_step);
      if (step == kNoLimit) {
        for (size_t k = 0; k < active_.size(); ++k) active_[k].multiplier = std::max(0.0, -r[k]);
        active_.push_back({.constraint = constraint, .multiplier = 1});
        return false;
      }
      for (size_t k = 0; k < active_.size(); ++k) active_[k].multiplier -= step * r[k];
      multiplier += step;
      if (!depends) {
        for (size_t row = 0; row < size_; ++row) {
          double direction = 0;
          for (size_t k = active_.size(); k < size_; ++k) direction += J(row, k) * d[k];
          x_[row] += step * direction;
        }
      }
      if (step == primal_step) {
        Append(d, {.constraint = constraint, .multiplier = multiplier});
        return true;
      }
      Drop(blocking);
    }
  }

  // d = J' n.
  std::vector<double> ProjectionsOf(size_t constraint) {
    const LinearConstraint& row = constraints_[constraint];
    std::vector<double> d(size_, 0);
    for (size_t k = 0; k < row.count; ++k) {
      const auto column = static_cast<size_t>(row.columns[k]);
      for (size_t i = 0; i < size_; ++i) d[i] -= J(column, i) * row.values[k];
    }
    return d;
  }

  // R^-1 of d's first part: how the normal is made of the active ones.
  std::vector<double> WeightsOf(const std::vector<double>& d) {
    std::vector<double> r(active_.size(), 0);
    for (size_t row = active_.size(); row-- > 0;) {
      double sum = d[row];
      for (size_t k = row + 1; k < active_.size(); ++k) sum -= R(row, k) * r[k];
      r[row] = sum / R(row, row);
    }
    return r;
  }

  // The longest step that leaves every multiplier at 0 or above, and whose it brings to 0.
  std::pair<double, size_t> LongestDualStep(const std::vector<double>& r) const {
    std::pair<double, size_t> longest{kNoLimit, 0};
    // A slope within rounding of 0 would take a step without end.
    double largest = 0;
    for (const double value : r) largest = std::max(largest, std::abs(value));
    for (size_t k = 0; k < r.size(); ++k) {
      if (r[k] <= 1e-12 * largest) continue;
      const double step = std::max(0.0, active_[k].multiplier) / r[k];
      if (step < longest.first) longest = {step, k};
    }
    return longest;
  }

  // Turns columns a and b of J so that (at_a, at_b) becomes (length, 0); both are those of a vector
  // in J's coordinates.
  void Turn(size_t a, size_t b, double cosine, double sine) {
    for (size_t row = 0; row < size_; ++row) {
      const double of_a = J(row, a);
      const double of_b = J(row, b);
      J(row, a) = cosine * of_a + sine * of_b;
      J(row, b) = cosine * of_b - sine * of_a;
    }
  }

  void Append(std::vector<double> d, Active added) {
    const size_t at = active_.size();
    for (size_t k = size_; --k > at;) {
      const double length = std::hypot(d[k - 1], d[k]);
      if (length == 0) continue;
      Turn(k - 1, k, d[k - 1] / length, d[k] / length);
      d[k - 1] = length;
      d[k] = 0;
    }
    for (size_t row = 0; row <= at; ++row) R(row, at) = d[row];
    is_active_[added.constraint] = 1;
    active_.push_back(added);
  }

  void Drop(size_t position) {
    is_active_[active_[position].constraint] = 0;
    const size_t last = active_.size() - 1;
    for (size_t column = position; column < last; ++column) {
      for (size_t row = 0; row <= column + 1; ++row) R(row, column) = R(row, column + 1);
    }
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(position));
    for (size_t column = position; column < last; ++column) {
      const double a = R(column, column);
      const double b = R(column + 1, column);
      const double length = std::hypot(a, b);
      if (length == 0) continue;
      const double cosine = a / length;
      const double sine = b / length;
      for (size_t k = column; k < last; ++k) {
        const double of_a = R(column, k);
        const double of_b = R(column + 1, k);
        R(column, k) = cosine * of_a + sine * of_b;
        R(column + 1, k) = cosine * of_b - sine * of_a;
      }
      Turn(column, column + 1, cosine, sine);
    }
  }

  QuadraticSolution Solution(bool feasible) const {
    QuadraticSolution solution{.feasible = feasible};
    if (feasible) solution.x = x_;
    for (const Active& active : active_) {
      if (active.multiplier > 0)
        solution.multipliers.push_back(
            {.constraint = active.constraint, .value = active.multiplier});
    }
    return solution;
  }

  const size_t size_;
  const std::vector<LinearConstraint>& constraints_;
  const double feasibility_;
  PacedStopCheck stop_;
  std::vector<double> j_;  // size x size
  std::vector<double> r_;  // size x size; the triangle of the active ones
  std::vector<uint8_t> is_active_;
  std::vector<double> x_;
  std::vector<Active> active_;
};

}  // namespace

absl::StatusOr<QuadraticSolution> MinimizeQuadratic(
    const std::vector<double>& hessian, const std::vector<double>& gradient,
    const std::vector<LinearConstraint>& constraints, double feasibility, StopCheck stop) {
  return DualActiveSet(gradient.size(), constraints, feasibility, stop).Run(hessian, gradient);
}

}  // namespace stepcast
