#include "core/predict/run_summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"

namespace stepcast::run_summary_test {
namespace {

// The definition, each time from scratch.
size_t NaiveTruncation(const std::vector<double>& values) {
  if (values.size() < 50) return 0;
  std::vector<double> means;
  for (size_t i = 0; i + 5 <= values.size(); i += 5) {
    means.push_back((values[i] + values[i + 1] + values[i + 2] + values[i + 3] + values[i + 4]) /
                    5);
  }
  double least = std::numeric_limits<double>::infinity();
  size_t best = 0;
  for (size_t d = 0; 2 * d <= means.size(); ++d) {
    const auto left = static_cast<double>(means.size() - d);
    double mean = 0;
    for (size_t i = d; i < means.size(); ++i) mean += means[i] / left;
    double error = 0;
    for (size_t i = d; i < means.size(); ++i)
      error += (means[i] - mean) * (means[i] - mean) / (left * left);
    if (error < least) {
      least = error;
      best = d;
    }
  }
  return 5 * best;
}

TEST(RunEstimateTest, TruncationIsTheDefinitions) {
  int truncated = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random({seed, 61});
    std::vector<double> values(20 + random.Below(400));
    const double transient = static_cast<double>(random.Below(5));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = 1 + random.Normal() / 5 + transient * std::exp(-static_cast<double>(i) / 20);
    ASSERT_EQ(TruncationOf(values), NaiveTruncation(values)) << "seed " << seed;
    truncated += TruncationOf(values) > 0 ? 1 : 0;
  }
  EXPECT_GT(truncated, 100);
}

TEST(RunEstimateTest, ASlowStartIsDroppedAndNothingOfASteadySeries) {
  std::vector<double> values(1000, 1.0);
  EXPECT_EQ(TruncationOf(values), 0U);
  for (size_t i = 0; i < 200; ++i) values[i] = 3;
  EXPECT_EQ(TruncationOf(values), 200U);
}

TEST(RunEstimateTest, AtMostHalfIsDropped) {
  std::vector<double> values(1000, 3.0);
  for (size_t i = 900; i < 1000; ++i) values[i] = 1;
  EXPECT_LE(TruncationOf(values), 500U);
}

// Completions every second, but `slow` seconds for the first ones.
RunResult RunOf(int completions, int slow_ones, double slow, double spread = 0, uint64_t seed = 1) {
  Random random({seed, 62});
  RunResult result;
  double seconds = 0;
  for (int i = 0; i < completions; ++i) {
    seconds += (i < slow_ones ? slow : 1) + spread * random.Normal();
    result.completions.Add(Instant{} + FromSeconds(seconds / 1000));
  }
  result.measured = true;
  result.steps_per_second = completions / seconds * 1000;
  return result;
}

TEST(RunEstimateTest, AutomaticWarmupLeavesTheSteadyRate) {
  const RunResult result = RunOf(1000, 100, 5);
  EXPECT_NEAR(EstimateOf(result, true).steps_per_second, 1000, 1e-6);
  EXPECT_NEAR(EstimateOf(result, true).warmup_seconds, 0.55, 0.06);
  EXPECT_EQ(EstimateOf(result, false).steps_per_second, result.steps_per_second);
  EXPECT_EQ(EstimateOf(result, false).warmup_seconds, 0);
}

TEST(RunEstimateTest, WhatWasDroppedAlreadyIsNotDroppedAgain) {
  RunResult result = RunOf(1000, 100, 5);
  result.counted_from = result.completions.marks()[300];
  EXPECT_EQ(EstimateOf(result, true).steps_per_second, result.steps_per_second);
}

TEST(RunEstimateTest, TheErrorOfIndependentTimesIsTheirs) {
  double sum = 0;
  constexpr int kRuns = 200;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    const double error = EstimateOf(RunOf(1600, 0, 1, 0.1, seed), false).standard_error;
    sum += error * error;
  }
  // The mean of 1600 times of deviation 0.1.
  EXPECT_NEAR(std::sqrt(sum / kRuns), 1000 * 0.1 / std::sqrt(1600.0), 0.2);
}

TEST(RunEstimateTest, AShortRunSaysNothingOfItsError) {
  EXPECT_EQ(EstimateOf(RunOf(20, 0, 1, 0.1), true).standard_error, 0);
}

// Four workers in step, whose completions come four at an instant.
TEST(RunEstimateTest, CompletionsAtOneInstantAreNotCutApart) {
  RunResult result;
  for (int i = 0; i < 400; ++i) {
    for (int worker = 0; worker < 4; ++worker)
      result.completions.Add(Instant{} + Milliseconds(i < 50 ? 3 * i : 150 + (i - 50)));
  }
  result.measured = true;
  EXPECT_NEAR(EstimateOf(result, true).steps_per_second, 4000, 1e-6);
}

CompletionSeries SeriesWith(const std::vector<int64_t>& seconds, int64_t stride = 1) {
  CompletionSeries series(stride);
  for (const int64_t second : seconds) series.Add(Instant{} + FromSeconds(second), stride);
  return series;
}

