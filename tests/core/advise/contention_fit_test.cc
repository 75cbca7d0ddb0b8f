#include "core/advise/contention_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/advise/overlap_model.h"
#include "core/base/error.h"
#include "core/base/random.h"

namespace stepcast::contention_fit_test {
namespace {

using ::testing::ElementsAre;

Contention Truth() {
  return {.alpha1 = 0.98,
          .alpha2 = 1.3e-4,
          .overlapped = {.gamma1 = 5.2e9, .gamma2 = 4e9, .gamma3 = 0.025},
          .alone = {.gamma1 = 6e9, .gamma2 = 3.5e9, .gamma3 = 0.03}};
}

// Eight workers, 10 us: three sizes with each of nine numbers of threads, beside computation and
// alone; a relative error of `noise`, and every `outlier`-th twice as long.
ContentionMeasurements Measured(const Contention& truth, double noise, Random& random,
                                size_t outlier = 0) {
  ContentionMeasurements measured{.workers = 8, .latency_seconds = 1e-5};
  size_t count = 0;
  const auto with_noise = [&](double seconds) {
    const bool is_outlier = outlier > 0 && ++count % outlier == 0;
    return seconds * (1 + noise * random.Normal()) * (is_outlier ? 2 : 1);
  };
  const OverlapSetting setting{.workers = 8, .latency_seconds = 1e-5, .contention = truth};
  for (const int32_t threads : {64, 128, 256, 384, 512, 1024, 2048, 3072, 4096}) {
    const CollectiveRates rates = RatesOf(setting, threads);
    for (const int64_t bytes : {4'000'000, 30'000'000, 110'000'000}) {
      const auto size = static_cast<double>(bytes);
      measured.transfers.push_back(
          {threads, bytes, with_noise(rates.OverlappedSeconds(size)), true});
      measured.transfers.push_back({threads, bytes, with_noise(rates.AloneSeconds(size)), false});
    }
    for (int i = 0; i < 3; ++i)
      measured.slowdowns.push_back({threads, with_noise(1 / rates.computation_speed)});
  }
  return measured;
}

std::vector<FittedConstant> ConstantsOf(const ContentionFit& fit) {
  return {fit.alpha1,
          fit.alpha2,
          fit.overlapped.gamma1,
          fit.overlapped.gamma2,
          fit.overlapped.gamma3,
          fit.alone.gamma1,
          fit.alone.gamma2,
          fit.alone.gamma3};
}

std::vector<double> ValuesOf(const Contention& contention) {
  const auto& [alpha1, alpha2, overlapped, alone, gamma4] = contention;
  return {alpha1,       alpha2,       overlapped.gamma1, overlapped.gamma2, overlapped.gamma3,
          alone.gamma1, alone.gamma2, alone.gamma3};
}

TEST(ContentionFitTest, ExactMeasurementsGiveTheConstants) {
  Random random({1});
  const auto fit = FitContention(Measured(Truth(), 0, random), NeverStop);
  ASSERT_TRUE(fit.ok()) << fit.status();
  const std::vector<double> truth = ValuesOf(Truth());
  const std::vector<double> values = ValuesOf(fit->contention);
  for (size_t i = 0; i < truth.size(); ++i) EXPECT_NEAR(values[i], truth[i], 1e-4 * truth[i]) << i;
  EXPECT_TRUE(fit->alone.is_told);
  EXPECT_TRUE(fit->overlapped.is_told);
  EXPECT_EQ(fit->overlapped.outliers, 0);
  EXPECT_LT(fit->alone.relative_residual, 1e-6);
}

TEST(ContentionFitTest, IntervalsHoldTheTruthAboutAsOftenAsTheySay) {
  constexpr int kSeeds = 100;
  const std::vector<double> truth = ValuesOf(Truth());
  std::vector<int> held(truth.size(), 0);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random({seed});
    const auto fit = FitContention(Measured(Truth(), 0.02, random), NeverStop);
    ASSERT_TRUE(fit.ok()) << fit.status();
    const std::vector<FittedConstant> constants = ConstantsOf(*fit);
    for (size_t i = 0; i < truth.size(); ++i)
      held[i] += constants[i].lower <= truth[i] && truth[i] <= constants[i].upper ? 1 : 0;
  }
  for (size_t i = 0; i < truth.size(); ++i) {
    EXPECT_GE(held[i], 88) << "constant " << i << ": of 100, where 95 are meant";
    RecordProperty("held" + std::to_string(i), held[i]);
  }
}

TEST(ContentionFitTest, OutliersMoveNoRateByMuch) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random({seed});
    const auto fit = FitContention(Measured(Truth(), 0.01, random, 7), NeverStop);
    ASSERT_TRUE(fit.ok()) << fit.status();
    EXPECT_GE(fit->overlapped.outliers + fit->alone.outliers + fit->slowdown_outliers, 10)
        << "seed " << seed;
    for (const int32_t threads : {64, 256, 1024, 4096}) {
      const CollectiveRates fitted =
          RatesOf({.workers = 8, .contention = fit->contention}, threads);
      const CollectiveRates truth = RatesOf({.workers = 8, .contention = Truth()}, threads);
      const auto expect_near = [&](double value, double wanted) {
        EXPECT_NEAR(value, wanted, 0.03 * wanted) << "seed " << seed << ", threads " << threads;
      };
      expect_near(fitted.computation_speed, truth.computation_speed);
      expect_near(fitted.overlapped_seconds_per_byte, truth.overlapped_seconds_per_byte);
      expect_near(fitted.alone_seconds_per_byte, truth.alone_seconds_per_byte);
    }
  }
}

