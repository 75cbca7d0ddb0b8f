// A small, dense, strictly convex quadratic program with sparse linear constraints.
//
// Method: the dual active-set method of Goldfarb and Idnani ("A numerically stable dual method for
// solving strictly convex quadratic programs", Mathematical Programming 27, 1983). It starts at the
// minimum without constraints and takes in the most violated one at a time, so most constraints are
// never more than looked at; where none can be kept, the multipliers are a certificate.
// Cost: O(size^3) once, O(size^2 + constraints) a step, about as many steps as constraints bind.
// Threads: pure functions. Determinism: sums are made in one order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"

namespace stepcast {

// The sum of values[k] * x[columns[k]] over the first `count` is at most `most`.
struct LinearConstraint {
  static constexpr size_t kMaxTerms = 4;

  std::array<int32_t, kMaxTerms> columns{};
  std::array<double, kMaxTerms> values{};
  size_t count = 0;
  double most = 0;

  void Add(int32_t column, double value) {
    columns[count] = column;
    values[count] = value;
    ++count;
  }
  double At(const std::vector<double>& x) const {
    double sum = 0;
    for (size_t k = 0; k < count; ++k) sum += values[k] * x[static_cast<size_t>(columns[k])];
    return sum;
  }
};

// Multiplier of the constraint with that index; at least 0.
struct Multiplier {
  size_t constraint = 0;
  double value = 0;
};

struct QuadraticSolution {
  bool feasible = true;
  std::vector<double> x;  // empty if infeasible
  // Feasible: of the constraints that bind, with gradient = -sum of value * normal. Infeasible:
  // weights at which the constraints' left sides cancel and their right sides add up to less than
  // 0 (Farkas).
  std::vector<Multiplier> multipliers;
};

inline constexpr char kIllConditioned[] = "PROGRAM_ILL_CONDITIONED";

// The x at which x' H x / 2 + g' x is least. A constraint holds if it is violated by at most
// `feasibility` of what its normal's length is.
//
// `hessian`: size x size, row after row, symmetric; `gradient`: size. Failure: what `stop` returns;
// FAILED_PRECONDITION, reason PROGRAM_NOT_CONVEX or kIllConditioned, where numbers do not
// let it end. REQUIRES: columns are below the size, no normal is 0.
absl::StatusOr<QuadraticSolution> MinimizeQuadratic(
    const std::vector<double>& hessian, const std::vector<double>& gradient,
    const std::vector<LinearConstraint>& constraints, double feasibility, StopCheck stop);

}  // namespace stepcast