TEST(SeriesTest, WindowsAddUpToAllStepsAndTellASlowBegin) {
  // One step in 10 s, then four more in another 10.
  const CompletionSeries series = SeriesWith({10, 13, 15, 18, 20});
  const std::vector<ThroughputPoint> told = SeriesOf(series, /*examples=*/8, /*points=*/2);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_DOUBLE_EQ(told[0].end_seconds, 10);
  EXPECT_DOUBLE_EQ(told[0].examples_per_second, 0.8);
  EXPECT_DOUBLE_EQ(told[1].end_seconds, 20);
  EXPECT_DOUBLE_EQ(told[1].examples_per_second, 3.2);
}

TEST(SeriesTest, ThroughputIsEvenBetweenTwoMarks) {
  const std::vector<ThroughputPoint> told = SeriesOf(SeriesWith({4, 12}, 3), 1, 2);
  ASSERT_EQ(told.size(), 2u);
  // Three steps by 4 s, a quarter of the next three by 6 s.
  EXPECT_DOUBLE_EQ(told[0].examples_per_second, 3.75 / 6);
  EXPECT_DOUBLE_EQ(told[1].examples_per_second, 2.25 / 6);
}

TEST(SeriesTest, ThereAreNoMoreWindowsThanMarksAndNoneWithoutAny) {
  EXPECT_EQ(SeriesOf(SeriesWith({1, 2, 3}), 1, 200).size(), 3u);
  EXPECT_TRUE(SeriesOf(SeriesWith({}), 1, 200).empty());
  EXPECT_TRUE(SeriesOf(SeriesWith({1, 2, 3}), 1, 0).empty());
}

TEST(SeriesTest, AThinnedSeriesHasTheSameStepsAtItsMarks) {
  for (const int64_t count : {1, 199, 200, 201, 344, 399, 400, 1999}) {
    std::vector<int64_t> seconds;
    for (int64_t i = 1; i <= count; ++i) seconds.push_back(10 * i + i % 7);
    const CompletionSeries thinned = Thinned(SeriesWith(seconds, 4));
    ASSERT_LT(thinned.marks().size(), 400u);
    EXPECT_GE(thinned.marks().size(), std::min<size_t>(200, seconds.size()));
    // Windows as many as are asked for, up to the steps that ended.
    EXPECT_EQ(SeriesOf(thinned, 1, 200).size(), std::min<size_t>(200, seconds.size()));
    const int64_t together = thinned.stride() / 4;
    for (size_t i = 0; i < thinned.marks().size(); ++i) {
      EXPECT_EQ(ToSeconds(thinned.marks()[i] - Instant{}),
                static_cast<double>(seconds[(i + 1) * static_cast<size_t>(together) - 1]));
    }
  }
}

RunSummary RandomRun(Random& random) {
  RunSummary run;
  run.estimate = {.steps_per_second = random.Unit(), .standard_error = 1e-300};
  run.drift = -random.Unit();
  for (uint64_t i = 0; i < random.Below(200); ++i)
    run.step_times.Add(Span{static_cast<int64_t>(random.Below(uint64_t{1} << random.Below(62)))});
  for (uint64_t i = 0; i < random.Below(5); ++i) {
    run.utilization.push_back(random.Unit());
    run.joint_times.push_back({.ready = Span{7}, .begin = Span{9}, .count = 3});
  }
  run.completions = CompletionSeries(static_cast<int64_t>(1 + random.Below(9)));
  for (int64_t i = 0; i < static_cast<int64_t>(random.Below(2000)); ++i)
    run.completions.Add(Instant{i * i}, run.completions.stride());
  run.simulated_operations = static_cast<int64_t>(random.Below(1'000'000));
  run.path = EnginePath::kMemoised;
  return run;
}

TEST(RunBytesTest, WhatIsReadIsWhatWasWritten) {
  Random random({5});
  for (int i = 0; i < 200; ++i) {
    const RunSummary run = RandomRun(random);
    const std::shared_ptr<const RunSummary> read = RunOfBytes(BytesOf(run));
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(BytesOf(*read), BytesOf(run));
    EXPECT_EQ(read->estimate.steps_per_second, run.estimate.steps_per_second);
    EXPECT_EQ(read->estimate.standard_error, run.estimate.standard_error);
    EXPECT_EQ(read->step_times.count(), run.step_times.count());
    EXPECT_EQ(read->step_times.MeanSeconds(), run.step_times.MeanSeconds());
    EXPECT_EQ(read->step_times.PercentileSeconds(0.9), run.step_times.PercentileSeconds(0.9));
    EXPECT_EQ(read->utilization, run.utilization);
    EXPECT_EQ(read->joint_times, run.joint_times);
    EXPECT_EQ(read->completions, run.completions);
    EXPECT_EQ(read->simulated_operations, run.simulated_operations);
    EXPECT_EQ(read->path, run.path);
  }
}

TEST(RunBytesTest, BytesThatAreCutOffLongerOrWrongAreNoRun) {
  Random random({6});
  const std::string bytes = BytesOf(RandomRun(random));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(RunOfBytes(std::string_view(bytes).substr(0, size)), nullptr) << size;
  EXPECT_EQ(RunOfBytes(bytes + "x"), nullptr);
  // Any change gives another run or none, and never reads beyond its end.
  for (int i = 0; i < 2000; ++i) {
    std::string changed = bytes;
    changed[random.Below(changed.size())] = static_cast<char>(random.Below(256));
    const auto run = RunOfBytes(changed);
    EXPECT_TRUE(run == nullptr || run->bytes() > 0);
  }
}

}  // namespace
}  // namespace stepcast::run_summary_test
