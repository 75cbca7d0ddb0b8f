// One prediction on a job pool of two threads and of one: threads.two_over_one.
#include <chrono>
#include <cstdint>
#include <future>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/base/stop_check.h"
#include "core/predict/throughput.h"
#include "server/jobs/job_pool.h"
#include "server/jobs/pool_executor.h"
#include "tests/bench/job.h"
#include "tests/bench/rows/rows.h"

namespace stepcast::bench {

namespace {

constexpr int32_t kMaxWorkers = 16;
constexpr int32_t kReplications = 5;
constexpr int32_t kSteps = 60;  // a second or so on one thread

// Inception-v3's and ResNet-50's.
class Sweep {
 public:
  Sweep() {
    for (const char* model : {"inception_v3", "resnet50"}) profiles_.push_back(ZooProfile(model));
    draft_.options = {.steps_per_worker = kSteps, .replications = kReplications};
    for (int32_t workers = 1; workers <= kMaxWorkers; ++workers)
      draft_.worker_counts.push_back(workers);
  }

  std::vector<ThroughputAnswer> Run(const Executor& executor) const {
    std::vector<ThroughputAnswer> answers;
    for (const Profile& profile : profiles_) {
      absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, draft_);
      if (!query.ok()) throw std::runtime_error(query.status().ToString());
      absl::StatusOr<ThroughputAnswer> answer =
          PredictThroughput(profile, *query, NeverStop, executor);
      if (!answer.ok()) throw std::runtime_error(answer.status().ToString());
      answers.push_back(*std::move(answer));
    }
    return answers;
  }

 private:
  std::vector<Profile> profiles_;
  ThroughputDraft draft_;
};

// As the server runs it: a job of the pool, which splits.
class SweepOnThreads {
 public:
  SweepOnThreads(const Sweep& sweep, int threads)
      : sweep_(sweep), pool_({.threads = threads, .helpers = threads - 1}) {}

  // The cost is the time that passes.
  Cost Run() {
    std::promise<void> done;
    Cost cost;
    const absl::Status taken = pool_.Submit([&] {
      const auto start = std::chrono::steady_clock::now();
      answers_ = sweep_.Run(server::PoolExecutor(pool_));
      cost.cpu_ns =
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
              .count();
      done.set_value();
    });
    if (!taken.ok()) throw std::runtime_error(taken.ToString());
    done.get_future().wait();
    for (const ThroughputAnswer& answer : answers_)
      cost.operations += answer.simulation.simulated_operations;
    return cost;
  }

  // Of the last run.
  std::vector<double> Bounds() const {
    std::vector<double> bounds;
    for (const ThroughputAnswer& answer : answers_) {
      for (const Prediction& prediction : answer.predictions) {
        bounds.push_back(prediction.confidence_interval.lower);
        bounds.push_back(prediction.confidence_interval.upper);
      }
    }
    return bounds;
  }

 private:
  const Sweep& sweep_;
  server::JobPool pool_;
  std::vector<ThroughputAnswer> answers_;
};

Outcome Run(int rounds) {
  const Sweep sweep;
  SweepOnThreads two(sweep, 2);
  SweepOnThreads one(sweep, 1);
  two.Run();
  one.Run();
  if (two.Bounds() != one.Bounds())
    throw std::runtime_error("two threads do not answer as one does");
  return {.rounds = TakeTurns(
              rounds, [&] { return two.Run(); }, [&] { return one.Run(); }, TheirsOverOurs),
          .note =
              "time that passes, not of processors: whatever else runs on a machine of two "
              "processors lowers the ratio"};
}

}  // namespace

void AddThreadsRow(Registry& registry) {
  registry.Add({.name = "threads.two_over_one",
                .sides = "one thread / two, Inception-v3 and ResNet-50, W=1..16, 5 replications",
                .goal = AtLeast(1.8, 1.95),
                .run = Run});
}

}  // namespace stepcast::bench
