#include "server/metrics/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

namespace stepcast::server::server_metrics_test {
namespace {

using ::testing::HasSubstr;

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
