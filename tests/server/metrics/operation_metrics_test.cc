#include "server/metrics/operation_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "server/base/clock.h"
#include "server/store/memory_operation_store.h"

namespace stepcast::server::operation_metrics_test {
namespace {

using ::testing::HasSubstr;

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
  metrics_.Refresh(store_);
  EXPECT_THAT(Text(), HasSubstr("stepcast_operations{state=\"queued\"} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("stepcast_operations{state=\"running\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("stepcast_operation_queue_age_seconds 2\n"));
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

}  // namespace
}  // namespace stepcast::server::operation_metrics_test
