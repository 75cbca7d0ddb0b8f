#include "core/layouts/run_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/distributions.h"
#include "core/base/error.h"
#include "core/base/random.h"

namespace stepcast::run_fit_test {
namespace {

MeasuredRun RunOf(int64_t devices, int32_t micro_batches, double seconds) {
  return {.name = "",
          .devices = devices,
          .stages = 8,
          .chunks = 12,
          .micro_batches = micro_batches,
          .step_seconds = seconds};
}

// MLPerf Training v3.1, GPT-3 175B on H100, medians of the result logs (Apache-2.0).
std::vector<MeasuredRun> Gpt3() {
  return {RunOf(512, 128, 11.05199), RunOf(768, 128, 11.07508), RunOf(4096, 16, 1.60865),
          RunOf(6144, 16, 1.61527),  RunOf(8192, 16, 1.61915),  RunOf(10240, 8, 0.92552),
          RunOf(10752, 8, 0.92957)};
}

TEST(RunFitTest, TwoSmallJobsOfMlperfTellTheLargeOnes) {
  const absl::StatusOr<RunFit> fit =
      FitMeasuredRuns({.runs = Gpt3(), .basis = {}, .confidence_level = {}});
  ASSERT_TRUE(fit.ok()) << fit.status();
  for (const RunFit::Run& run : fit->runs) {
    EXPECT_LE(std::abs(*run.relative_error), 0.0095);
    if (run.fitted) {
      EXPECT_LE(std::abs(*run.relative_error), 1e-12);
    }
  }
  EXPECT_TRUE(fit->runs[0].fitted);
  EXPECT_TRUE(fit->runs[2].fitted);
  EXPECT_LT(*fit->runs[6].linear_relative_error, -0.2);
}

// Lines whose runs scatter as the prior says: the interval of a run not fitted holds it about as
// often as it says.
TEST(RunFitTest, IntervalsHoldFurtherRuns) {
  int held = 0;
  constexpr int kTrials = 2000;
  for (uint64_t trial = 0; trial < kTrials; ++trial) {
    Random random({trial});
    std::vector<MeasuredRun> runs = Gpt3();
    for (MeasuredRun& run : runs) {
      const double exact = 0.084 * (run.micro_batches + 7.0 / 12) + 0.21;
      run.step_seconds = exact * (1 + 0.005 * NormalQuantile(random.Unit()));
    }
    const absl::StatusOr<RunFit> fit =
        FitMeasuredRuns({.runs = runs, .basis = {}, .confidence_level = 0.9});
    ASSERT_TRUE(fit.ok());
    const Interval& interval = fit->runs[6].step_interval;
    held += interval.lower <= *runs[6].step_seconds && *runs[6].step_seconds <= interval.upper;
  }
  EXPECT_GT(held, kTrials * 0.88);
}

TEST(RunFitTest, RunsWithoutARestHaveNone) {
  std::vector<MeasuredRun> runs;
  for (const int32_t micro_batches : {96, 48, 24, 7})
    runs.push_back({.devices = 8,
                    .stages = 8,
                    .micro_batches = micro_batches,
                    .step_seconds = 0.1 * (micro_batches + 7)});
  for (const RunBasis basis : {RunBasis::kSmallest, RunBasis::kAll}) {
    const absl::StatusOr<RunFit> fit =
        FitMeasuredRuns({.runs = runs, .basis = basis, .confidence_level = {}});
    ASSERT_TRUE(fit.ok()) << fit.status();
    EXPECT_EQ(fit->rest_seconds, 0);
    EXPECT_NEAR(fit->seconds_per_micro_batch, 0.1, 1e-12);
    EXPECT_TRUE(fit->warnings.empty());
  }
}

TEST(RunFitTest, DevicesThatAreNoWholePipelinesAreRefused) {
  for (const auto& [devices, stages] : {std::pair(7, 2), std::pair(4, 8)}) {
    std::vector<MeasuredRun> runs = Gpt3();
    runs[2].devices = devices;
    runs[2].stages = stages;
    const std::vector<Fault> faults =
        DetailsOf(FitMeasuredRuns({.runs = runs, .basis = {}, .confidence_level = {}}).status())
            .faults;
    ASSERT_EQ(faults.size(), 1);
    EXPECT_EQ(faults[0].field, "runs[2].devices");
    EXPECT_EQ(faults[0].description, std::to_string(devices) + " are no whole pipelines of " +
                                         std::to_string(stages) + " stages");
  }
}

// 10 s of 96 + 15 micro-batches on 16 stages: on 32 stages a device computes half of each.
TEST(RunFitTest, OneRunTellsOtherStagesByWhatADeviceComputes) {
  const auto run = [](int32_t stages, int32_t micro_batches, std::optional<double> seconds) {
    return MeasuredRun{.name = "",
                       .devices = 512,
                       .stages = stages,
                       .micro_batches = micro_batches,
                       .step_seconds = seconds};
  };
  const absl::StatusOr<RunFit> fit =
      FitMeasuredRuns({.runs = {run(16, 96, 10), run(32, 192, 11), run(16, 12, std::nullopt)},
                       .basis = {},
                       .confidence_level = {}});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_DOUBLE_EQ(fit->seconds_per_micro_batch, 10.0 / 111);
  EXPECT_EQ(fit->rest_seconds, 0);
  EXPECT_EQ(fit->rest_interval.lower, 0);
  EXPECT_GT(fit->rest_interval.upper, 0);
  EXPECT_NEAR(fit->runs[1].step_seconds, 10.0 / 111 * (192 + 31) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(fit->runs[1].linear_step_seconds, 10);
  EXPECT_FALSE(fit->runs[1].fitted);
  // A rest of 2.5 micro-batches is within the interval of a run with fewer of them.
  const double with_rest = 10.0 / 113.5 * (12 + 15 + 2.5);
  EXPECT_GT(fit->runs[2].step_interval.upper, with_rest);
  EXPECT_LT(fit->runs[2].step_interval.lower, fit->runs[2].step_seconds);
}

TEST(RunFitTest, MoreWorkInLessTimeIsRefusedAtBothRuns) {
  for (const RunBasis basis : {RunBasis::kSmallest, RunBasis::kAll}) {
    const absl::Status status =
        FitMeasuredRuns(
            {.runs = {RunOf(64, 8, 2),
                      RunOf(128, 16, 1),
                      {.devices = 256, .stages = 8, .chunks = 12, .micro_batches = 128}},
             .basis = basis,
             .confidence_level = {}})
            .status();
    const std::vector<Fault> faults = DetailsOf(status).faults;
    ASSERT_EQ(faults.size(), 1) << status;
    EXPECT_EQ(faults[0].field, "runs[1].step_seconds");
    EXPECT_NE(faults[0].description.find("1 s of 16 micro-batches"), std::string::npos);
    EXPECT_NE(faults[0].description.find("contradict runs[0], 2 s of 8"), std::string::npos);
  }
}

// 12 times the seconds of 10 times the micro-batches: a line would have a rest below 0.
TEST(RunFitTest, NoStepIsBelowZero) {
  std::vector<MeasuredRun> runs = {RunOf(8, 8, 1), RunOf(16, 80, 12)};
  runs.push_back({.name = "", .devices = 8, .stages = 8, .chunks = 12, .micro_batches = 1});
  const absl::StatusOr<RunFit> fit =
      FitMeasuredRuns({.runs = runs, .basis = {}, .confidence_level = {}});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->rest_seconds, 0);
  EXPECT_EQ(fit->rest_interval.lower, 0);
  ASSERT_EQ(fit->warnings.size(), 1);
  EXPECT_EQ(fit->warnings[0].reason, Warning::Reason::kRestBelowZero);
  EXPECT_GT(fit->runs[2].step_seconds, 0);
  // The runs that were fitted are within their own intervals.
  for (int i = 0; i < 2; ++i) {
    EXPECT_LE(fit->runs[i].step_interval.lower, *runs[i].step_seconds);
    EXPECT_GE(fit->runs[i].step_interval.upper, *runs[i].step_seconds);
  }
  EXPECT_TRUE(
      FitMeasuredRuns({.runs = Gpt3(), .basis = {}, .confidence_level = {}})->warnings.empty());
}

TEST(RunFitTest, RunsThatWereNotMeasuredMakeNoLine) {
  std::vector<MeasuredRun> runs = Gpt3();
  for (MeasuredRun& run : runs) run.step_seconds.reset();
  EXPECT_EQ(DetailsOf(FitMeasuredRuns({.runs = runs, .basis = {}, .confidence_level = {}}).status())
                .faults[0]
                .field,
            "runs");
}

}  // namespace
}  // namespace stepcast::run_fit_test
