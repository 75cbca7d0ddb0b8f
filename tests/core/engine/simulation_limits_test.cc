// The limits at which a run stops short: when it is told to, when it is too large, and at the end
// of simulated time.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

#include "core/base/error.h"
#include "core/base/stop_check.h"
#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "tests/core/engine/job_builder.h"

namespace stepcast::simulation_limits_test {
namespace {

using testing::JobBuilder;
using testing::JobFor;
using testing::OptionsFor;
using testing::Resolved;

constexpr int64_t kDayNs = 86'400'000'000'000;

// A step of 3800 ns alone: 1000 down, 2000 of computation, 500 up, 300 on the server.
Profile Chain() {
  JobBuilder job;
  const int32_t download = job.Download(1000);
  const int32_t computation = job.Compute(2000, {download});
  const int32_t upload = job.Upload(500, {computation});
  job.Update(300, {upload});
  return job.Build();
}

TEST(SimulationLimitsTest, AStopIsObeyedWithinOneInterval) {
  const Profile profile = Chain();
  const Scenario scenario = Resolved(profile, {.workers = 4});
  RunOptions options = OptionsFor(scenario, 1'000'000);
  options.keep_step_ends = false;
  testing::KeptTrace trace;
  options.trace = &trace;
  int asked = 0;
  const auto stop_at_third = [&asked]() -> absl::Status {
    return ++asked < 3 ? absl::OkStatus() : absl::CancelledError("no longer wanted");
  };
  const absl::StatusOr<RunResult> result =
      Simulate(JobFor(profile, scenario), options, stop_at_third);
  EXPECT_EQ(result.status(), absl::CancelledError("no longer wanted"));
  EXPECT_EQ(asked, 3);
  EXPECT_LE(trace.records.size(), size_t{3} * kStopCheckInterval);
}

TEST(SimulationLimitsTest, WorkersInStepDoNotStretchTheTimeBetweenTwoChecks) {
  constexpr size_t kWorkers = 512;
  const Profile profile = Chain();
  const Scenario scenario = Resolved(profile, {.workers = kWorkers});
  RunOptions options = OptionsFor(scenario, 100);
  testing::KeptTrace trace;
  options.trace = &trace;
  std::vector<size_t> seen;
  const auto note = [&]() -> absl::Status {
    seen.push_back(trace.records.size());
    return absl::OkStatus();
  };
  ASSERT_TRUE(Simulate(JobFor(profile, scenario), options, note).ok());
  ASSERT_GE(seen.size(), kWorkers * 4 * 100 / kStopCheckInterval);
  for (size_t i = 1; i < seen.size(); ++i)
    EXPECT_LE(seen[i] - seen[i - 1], size_t{kStopCheckInterval});
}

TEST(SimulationLimitsTest, SharesThatAreCostlyToComputeAreWorkTooSoTheChecksComeOftener) {
  JobBuilder job;
  const int32_t first = job.Download(1000, {}, 0);
  const int32_t second = job.Download(1000, {}, 1);
  job.Upload(500, {job.Compute(2000, {first, second})});
  const Profile profile = job.Build();
  const Scenario scenario = Resolved(profile, {.workers = 256});
  int asked = 0;
  const auto count = [&asked]() {
    ++asked;
    return absl::OkStatus();
  };
  ASSERT_TRUE(Simulate(JobFor(profile, scenario), OptionsFor(scenario, 20), count).ok());
  const int by_chunks_alone = 256 * 4 * 20 / kStopCheckInterval;
  EXPECT_GE(asked, by_chunks_alone + by_chunks_alone / 4);
}

TEST(SimulationLimitsTest, ARunThatNobodyStopsIsAskedOftenEnough) {
  const Profile profile = Chain();
  const Scenario scenario = Resolved(profile);
  int asked = 0;
  const auto count = [&asked]() {
    ++asked;
    return absl::OkStatus();
  };
  const absl::StatusOr<RunResult> result =
      Simulate(JobFor(profile, scenario), OptionsFor(scenario, 20'000), count);
  ASSERT_TRUE(result.ok());
  EXPECT_GE(asked, result->simulated_operations / (int64_t{2} * kStopCheckInterval));
}

TEST(SimulationLimitsTest, TooManyWorkersTimesOperationsAreRefused) {
  JobBuilder job;
  for (int i = 0; i < 50'001; ++i) job.Compute(1);
  const Profile profile = job.Build();
  const Scenario scenario = Resolved(profile, {.workers = 4000});
  const absl::StatusOr<RunResult> result =
      Simulate(JobFor(profile, scenario), OptionsFor(scenario, 2), NeverStop);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(result.status()).reason, "SIMULATION_TOO_LARGE");
}

void ExpectTimeExhausted(const Profile& profile, const ScenarioDraft& draft, int32_t steps) {
  const Scenario scenario = Resolved(profile, draft);
  const absl::StatusOr<RunResult> result =
      Simulate(JobFor(profile, scenario), OptionsFor(scenario, steps), NeverStop);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange) << result.status();
  EXPECT_EQ(DetailsOf(result.status()).reason, "SIMULATED_TIME_EXHAUSTED");
}

TEST(SimulationLimitsTest, OneStepPastTheEndOfTimeIsAnError) {
  JobBuilder job;
  job.Download(int64_t{1} << 44);
  ExpectTimeExhausted(job.Build(), {.bandwidth_bytes_per_second = 1e6}, 2);
}

TEST(SimulationLimitsTest, TransfersThatLastPastTheEndOfTimeAreAnError) {
  JobBuilder job;
  job.Download(int64_t{1} << 40);
  // A step of 13 days.
  ExpectTimeExhausted(job.Build(), {.bandwidth_bytes_per_second = 1e6}, 100);
}

TEST(SimulationLimitsTest, ComputationsThatLastPastTheEndOfTimeAreAnError) {
  JobBuilder job;
  job.Compute(kDayNs);
  ExpectTimeExhausted(job.Build(), {}, 100);
}

TEST(SimulationLimitsTest, SlowWorkersThatLastPastTheEndOfTimeAreAnError) {
  JobBuilder job;
  job.Compute(kDayNs);
  ExpectTimeExhausted(job.Build(), {.worker_groups = {{.count = 1, .compute_speed_factor = 1e-6}}},
                      3);
}

TEST(SimulationLimitsTest, SlowLinksThatLastPastTheEndOfTimeAreAnError) {
  JobBuilder job;
  job.Download(int64_t{1} << 34);
  ExpectTimeExhausted(job.Build(),
                      {.worker_groups = {{.count = 1, .bandwidth_bytes_per_second = 1}}}, 3);
}

}  // namespace
}  // namespace stepcast::simulation_limits_test
