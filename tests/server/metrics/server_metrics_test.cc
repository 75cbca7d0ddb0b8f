#include "server/metrics/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <regex>
#include <set>
#include <sstream>

#include "server/base/clock.h"
#include "server/store/memory_stores.h"

namespace stepcast::server::server_metrics_test {
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

ServerMetricsOptions Options() {
  return {.methods = {{.service = "s", .method = "m", .type = "unary"}},
          .version = "1.2.3",
          .engine_version = "4"};
}

TEST(ServerMetricsTest, TheBuildIsNamed) {
  EXPECT_THAT(ServerMetrics(Options()).Text(),
              HasSubstr("stepcast_build_info{engine_version=\"4\",version=\"1.2.3\"} 1\n"));
}

TEST(ServerMetricsTest, TheStoresLimitIsThereToCompareWith) {
  EXPECT_THAT(ServerMetrics({.max_profiles = 1500}).Text(),
              HasSubstr("stepcast_store_profiles_max 1500\n"));
}

TEST(ServerMetricsTest, TwoServersShareNothing) {
  ServerMetrics first(Options());
  ServerMetrics second(Options());
  first.calls.Of("/s/m").started->Increment();
  EXPECT_THAT(second.Text(), HasSubstr("grpc_server_started_total{grpc_method=\"m\",grpc_service="
                                       "\"s\",grpc_type=\"unary\"} 0\n"));
}

// The demands of the text format: one HELP and one TYPE a family, before its samples, and no sample
// of a family without them.
TEST(ServerMetricsTest, EveryFamilyIsThereOnceWithItsHelpAndType) {
  std::istringstream lines(ServerMetrics(Options()).Text());
  std::set<std::string> helped;
  std::set<std::string> typed;
  const std::regex suffix("_(bucket|sum|count)$");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    std::string kind;
    std::string name;
    words >> first >> kind >> name;
    if (first == "#") {
      EXPECT_TRUE((kind == "HELP" ? helped : typed).insert(name).second) << name;
      continue;
    }
    const std::string sample = first.substr(0, first.find('{'));
    const bool known =
        typed.count(sample) + typed.count(std::regex_replace(sample, suffix, "")) > 0;
    EXPECT_TRUE(known) << sample;
  }
  EXPECT_EQ(helped, typed);
  EXPECT_GE(typed.size(), 20U);
}

}  // namespace
}  // namespace stepcast::server::server_metrics_test
