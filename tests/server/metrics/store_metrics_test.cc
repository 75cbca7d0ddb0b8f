#include "server/metrics/store_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "server/base/clock.h"
#include "server/store/memory_profile_store.h"

namespace stepcast::server::store_metrics_test {
namespace {

using ::testing::HasSubstr;

class StoreMetricsTest : public ::testing::Test {
 protected:
  std::string Text() { return prometheus::TextSerializer().Serialize(registry_.Collect()); }
  void Put(const std::string& id) {
    ASSERT_TRUE(store_.Put({.summary = {.id = id, .digest = "d"}, .content = "c"}, "").ok());
  }

  FakeClock clock_;
  MemoryProfileStore store_{StoreLimits(), clock_};
  prometheus::Registry registry_;
  StoreMetrics metrics_{registry_};
};

TEST_F(StoreMetricsTest, OperationsAreTimedByTheirOutcome) {
  metrics_.OnOperation("get", absl::StatusCode::kNotFound, 0.5);
  EXPECT_THAT(
      Text(),
      HasSubstr("stepcast_store_operation_seconds_sum{code=\"NotFound\",operation=\"get\"} 0.5\n"));
  EXPECT_THAT(
      Text(),
      HasSubstr("stepcast_store_operation_seconds_count{code=\"OK\",operation=\"put\"} 0\n"));
}

TEST_F(StoreMetricsTest, ProfilesAreCountedOverAllPages) {
  constexpr int kProfiles = 2500;
  for (int i = 0; i < kProfiles; ++i) Put("id-" + std::to_string(i));
  metrics_.Refresh(store_, clock_);
  EXPECT_THAT(Text(), HasSubstr("stepcast_store_profiles 2500\n"));
}

TEST_F(StoreMetricsTest, TheyAreCountedAgainOnlyAfterAChange) {
  Put("a");
  metrics_.Refresh(store_, clock_);
  Put("b");
  metrics_.Refresh(store_, clock_);
  EXPECT_THAT(Text(), HasSubstr("stepcast_store_profiles 1\n"))
      << "nobody said that the store had changed";
  metrics_.OnOperation("put", absl::StatusCode::kAlreadyExists, 0);
  metrics_.Refresh(store_, clock_);
  EXPECT_THAT(Text(), HasSubstr("stepcast_store_profiles 1\n"));
  metrics_.OnOperation("put", absl::StatusCode::kOk, 0);
  metrics_.Refresh(store_, clock_);
  EXPECT_THAT(Text(), HasSubstr("stepcast_store_profiles 2\n"));
}

TEST_F(StoreMetricsTest, WhatOthersDoToASharedStoreShowsAfterAWhile) {
  Put("a");
  metrics_.Refresh(store_, clock_);
  Put("b");
  clock_.Advance(StoreMetrics::kRecountNs - 1);
  metrics_.Refresh(store_, clock_);
  EXPECT_THAT(Text(), HasSubstr("stepcast_store_profiles 1\n"));
  clock_.Advance(1);
  metrics_.Refresh(store_, clock_);
  EXPECT_THAT(Text(), HasSubstr("stepcast_store_profiles 2\n"));
}

}  // namespace
}  // namespace stepcast::server::store_metrics_test
