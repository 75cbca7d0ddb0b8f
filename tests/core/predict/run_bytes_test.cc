#include "core/predict/run_bytes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/base/random.h"
#include "core/base/time.h"

namespace stepcast::run_bytes_test {
namespace {

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
}  // namespace stepcast::run_bytes_test