TEST(ContentionFitTest, AFlatRateIsNotToldButHolds) {
  Contention flat = Truth();
  flat.alone = {.gamma1 = 6e9};
  flat.alpha2 = 0;
  Random random({3});
  const auto fit = FitContention(Measured(flat, 0, random), NeverStop);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_FALSE(fit->alone.is_told);
  EXPECT_NEAR(BytesPerSecond(fit->contention.alone, 0.6, 500), 6e9, 6e3);
  EXPECT_NEAR(fit->alpha2.value, 0, 1e-9);
}

TEST(ContentionFitTest, BadInputIsRefusedByName) {
  Random random({1});
  const ContentionMeasurements good = Measured(Truth(), 0.01, random);
  const auto fields_of = [](const ContentionMeasurements& measurements) {
    const auto fit = FitContention(measurements, NeverStop);
    EXPECT_EQ(fit.status().code(), absl::StatusCode::kInvalidArgument);
    std::vector<std::string> fields;
    for (const Fault& fault : DetailsOf(fit.status()).faults) fields.push_back(fault.field);
    return fields;
  };
  ContentionMeasurements bad = good;
  bad.workers = 1;
  bad.latency_seconds = -1;
  bad.gamma4 = 0;
  bad.confidence_level = 1;
  EXPECT_THAT(fields_of(bad),
              ElementsAre("workers", "latency_seconds", "gamma4", "confidence_level"));
  bad = good;
  bad.transfers[2] = {.threads = 0, .bytes = 0, .seconds = 1e-5};
  bad.slowdowns[1] = {.threads = -1, .slowdown = std::nan("")};
  EXPECT_THAT(fields_of(bad),
              ElementsAre("transfers[2].threads", "transfers[2].size_bytes", "transfers[2].seconds",
                          "slowdowns[1].threads", "slowdowns[1].slowdown"));
  EXPECT_THAT(fields_of({}), ElementsAre("transfers", "transfers", "slowdowns"));
  bad = good;
  bad.transfers.assign(10'001, good.transfers[0]);
  EXPECT_THAT(fields_of(bad), ElementsAre("transfers"));
}

}  // namespace
}  // namespace stepcast::contention_fit_test
