#include "server/metrics/work_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "absl/strings/str_cat.h"

#include "server/base/clock.h"
#include "server/methods/prediction_methods.h"
#include "server/store/memory_stores.h"
#include "tests/server/store/shard_board.h"

namespace stepcast::server::work_metrics_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(JobMetricsTest, GaugesFollowAJobThroughThePool) {
  prometheus::Registry registry(prometheus::Registry::InsertBehavior::Merge);
  JobMetrics metrics(registry, "simulation");
  JobMetrics other(registry, "store");
  const auto text = [&] { return prometheus::TextSerializer().Serialize(registry.Collect()); };
  metrics.OnQueued(1);
  metrics.OnQueued(2);
  EXPECT_THAT(text(), HasSubstr("stepcast_queue_length{pool=\"simulation\"} 2\n"));
  metrics.OnStarted(1, 0.25);
  EXPECT_THAT(text(), HasSubstr("stepcast_queue_length{pool=\"simulation\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("stepcast_jobs_running{pool=\"simulation\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("stepcast_queue_wait_seconds_sum{pool=\"simulation\"} 0.25\n"));
  metrics.OnDone(1.5);
  EXPECT_THAT(text(), HasSubstr("stepcast_jobs_running{pool=\"simulation\"} 0\n"));
  EXPECT_THAT(text(), HasSubstr("stepcast_job_seconds_sum{pool=\"simulation\"} 1.5\n"));
  metrics.OnRefused();
  EXPECT_THAT(text(), HasSubstr("stepcast_jobs_refused_total{pool=\"simulation\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("stepcast_jobs_refused_total{pool=\"store\"} 0\n"));
}

class OperationMetricsTest : public ::testing::Test {
 protected:
  std::string Text() { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

  FakeClock clock_;
  MemoryOperationStore store_{{}, clock_};
  prometheus::Registry registry_;
  OperationMetrics metrics_{registry_};
};

TEST_F(OperationMetricsTest, EveryStateIsCountedAndTheOldestInTheQueueHasItsAge) {
  EXPECT_THAT(Text(), HasSubstr("stepcast_operations{state=\"exhausted\"} 0\n"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(store_.Start({.method = "m", .request_digest = "d", .request = "request"}).ok());
    clock_.Advance(1'000'000'000);
  }
  ASSERT_TRUE(store_.Claim({.replica = "r", .lease_ns = 1})->has_value());
  metrics_.Refresh(store_, nullptr);
  EXPECT_THAT(Text(), HasSubstr("stepcast_operations{state=\"queued\"} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("stepcast_operations{state=\"running\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("stepcast_operation_queue_age_seconds 2\n"));
}

TEST_F(OperationMetricsTest, ShardsThatWaitAndThoseThatAreTakenAreCounted) {
  EXPECT_THAT(Text(), HasSubstr("stepcast_operation_shards{state=\"waiting\"} 0\n"));
  ShardBoard board;
  board.counts = {.waiting = 3, .open = 7};
  metrics_.Refresh(store_, &board);
  EXPECT_THAT(Text(), HasSubstr("stepcast_operation_shards{state=\"waiting\"} 3\n"));
  EXPECT_THAT(Text(), HasSubstr("stepcast_operation_shards{state=\"taken\"} 4\n"));
}

TEST_F(OperationMetricsTest, AttemptsAreCountedByWhatBecameOfThem) {
  EXPECT_THAT(Text(), HasSubstr("stepcast_operation_attempts_ended_total{outcome=\"lost\"} 0\n"));
  metrics_.OnAttempt();
  metrics_.OnAttempt();
  metrics_.OnAttemptEnd("released");
  EXPECT_THAT(Text(), HasSubstr("stepcast_operation_attempts_total 2\n"));
  EXPECT_THAT(Text(),
              HasSubstr("stepcast_operation_attempts_ended_total{outcome=\"released\"} 1\n"));
}

TEST(SimulationMetricsTest, AnswersAndFailuresAreCountedApart) {
  prometheus::Registry registry;
  SimulationMetrics metrics(registry, SimulatingMethods());
  metrics.OnSimulation({"OptimizeOrder"}, absl::StatusCode::kOk, 0.5, 1000);
  metrics.OnSimulation({"OptimizeOrder"}, absl::StatusCode::kCancelled, 0.25, 0);
  const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
  const std::string of_orders =
      "{code=\"OK\",communication=\"parameter_servers\",method=\"OptimizeOrder\"}";
  EXPECT_THAT(text, HasSubstr("stepcast_predictions_total" + of_orders + " 1\n"));
  EXPECT_THAT(text, HasSubstr("stepcast_predictions_total{code=\"Canceled\",communication="
                              "\"parameter_servers\",method=\"OptimizeOrder\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("stepcast_simulated_operations_total 1000\n"));
  EXPECT_THAT(text, HasSubstr("stepcast_simulation_seconds_sum{communication="
                              "\"parameter_servers\",method=\"OptimizeOrder\"} 0.75\n"));
}

// A series that begins with its first event shows no rate of it: all that can be are there before.
TEST(SimulationMetricsTest, EachMethodHasASeriesForEachKindOfJobThatItTakes) {
  prometheus::Registry registry;
  SimulationMetrics metrics(registry, SimulatingMethods());
  metrics.OnUnsteady({"PredictThroughput", Communication::kAllReduce}, 3);
  const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
  const auto series = [](const char* communication, const char* method) {
    return absl::StrCat("{code=\"OK\",communication=\"", communication, "\",method=\"", method,
                        "\"} 0\n");
  };
  for (const char* method : {"PredictThroughput", "AllocateWorkers"})
    EXPECT_THAT(text, HasSubstr(series("both", method)));
  for (const char* method : {"RecommendWorkers", "GenerateTrace", "CompareModels", "DiagnoseJob"}) {
    EXPECT_THAT(text, HasSubstr(series("parameter_servers", method)));
    EXPECT_THAT(text, HasSubstr(series("all_reduce", method)));
    EXPECT_THAT(text, HasSubstr(series("pipeline", method)));
    EXPECT_THAT(text, Not(HasSubstr(series("both", method))));
  }
  EXPECT_THAT(text, HasSubstr(series("pipeline", "RecommendLayout")));
  EXPECT_THAT(text, Not(HasSubstr(series("all_reduce", "RecommendLayout"))));
  for (const char* method : {"OptimizeOrder", "OptimizeCommunication", "OptimizeJob"})
    EXPECT_THAT(text, Not(HasSubstr(series("pipeline", method))));
  EXPECT_THAT(text, Not(HasSubstr(series("all_reduce", "OptimizeOrder"))));
  EXPECT_THAT(text, HasSubstr(series("all_reduce", "OptimizeCommunication")));
  EXPECT_THAT(text, Not(HasSubstr(series("parameter_servers", "OptimizeCommunication"))));
  EXPECT_THAT(text, HasSubstr(series("all_reduce", "OptimizeJob")));
  EXPECT_THAT(text, HasSubstr(series("parameter_servers", "OptimizeJob")));
  EXPECT_THAT(text, HasSubstr("stepcast_unsteady_predictions_total{communication=\"all_reduce\","
                              "method=\"PredictThroughput\"} 3\n"));
}

TEST(SharingMetricsTest, CallsAreCountedByMethodAndByWhatTheyShared) {
  prometheus::Registry registry;
  SharingMetrics metrics(registry, SimulatingMethods());
  const auto text = [&] { return prometheus::TextSerializer().Serialize(registry.Collect()); };
  const auto line = [](const char* method, const char* from, int count) {
    return absl::StrCat("stepcast_shared_answers_total{from=\"", from, "\",method=\"", method,
                        "\"} ", count, "\n");
  };
  EXPECT_THAT(text(), HasSubstr(line("PredictThroughput", "cache", 0)));
  EXPECT_THAT(text(), Not(HasSubstr("FitCollectives")));
  for (int i = 0; i < 3; ++i) metrics.OnShared("PredictThroughput", SharedFrom::kCache);
  metrics.OnShared("PredictThroughput", SharedFrom::kFlight);
  // That was not expected to share is counted all the same.
  metrics.OnShared("FitCollectives", SharedFrom::kFlight);
  metrics.OnShared("FitCollectives", SharedFrom::kFlight);
  EXPECT_THAT(text(), HasSubstr(line("PredictThroughput", "cache", 3)));
  EXPECT_THAT(text(), HasSubstr(line("PredictThroughput", "flight", 1)));
  EXPECT_THAT(text(), HasSubstr(line("FitCollectives", "flight", 2)));
  EXPECT_THAT(text(), HasSubstr(line("RecommendWorkers", "cache", 0)));
}

}  // namespace
}  // namespace stepcast::server::work_metrics_test
