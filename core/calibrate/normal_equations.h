// The weighted least squares of a collective's time in its three coefficients, none below 0.
//
// Threads: none. Cost: constant; memory: fifteen numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace stepcast {

// The coefficients, by what is kept rather than the next where points do not tell two apart.
enum Coefficient : uint8_t { kPerByte, kLatency, kPerAddedByte };
inline constexpr size_t kCoefficients = 3;
using Coefficients = std::array<double, kCoefficients>;
// The coefficients that are fitted; the others are 0.
using Chosen = std::array<bool, kCoefficients>;

inline double Product(const Coefficients& a, const Coefficients& b) {
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

}  // namespace stepcast
