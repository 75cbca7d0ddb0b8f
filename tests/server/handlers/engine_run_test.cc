#include "server/handlers/engine_run.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace stepcast::server::engine_run_test {
namespace {

class Recorder final : public SimulationObserver {
 public:
  void OnSimulation(const SimulatedWork& work, absl::StatusCode code, double seconds,
                    int64_t simulated_operations) override {
    last = {std::string(work.method), code, seconds, simulated_operations};
    ++calls;
  }
  void OnUnsteady(const SimulatedWork& /*work*/, int64_t predictions) override {
    unsteady += predictions;
  }
  struct Simulation {
    std::string method;
    absl::StatusCode code = absl::StatusCode::kUnknown;
    double seconds = 0;
    int64_t operations = 0;
  } last;
  int calls = 0;
  int64_t unsteady = 0;
};

absl::StatusOr<ThroughputAnswer> Answer(int64_t operations) {
  return ThroughputAnswer{.simulation = {.simulated_operations = operations}};
}

TEST(EngineRunTest, PredictionsThatHaveNotConvergedAreReported) {
  const FakeClock clock;
  Recorder recorder;
  EngineRun run({.clock = clock, .observer = &recorder, .work = {"PredictThroughput"}}, {});
  ASSERT_TRUE(run.Do<PredictThroughputAnswer>(NeverStop,
                                              [&](StopCheck) -> absl::StatusOr<ThroughputAnswer> {
                                                return ThroughputAnswer{
                                                    .predictions = {{.steady_state = true},
                                                                    {.steady_state = false},
                                                                    {.steady_state = false}}};
                                              })
                  .ok());
  EXPECT_EQ(recorder.unsteady, 2);
}

TEST(EngineRunTest, SecondsAndOperationsAreReportedAndReturned) {
  FakeClock clock;
  Recorder recorder;
  EngineRun run({.clock = clock, .observer = &recorder, .work = {"PredictThroughput"}},
                {.profile_digest = "d"});
  const auto answer = run.Do<PredictThroughputAnswer>(NeverStop, [&](StopCheck) {
    clock.Advance(2'500'000'000);
    return Answer(7);
  });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->context.engine_seconds, 2.5);
  EXPECT_EQ(answer->context.profile_digest, "d");
  EXPECT_EQ(recorder.last.method, "PredictThroughput");
  EXPECT_EQ(recorder.last.code, absl::StatusCode::kOk);
  EXPECT_EQ(recorder.last.seconds, 2.5);
  EXPECT_EQ(recorder.last.operations, 7);
}

TEST(EngineRunTest, AFailureIsReportedOnce) {
  const FakeClock clock;
  Recorder recorder;
  EngineRun run({.clock = clock, .observer = &recorder, .work = {"OptimizeOrder"}}, {});
  const auto answer = run.Do<PredictThroughputAnswer>(
      [] { return absl::CancelledError("gone"); },
      [](StopCheck stop) -> absl::StatusOr<ThroughputAnswer> { return stop(); });
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(recorder.last.code, absl::StatusCode::kCancelled);
  EXPECT_EQ(recorder.calls, 1);
}

TEST(EngineRunTest, TheBudgetCountsFromTheCheckingOn) {
  FakeClock clock;
  AnswerContext context;
  context.options.time_budget_seconds = 1;
  EngineRun run({.clock = clock}, context);
  clock.Advance(600'000'000);  // in the queue
  std::vector<bool> spent;
  const auto answer = run.Do<PredictThroughputAnswer>(NeverStop, [&](StopCheck stop) {
    spent.push_back(IsTimeBudgetSpent(stop()));
    clock.Advance(399'999'999);
    spent.push_back(IsTimeBudgetSpent(stop()));
    clock.Advance(1);
    spent.push_back(IsTimeBudgetSpent(stop()));
    return Answer(1);
  });
  EXPECT_TRUE(answer.ok());
  EXPECT_EQ(spent, (std::vector<bool>{false, false, true}));
}

TEST(EngineRunTest, WithoutABudgetNothingIsSpent) {
  FakeClock clock;
  EngineRun run({.clock = clock}, {});
  clock.Advance(int64_t{1} << 60);
  const auto answer = run.Do<PredictThroughputAnswer>(NeverStop, [&](StopCheck stop) {
    EXPECT_TRUE(stop().ok());
    return Answer(1);
  });
  EXPECT_TRUE(answer.ok());
}

TEST(EngineRunTest, ACallerThatHasGoneCountsMoreThanTheBudget) {
  FakeClock clock;
  AnswerContext context;
  context.options.time_budget_seconds = 1;
  EngineRun run({.clock = clock}, context);
  clock.Advance(5'000'000'000);
  const auto answer = run.Do<PredictThroughputAnswer>(
      [] { return absl::CancelledError("gone"); },
      [](StopCheck stop) -> absl::StatusOr<ThroughputAnswer> { return stop(); });
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stepcast::server::engine_run_test
