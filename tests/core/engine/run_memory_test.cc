// The memory that a run takes: counted by the allocator, so this is a program of its own.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <utility>

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/job_graph.h"
#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "tests/core/engine/job_builder.h"
#include "tests/support/live_bytes.h"

namespace stepcast::run_memory_test {
namespace {

using testing::live_bytes;
using testing::most_live_bytes;

// The most that a run holds at once, beyond what there was before.
int64_t MostHeld(EnginePath path, int32_t servers, NetworkSpec::Sharing sharing, int32_t steps) {
  testing::JobBuilder job;
  testing::JobBuilder::Waits downloads;
  for (int i = 0; i < 12; ++i) downloads.push_back(job.Download(5'000 + 100 * i, {}, i % servers));
  const int32_t loss = job.Compute({70'000, 90'000, 130'000}, downloads);
  for (int i = 0; i < 12; ++i)
    job.Update(300, {job.Upload(5'000 + 100 * i, {job.Compute({500, 900}, {loss})}, i % servers)},
               i % servers);
  const Profile profile = job.Build();
  const Scenario scenario = testing::Resolved(profile, {.workers = 8});
  JobGraph job_graph = testing::JobFor(profile, scenario);
  for (NetworkSpec& network : job_graph.networks) {
    network.sharing = sharing;
    network.turn = Nanoseconds(10'000);
  }
  RunOptions options = testing::OptionsFor(scenario, steps);
  options.keep_step_ends = false;
  options.fastest_path = path;
  const int64_t before = live_bytes;
  most_live_bytes = before;
  const absl::StatusOr<RunResult> result = Simulate(job_graph, options, NeverStop);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->path, path);
  return most_live_bytes - before;
}

// Three servers, whose links together are more than a worker's own.
constexpr std::pair<int32_t, NetworkSpec::Sharing> kNetworks[] = {
    {1, NetworkSpec::Sharing::kEqual},
    {3, NetworkSpec::Sharing::kEqual},
    {1, NetworkSpec::Sharing::kTurns},
    {1, NetworkSpec::Sharing::kFirstCome}};

TEST(RunMemoryTest, DoesNotGrowWithTheNumberOfSteps) {
  for (const EnginePath path :
       {EnginePath::kPlain, EnginePath::kWorkerLoop, EnginePath::kMemoised}) {
    for (const auto& [servers, sharing] : kNetworks) {
      const int64_t few = MostHeld(path, servers, sharing, 200);
      const int64_t many = MostHeld(path, servers, sharing, 2'000);
      std::cout << NameOf(path) << ", " << servers << " servers, sharing "
                << static_cast<int>(sharing) << ": 200 steps " << few << " bytes, 2000 steps "
                << many << " bytes\n";
      // The only things left to grow: buckets of the histogram of step times, and the log of a link
      // up to its bound.
      EXPECT_LE(many, few + few / 4) << NameOf(path) << " " << servers;
    }
  }
}

}  // namespace
}  // namespace stepcast::run_memory_test
