#include "core/replay/quadratic_program.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"

namespace stepcast {
namespace {

struct RandomProgram {
  size_t size = 0;
  std::vector<double> hessian;
  std::vector<double> gradient;
  std::vector<LinearConstraint> constraints;
};

RandomProgram MakeProgram(uint64_t seed) {
  Random random({seed, 77});
  RandomProgram made{.size = 1 + random.Below(4)};
  const size_t n = made.size;
  std::vector<double> root(n * n);
  for (double& value : root) value = random.Normal();
  made.hessian.assign(n * n, 0);
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < n; ++k) {
      for (size_t j = 0; j < n; ++j) made.hessian[i * n + k] += root[i * n + j] * root[k * n + j];
    }
    made.hessian[i * n + i] += 0.1;
    made.gradient.push_back(4 * random.Normal());
  }
  for (uint64_t i = random.Below(9); i > 0; --i) {
    LinearConstraint row{.most = random.Normal() + 0.5};
    for (size_t k = 0; k < n; ++k) {
      // Whole numbers, so that normals coincide and depend on each other often.
      const double value = static_cast<double>(random.Below(5)) - 2;
      if (value != 0) row.Add(static_cast<int32_t>(k), value);
    }
    if (row.count > 0) made.constraints.push_back(row);
  }
  return made;
}

// Gauss with pivoting; none: singular.
std::optional<std::vector<double>> SolveLinear(std::vector<std::vector<double>> rows) {
  const size_t n = rows.size();
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k; i < n; ++i) {
      if (std::abs(rows[i][k]) > std::abs(rows[pivot][k])) pivot = i;
    }
    if (std::abs(rows[pivot][k]) < 1e-9) return std::nullopt;
    std::swap(rows[k], rows[pivot]);
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = rows[i][k] / rows[k][k];
      for (size_t j = k; j <= n; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  std::vector<double> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = rows[i][n] / rows[i][i];
  return x;
}

double ObjectiveOf(const RandomProgram& program, const std::vector<double>& x) {
  double value = 0;
  for (size_t i = 0; i < program.size; ++i) {
    value += program.gradient[i] * x[i];
    for (size_t k = 0; k < program.size; ++k)
      value += 0.5 * x[i] * program.hessian[i * program.size + k] * x[k];
  }
  return value;
}

bool Satisfies(const RandomProgram& program, const std::vector<double>& x) {
  for (const LinearConstraint& row : program.constraints) {
    if (row.At(x) > row.most + 1e-6) return false;
  }
  return true;
}

// The least objective over the minima of all sets of constraints taken for equations; none: no
// point satisfies all.
std::optional<double> LeastByEnumeration(const RandomProgram& program) {
  const size_t n = program.size;
  std::optional<double> least;
  for (uint32_t set = 0; set < (1U << program.constraints.size()); ++set) {
    const auto active = static_cast<size_t>(std::popcount(set));
    if (active > n) continue;
    std::vector<std::vector<double>> rows(n + active, std::vector<double>(n + active + 1, 0));
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < n; ++k) rows[i][k] = program.hessian[i * n + k];
      rows[i][n + active] = -program.gradient[i];
    }
    size_t at = n;
    for (size_t c = 0; c < program.constraints.size(); ++c) {
      if ((set >> c & 1U) == 0) continue;
      const LinearConstraint& row = program.constraints[c];
      for (size_t k = 0; k < row.count; ++k) {
        rows[at][static_cast<size_t>(row.columns[k])] = row.values[k];
        rows[static_cast<size_t>(row.columns[k])][at] = row.values[k];
      }
      rows[at][n + active] = row.most;
      ++at;
    }
    std::optional<std::vector<double>> x = SolveLinear(std::move(rows));
    if (!x.has_value()) continue;
    x->resize(n);
    if (!Satisfies(program, *x)) continue;
    const double value = ObjectiveOf(program, *x);
    if (!least.has_value() || value < *least) least = value;
  }
  return least;
}

TEST(QuadraticProgramTest, FindsWhatTryingAllActiveSetsFinds) {
  int feasible = 0;
  int infeasible = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RandomProgram program = MakeProgram(seed);
    const std::optional<double> expected = LeastByEnumeration(program);
    const absl::StatusOr<QuadraticSolution> found =
        MinimizeQuadratic(program.hessian, program.gradient, program.constraints, 1e-9, NeverStop);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->feasible, expected.has_value());
    if (expected.has_value()) {
      ++feasible;
      EXPECT_TRUE(Satisfies(program, found->x));
      EXPECT_NEAR(ObjectiveOf(program, found->x), *expected, 1e-6 * (1 + std::abs(*expected)));
      continue;
    }
    // The certificate: left sides cancel, right sides are below 0.
    ++infeasible;
    std::vector<double> left(program.size, 0);
    double right = 0;
    for (const Multiplier& multiplier : found->multipliers) {
      const LinearConstraint& row = program.constraints[multiplier.constraint];
      EXPECT_GT(multiplier.value, 0);
      for (size_t k = 0; k < row.count; ++k)
        left[static_cast<size_t>(row.columns[k])] += multiplier.value * row.values[k];
      right += multiplier.value * row.most;
    }
    for (const double value : left) EXPECT_NEAR(value, 0, 1e-6);
    EXPECT_LT(right, 0);
  }
  EXPECT_GT(feasible, 1000);
  EXPECT_GT(infeasible, 300);
}

TEST(QuadraticProgramTest, RefusesWhatIsNotStrictlyConvex) {
  const absl::StatusOr<QuadraticSolution> found =
      MinimizeQuadratic({1, 0, 0, -1}, {0, 0}, {}, 1e-9, NeverStop);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(DetailsOf(found.status()).reason, "PROGRAM_NOT_CONVEX");
}

TEST(QuadraticProgramTest, StopsWhenTold) {
  const RandomProgram program = MakeProgram(3);
  std::vector<LinearConstraint> many(200'000, LinearConstraint{.most = 1});
  for (LinearConstraint& row : many) row.Add(0, 1);
  many.front().most = -100;
  EXPECT_EQ(MinimizeQuadratic(program.hessian, program.gradient, many, 1e-9,
                              [] { return absl::CancelledError("enough"); })
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stepcast
