// Runs the same jobs on each engine, on one thread and on eight at once, and prints a line with
// their digest for each: to be compared with one another and with what programs say that were
// compiled from the same sources in another way.
#include <array>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/stop_check.h"
#include "core/engine/simulation.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/phase_case.h"
#include "tests/core/engine/run_digest.h"

namespace stepcast::testing {
namespace {

constexpr size_t kJobs = 1000;
constexpr EnginePath kPaths[] = {EnginePath::kPlain, EnginePath::kWorkerLoop,
                                 EnginePath::kMemoised};

struct JobRun {
  uint64_t digest = 0;
  EnginePath path = EnginePath::kPlain;
};
// By the fastest path that was allowed.
using JobRuns = std::array<JobRun, std::size(kPaths)>;

JobRun RunOn(EnginePath fastest, const JobGraph& job, RunOptions options) {
  options.fastest_path = fastest;
  Digest digest;
  KeptTrace trace;
  options.trace = &trace;
  const RunResult traced =
      Simulate(job, options, NeverStop).value();  // ends the program where there is none
  digest.Add(DigestOf(traced, std::move(trace.records)));
  // Without a trace an engine may do things in another order.
  options.trace = nullptr;
  const RunResult untraced = Simulate(job, options, NeverStop).value();
  digest.Add(DigestOf(untraced, {}));
  return {.digest = digest.value(), .path = untraced.path};
}

JobRuns RunJob(uint64_t seed) {
  const PhaseCase job = MakePhaseCase(seed);
  JobRuns runs;
  for (size_t path = 0; path < runs.size(); ++path)
    runs[path] = RunOn(kPaths[path], job.job, job.options);
  return runs;
}

// Neighbouring jobs on different threads.
std::vector<JobRuns> RunJobs(size_t threads) {
  std::vector<JobRuns> jobs(kJobs);
  std::vector<std::jthread> running;
  for (size_t first = 0; first < threads; ++first) {
    running.emplace_back([&jobs, first, threads] {
      for (size_t job = first; job < kJobs; job += threads) jobs[job] = RunJob(1 + job);
    });
  }
  running.clear();  // joins
  return jobs;
}

void Print(const std::vector<JobRuns>& jobs, size_t path, size_t threads) {
  Digest digest;
  size_t on_path = 0;
  for (const JobRuns& runs : jobs) {
    digest.Add(runs[path].digest);
    on_path += runs[path].path == kPaths[path] ? 1 : 0;
  }
  std::cout << NameOf(kPaths[path]) << " threads " << threads << " jobs " << on_path << " digest "
            << std::hex << std::setw(16) << std::setfill('0') << digest.value() << std::dec << "\n";
}

}  // namespace
}  // namespace stepcast::testing

int main() {
  for (const size_t threads : {1, 8}) {
    const auto jobs = stepcast::testing::RunJobs(threads);
    for (size_t path = 0; path < std::size(stepcast::testing::kPaths); ++path)
      stepcast::testing::Print(jobs, path, threads);
  }
  return 0;
}
