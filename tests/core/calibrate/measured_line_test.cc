#include "core/calibrate/measured_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/distributions.h"
#include "core/base/random.h"
#include "tests/support/repetitions.h"

namespace stepcast::measured_line_test {
namespace {

constexpr Line kTruth{.slope = 2.5e-10, .offset = 40e-6};
constexpr double kLevel = 0.95;

enum class Noise { kConstant, kGrowing };

struct Campaign {
  int count = 200;
  double outlier_share = 0;
  Noise noise = Noise::kConstant;
};

// Tensors of 256 bytes to 64 MiB, most of them small, as a network's are. An outlier took 3 to 30
// times as long, as a receiver that was not scheduled.
std::vector<Measurement> Measured(const Campaign& campaign, Random& random) {
  std::vector<Measurement> measurements;
  for (int i = 0; i < campaign.count; ++i) {
    const double x = std::floor(256 * std::exp2(18 * random.Unit()));
    const double exact = kTruth.At(x);
    double y = exact + random.Normal() * (campaign.noise == Noise::kConstant ? 20e-6 : 0.1 * exact);
    if (random.Unit() < campaign.outlier_share) y = exact * (3 + 27 * random.Unit()) + 1e-3;
    measurements.push_back({.x = x, .y = std::max(y, 0.0)});
  }
  return measurements;
}

struct Held {
  int slope = 0;
  int offset = 0;
  double slope_error = 0;  // root mean square, relative
  double offset_error = 0;

