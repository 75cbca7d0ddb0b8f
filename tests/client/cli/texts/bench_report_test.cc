#include "client/cli/texts/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace stepcast::client::bench_report_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A hundred calls in ten seconds, the k-th of k milliseconds, and `refused` more that were refused.
BenchReport ReportOf(int refused) {
  LoadResult result;
  result.window = seconds(10);
  for (int k = 1; k <= 100; ++k) result.latency.Record(milliseconds(k));
  result.codes[0] = result.good = 100;
  result.codes[static_cast<size_t>(absl::StatusCode::kResourceExhausted)] = refused;
  result.all_codes = result.codes;
  BenchReport report{.server = "there:1", .method = "predict", .duration = seconds(10)};
  report.steps.push_back({.loop = ClosedLoop{8}, .result = result});
  report.steps.push_back({.loop = OpenLoop{12.5}, .result = result});
  return report;
}

TEST(BenchReportTest, ATargetThatIsMissedIsNamedWithItsLoad) {
  const BenchReport report = ReportOf(0);
  EXPECT_THAT(MissedBy(report, {}), IsEmpty());
  EXPECT_THAT(MissedBy(report, {.max_p99_ms = 100, .min_goodput = 10}), IsEmpty());
  EXPECT_THAT(MissedBy(report, {.max_p99_ms = 98}),
              ElementsAre(HasSubstr("8 at once: p99 is 99"), HasSubstr("12.50/s: p99 is 99")));
  EXPECT_THAT(MissedBy(report, {.min_goodput = 10.5}),
              ElementsAre(HasSubstr("goodput is 10"), HasSubstr("goodput is 10")));
}

TEST(BenchReportTest, NoAnswerAndNoServerAreMissesByThemselves) {
  BenchReport report = ReportOf(0);
  report.steps[0].result.server_gone = true;
  report.steps[1].result.latency = {};
  EXPECT_THAT(MissedBy(report, {}),
              ElementsAre(HasSubstr("8 at once: the server is gone"),
                          HasSubstr("12.50/s: no call that counts was answered")));
}

TEST(BenchReportTest, TheTableHasALineForEachLoad) {
  const std::string text = BenchText(ReportOf(7));
  EXPECT_THAT(text, HasSubstr("8 at once"));
  EXPECT_THAT(text, HasSubstr("12.50/s"));
  EXPECT_THAT(text, HasSubstr("RESOURCE_EXHAUSTED 7"));
}

TEST(BenchReportTest, TheJsonHoldsEveryCount) {
  const auto json = nlohmann::json::parse(BenchJson(ReportOf(7), {"8 at once: \"slow\""}));
  EXPECT_EQ(json["server"], "there:1");
  ASSERT_EQ(json["steps"].size(), 2);
  EXPECT_EQ(json["steps"][0]["concurrency"], 8);
  EXPECT_EQ(json["steps"][1]["rate"], 12.5);
  EXPECT_EQ(json["steps"][0]["calls"], "107");
  EXPECT_EQ(json["steps"][0]["codes"],
            (nlohmann::json{{"OK", "100"}, {"RESOURCE_EXHAUSTED", "7"}}));
  EXPECT_EQ(json["steps"][0]["goodput"], 10);
  EXPECT_NEAR(json["steps"][0]["latencyMs"]["p99"].get<double>(), 99, 99.0 / 256);
  EXPECT_EQ(json["steps"][0]["latencyMs"]["max"], 100);
  EXPECT_EQ(json["missed"][0]["why"], "8 at once: \"slow\"");
}

}  // namespace
}  // namespace stepcast::client::bench_report_test