  void Add(const Line& line, const Line& half_width) {
    slope += std::abs(line.slope - kTruth.slope) <= half_width.slope ? 1 : 0;
    offset += std::abs(line.offset - kTruth.offset) <= half_width.offset ? 1 : 0;
    slope_error += std::pow(line.slope / kTruth.slope - 1, 2);
    offset_error += std::pow(line.offset / kTruth.offset - 1, 2);
  }
  void Print(const char* name, int seeds) const {
    std::printf("    %-14s slope held %3d, error %7.2f %%; offset held %3d, error %7.2f %%\n", name,
                slope, 100 * std::sqrt(slope_error / seeds), offset,
                100 * std::sqrt(offset_error / seeds));
  }
};

// Textbook least squares with its textbook interval.
void AddLeastSquares(const std::vector<Measurement>& measurements, Held& held) {
  const Line line = FitLeastSquares(measurements);
  LineMoments moments;
  double squares = 0;
  for (const Measurement& m : measurements) {
    moments.Add(m, 1);
    squares += std::pow(m.y - line.At(m.x), 2);
  }
  const double variance = squares / (static_cast<double>(measurements.size()) - 2);
  const double quantile = StudentTQuantile(static_cast<int>(measurements.size()) - 2, kLevel);
  held.Add(line, {.slope = quantile * std::sqrt(variance * moments.one / moments.determinant()),
                  .offset = quantile * std::sqrt(variance * moments.xx / moments.determinant())});
}

struct Comparison {
  Held robust;
  Held least_squares;
};

constexpr int kSeeds = testing::Repetitions(300);

Comparison Compare(const Campaign& campaign) {
  Comparison comparison;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random({seed, 7});
    const std::vector<Measurement> measurements = Measured(campaign, random);
    const MeasuredLine fit = FitAboveZero(measurements, kLevel);
    comparison.robust.Add(fit.line, fit.half_width);
    AddLeastSquares(measurements, comparison.least_squares);
  }
  std::printf("%d measurements, %.0f %% outliers, %s noise, %d seeds:\n", campaign.count,
              100 * campaign.outlier_share,
              campaign.noise == Noise::kConstant ? "constant" : "growing", kSeeds);
  comparison.robust.Print("robust", kSeeds);
  comparison.least_squares.Print("least squares", kSeeds);
  return comparison;
}

class CampaignTest : public ::testing::TestWithParam<Campaign> {};

TEST_P(CampaignTest, HoldsTheTruthAsOftenAsItSaysAndIsNearItDespiteOutliers) {
  const Comparison comparison = Compare(GetParam());
  STEPCAST_SKIP_SHARES_UNDER_SANITIZERS();
  EXPECT_GE(comparison.robust.slope, 0.91 * kSeeds);
  EXPECT_GE(comparison.robust.offset, 0.91 * kSeeds);
  // Sums of squares: no outliers cost some precision, outliers cost least squares all.
  const double share = GetParam().outlier_share > 0 ? 0.01 : 1.3;
  EXPECT_LT(comparison.robust.slope_error, share * comparison.least_squares.slope_error);
  EXPECT_LT(comparison.robust.offset_error, share * comparison.least_squares.offset_error);
}

INSTANTIATE_TEST_SUITE_P(MeasuredLine, CampaignTest,
                         ::testing::Values(Campaign{}, Campaign{.outlier_share = 0.1},
                                           Campaign{.outlier_share = 0.2},
                                           Campaign{.noise = Noise::kGrowing},
                                           Campaign{.outlier_share = 0.1, .noise = Noise::kGrowing},
                                           Campaign{.outlier_share = 0.2, .noise = Noise::kGrowing},
                                           Campaign{.count = 30},
                                           Campaign{.count = 2000, .outlier_share = 0.2}));

TEST(MeasuredLineTest, ALineThatIsExactHasNoWidth) {
  std::vector<Measurement> measurements;
  for (int i = 0; i < 50; ++i)
    measurements.push_back({.x = 1000.0 * i, .y = kTruth.At(1000.0 * i)});
  const MeasuredLine fit = FitAboveZero(measurements, kLevel);
  EXPECT_NEAR(fit.line.slope, kTruth.slope, 1e-9 * kTruth.slope);
  EXPECT_NEAR(fit.line.offset, kTruth.offset, 1e-9 * kTruth.offset);
  EXPECT_NEAR(fit.half_width.slope, 0, 1e-9 * kTruth.slope);
  EXPECT_EQ(fit.outliers, 0);
}

TEST(MeasuredLineTest, OutliersAreCountedAndDoNotMoveAnExactLine) {
  std::vector<Measurement> measurements;
  for (int i = 0; i < 50; ++i)
    measurements.push_back({.x = 1000.0 * i, .y = kTruth.At(1000.0 * i)});
  for (int i = 0; i < 10; ++i) measurements[5 * i].y *= 20;
  const MeasuredLine fit = FitAboveZero(measurements, kLevel);
  EXPECT_NEAR(fit.line.slope, kTruth.slope, 1e-6 * kTruth.slope);
  EXPECT_NEAR(fit.line.offset, kTruth.offset, 1e-6 * kTruth.offset);
  EXPECT_EQ(fit.outliers, 10);
}

// The remainder that arithmetic leaves of an exact line is no noise, however few are off it.
TEST(MeasuredLineTest, RoundingMakesNoOutliers) {
  std::vector<Measurement> measurements;
  for (int i = 1; i <= 100; ++i)
    measurements.push_back({.x = 1000.0 * i, .y = 1e-6 + 2e-9 * 1000 * i + (i % 10 == 0 ? 1 : 0)});
  const MeasuredLine fit = FitAboveZero(measurements, kLevel);
  EXPECT_EQ(fit.outliers, 10);
  EXPECT_NEAR(fit.line.slope, 2e-9, 1e-15);
  EXPECT_EQ(fit.half_width.slope, 0);
}

// Most tensors of a network are tiny and of one size: they say nothing of the slope.
TEST(MeasuredLineTest, ManyMeasurementsOfOneSizeDoNotHideTheSlope) {
  Random random({3});
  std::vector<Measurement> measurements;
  for (int i = 0; i < 900; ++i)
    measurements.push_back({.x = 64, .y = 40e-6 * (1 + 0.05 * random.Normal())});
  for (int i = 0; i < 60; ++i) {
    const double x = 1e6 * (1 + i % 3);
    measurements.push_back({.x = x, .y = kTruth.At(x) * (1 + 0.05 * random.Normal())});
  }
  const MeasuredLine fit = FitAboveZero(measurements, kLevel);
  EXPECT_NEAR(fit.line.slope, kTruth.slope, 0.05 * kTruth.slope);
  EXPECT_NEAR(fit.line.offset, kTruth.offset, 0.02 * kTruth.offset);
  EXPECT_LT(fit.outliers, 20);
}

TEST(MeasuredLineTest, NoCoefficientIsBelowZero) {
  const std::vector<Measurement> falling = {
      {.x = 1, .y = 3}, {.x = 2, .y = 2}, {.x = 3, .y = 1.5}, {.x = 4, .y = 1.5}};
  const MeasuredLine level = FitAboveZero(falling, kLevel);
  EXPECT_EQ(level.line.slope, 0);
  EXPECT_DOUBLE_EQ(level.line.offset, 2);
  const std::vector<Measurement> steep = {
      {.x = 1, .y = 0}, {.x = 2, .y = 1}, {.x = 3, .y = 2}, {.x = 4, .y = 3}};
  const MeasuredLine through_origin = FitAboveZero(steep, kLevel);
  EXPECT_EQ(through_origin.line.offset, 0);
  EXPECT_DOUBLE_EQ(through_origin.line.slope, 20.0 / 30);
}

TEST(MeasuredLineTest, ScaleDoesNotMatter) {
  Random random({5});
  const std::vector<Measurement> measurements =
      Measured({.count = 100, .outlier_share = 0.1}, random);
  std::vector<Measurement> scaled;
  for (const Measurement& m : measurements)
    scaled.push_back({.x = m.x * 0x1p20, .y = m.y * 0x1p-30});
  const MeasuredLine fit = FitAboveZero(measurements, kLevel);
  const MeasuredLine other = FitAboveZero(scaled, kLevel);
  EXPECT_DOUBLE_EQ(fit.line.slope * 0x1p-50, other.line.slope);
  EXPECT_DOUBLE_EQ(fit.half_width.offset * 0x1p-30, other.half_width.offset);
}

}  // namespace
}  // namespace stepcast::measured_line_test
