#include "client/src/load/load_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "tests/client/support/fake_load_server.h"

namespace stepcast::client::load_run_test {
namespace {

using std::chrono::nanoseconds;

LatencyHistogram HistogramOf(const std::vector<int64_t>& values) {
  LatencyHistogram histogram;
  for (const int64_t value : values) histogram.Record(nanoseconds(value));
  return histogram;
}

// The least value that at least a share `part` of them does not exceed.
int64_t ExactPercentile(std::vector<int64_t> values, double part) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(values.size())));
  return values[std::max<size_t>(rank, 1) - 1];
}

// Spread over all magnitudes, as latencies are.
std::vector<int64_t> RandomLatencies(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> logarithm(0, std::log(3.6e12));
  std::vector<int64_t> values(1 + random() % 2000);
  for (int64_t& value : values) value = static_cast<int64_t>(std::exp(logarithm(random)));
  return values;
}

TEST(LatencyHistogramTest, PercentilesAreNeverBelowTheExactOnesNorA256thAbove) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const std::vector<int64_t> values = RandomLatencies(seed);
    const LatencyHistogram histogram = HistogramOf(values);
    for (const double part : {0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
      const int64_t exact = ExactPercentile(values, part);
      const int64_t reported = histogram.Percentile(part).count();
      ASSERT_GE(reported, exact) << "seed " << seed << ", part " << part;
      ASSERT_LE(static_cast<double>(reported - exact), static_cast<double>(exact) / 256)
          << "seed " << seed << ", part " << part;
    }
  }
}

TEST(LatencyHistogramTest, CountMeanAndTheGreatestAreExact) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<int64_t> values = RandomLatencies(seed);
    const LatencyHistogram histogram = HistogramOf(values);
    EXPECT_EQ(histogram.count(), static_cast<int64_t>(values.size()));
    EXPECT_EQ(histogram.max().count(), *std::max_element(values.begin(), values.end()));
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    EXPECT_EQ(histogram.Mean().count(), std::llround(sum / static_cast<double>(values.size())));
  }
}

TEST(LatencyHistogramTest, BucketsMeetWithoutAGap) {
  for (int64_t edge = 1; edge < int64_t{1} << 41; edge *= 2) {
    for (const int64_t value : {edge - 1, edge, edge + 1}) {
      // Something greater, or the greatest would hide what its bucket is.
      const int64_t reported = HistogramOf({value, value * 2 + 1000}).Percentile(0.5).count();
      EXPECT_GE(reported, value);
      EXPECT_LE(reported - value, value / 256);
    }
  }
}

TEST(LatencyHistogramTest, WhatIsOutOfRangeCountsAtTheEnds) {
  const LatencyHistogram low = HistogramOf({-5, -1, 7});
  EXPECT_EQ(low.Percentile(0.5).count(), 0);
  const LatencyHistogram high = HistogramOf({1, nanoseconds(std::chrono::hours(5)).count()});
  EXPECT_EQ(high.max(), std::chrono::hours(5));
  EXPECT_GE(high.Percentile(0.99), LatencyHistogram::kLongest);
}

TEST(LatencyHistogramTest, OfNothingAllIsZero) {
  const LatencyHistogram none;
  EXPECT_EQ(none.count(), 0);
  EXPECT_EQ(none.Percentile(0.99).count(), 0);
  EXPECT_EQ(none.Mean().count(), 0);
}

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kOk = 0;
constexpr auto kUnavailable = static_cast<size_t>(absl::StatusCode::kUnavailable);

// Within a histogram's precision.
void ExpectPercentile(const LatencyHistogram& histogram, std::vector<nanoseconds> exact,
                      double part) {
  std::sort(exact.begin(), exact.end());
  const nanoseconds expected =
      exact[static_cast<size_t>(std::ceil(part * static_cast<double>(exact.size()))) - 1];
  EXPECT_GE(histogram.Percentile(part), expected) << part;
  EXPECT_LE(histogram.Percentile(part), expected + expected / 256) << part;
}

// The time that each call of a schedule takes from its instant on, one after the other, by the
// definition of a queue.
std::vector<nanoseconds> ScheduledLatencies(const FakeServing& serving, double rate,
                                            nanoseconds until) {
  std::vector<nanoseconds> latencies;
  nanoseconds free{0};
  for (int turn = 0; nanoseconds(static_cast<int64_t>(turn * 1e9 / rate)) < until; ++turn) {
    const nanoseconds at{static_cast<int64_t>(turn * 1e9 / rate)};
    free = serving.End(at, free);
    latencies.push_back(free - at);
  }
  return latencies;
}

TEST(LoadRunTest, AnOpenLoopShowsTheWaitingThatAPauseCausesAndAClosedOneHidesIt) {
  const FakeServing pausing{
      .service = milliseconds(1), .pause_from = seconds(5), .pause = seconds(1)};
  const nanoseconds length = seconds(10);

  FakeLoadServer closed_server(pausing);
  const LoadResult closed = RunLoad({.loop = ClosedLoop{.concurrency = 1}, .duration = length},
                                    closed_server, closed_server);
  EXPECT_LE(closed.latency.Percentile(0.999), milliseconds(1) + microseconds(4))
      << "one call of nine thousand met the pause";
  EXPECT_EQ(closed.latency.max(), milliseconds(1001));

  FakeLoadServer open_server(pausing);
  const LoadResult open =
      RunLoad({.loop = OpenLoop{.rate = 500}, .duration = length}, open_server, open_server);
  const std::vector<nanoseconds> exact = ScheduledLatencies(pausing, 500, length);
  EXPECT_EQ(open.latency.count(), static_cast<int64_t>(exact.size()));
  EXPECT_EQ(open.latency.max(), *std::max_element(exact.begin(), exact.end()));
  EXPECT_GT(open.latency.Percentile(0.99), milliseconds(900))
      << "a tenth of the calls were due in the pause, and as many waited behind them";
  for (const double part : {0.5, 0.9, 0.95, 0.99, 0.999, 1.0})
    ExpectPercentile(open.latency, exact, part);
}

TEST(LoadRunTest, AnOpenLoopMeasuresWhatAQueueIsByDefinition) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const FakeServing serving{.service = microseconds(100 + random() % 3000),
                              .pause_from = milliseconds(random() % 2000),
                              .pause = milliseconds(random() % 500)};
    const double rate = 100 + static_cast<double>(random() % 900);
    FakeLoadServer server(serving);
    const LoadResult result =
        RunLoad({.loop = OpenLoop{.rate = rate}, .duration = seconds(2)}, server, server);
    const std::vector<nanoseconds> exact = ScheduledLatencies(serving, rate, seconds(2));
    ASSERT_EQ(result.latency.count(), static_cast<int64_t>(exact.size()));
    EXPECT_EQ(result.latency.max(), *std::max_element(exact.begin(), exact.end()));
    for (const double part : {0.01, 0.5, 0.9, 0.99}) ExpectPercentile(result.latency, exact, part);
  }
}

TEST(LoadRunTest, ALateProcessCountsItsOwnLatenessToo) {
  FakeLoadServer punctual({.service = microseconds(1)});
  FakeLoadServer late({.service = microseconds(1)});
  late.oversleep = milliseconds(7);
  const LoadPlan plan{.loop = OpenLoop{.rate = 100}, .duration = seconds(1)};
  const LoadResult on_time = RunLoad(plan, punctual, punctual);
  const LoadResult too_late = RunLoad(plan, late, late);
  EXPECT_EQ(on_time.latency.max(), microseconds(1));
  EXPECT_EQ(on_time.lateness.max(), nanoseconds(0));
  EXPECT_EQ(too_late.latency.max(), milliseconds(7) + microseconds(1));
  EXPECT_EQ(too_late.lateness.max(), milliseconds(7));
  EXPECT_EQ(too_late.latency.count(), on_time.latency.count());
}

TEST(LoadRunTest, AClosedLoopKeepsItsCallsUnderWay) {
  for (const uint32_t concurrency : {1u, 8u, 64u}) {
    FakeLoadServer server({.service = milliseconds(1)});
    const LoadResult result =
        RunLoad({.loop = ClosedLoop{concurrency}, .warmup = seconds(1), .duration = seconds(2)},
                server, server);
    EXPECT_EQ(server.most_under_way, concurrency);
    EXPECT_EQ(result.codes[kOk], 2000) << "one a millisecond";
    EXPECT_EQ(result.all_codes[kOk], 3000 - 1 + concurrency)
        << "also those of the warm-up, and those under way at the end";
    EXPECT_EQ(result.latency.max(), milliseconds(concurrency));
    EXPECT_DOUBLE_EQ(result.Goodput(), 1000);
  }
}

TEST(LoadRunTest, OnlyTheWindowCounts) {
  // The pause is in the warm-up, and over before the window.
  FakeLoadServer server(
      {.service = milliseconds(1), .pause_from = milliseconds(100), .pause = milliseconds(100)});
  const LoadResult result =
      RunLoad({.loop = OpenLoop{.rate = 100}, .warmup = seconds(1), .duration = seconds(1)}, server,
              server);
  EXPECT_EQ(result.codes[kOk], 100);
  EXPECT_EQ(result.all_codes[kOk], 200);
  EXPECT_EQ(result.latency.max(), milliseconds(1));
}

TEST(LoadRunTest, WhatComesAfterTheDeadlineIsNotGood) {
  // Twice as much as it can: the k-th call waits for k milliseconds.
  FakeLoadServer server({.service = milliseconds(2)});
  const LoadResult result = RunLoad(
      {.loop = OpenLoop{.rate = 1000}, .duration = seconds(1), .deadline = milliseconds(101)},
      server, server);
  EXPECT_EQ(result.codes[kOk], 1000);
  EXPECT_EQ(result.good, 100);
}

TEST(LoadRunTest, WhatCannotLeaveIsCounted) {
  FakeLoadServer server({.service = milliseconds(100), .calls_max = 3});
  const LoadResult result =
      RunLoad({.loop = OpenLoop{.rate = 100}, .duration = seconds(1)}, server, server);
  EXPECT_EQ(server.most_under_way, 3);
  EXPECT_EQ(result.unsent + Sum(result.codes), 100);
  EXPECT_GT(result.unsent, 80);
}

TEST(LoadRunTest, FailuresHaveTheirCodeAndNoLatencyOfAnswers) {
  FakeLoadServer server({.service = milliseconds(1), .code = absl::StatusCode::kResourceExhausted});
  const LoadResult result =
      RunLoad({.loop = OpenLoop{.rate = 10}, .duration = seconds(1)}, server, server);
  EXPECT_EQ(result.codes[static_cast<size_t>(absl::StatusCode::kResourceExhausted)], 10);
  EXPECT_EQ(Sum(result.codes), 10);
  EXPECT_EQ(result.latency.count(), 0);
  EXPECT_EQ(result.refusal.count(), 10);
  EXPECT_EQ(result.good, 0);
}

TEST(LoadRunTest, AServerThatIsGoneEndsTheRunEarly) {
  const auto gone = [] {
    return FakeLoadServer({.service = microseconds(10), .code = absl::StatusCode::kUnavailable});
  };
  FakeLoadServer closed_server = gone();
  const LoadResult closed =
      RunLoad({.loop = ClosedLoop{8}, .duration = seconds(3600)}, closed_server, closed_server);
  EXPECT_TRUE(closed.server_gone);
  EXPECT_LE(closed.codes[kUnavailable], kUnavailableMax + 8);
  EXPECT_LT(closed_server.Now(), seconds(1));
  FakeLoadServer open_server = gone();
  const LoadResult open =
      RunLoad({.loop = OpenLoop{10'000}, .duration = seconds(3600)}, open_server, open_server);
  EXPECT_TRUE(open.server_gone);
  EXPECT_LE(open.codes[kUnavailable], kUnavailableMax + 1);
  EXPECT_LT(open_server.Now(), seconds(1));
}

TEST(LoadRunTest, QuestionsAreAskedInTurn) {
  const std::vector<LoadPlan> plans{
      {.loop = ClosedLoop{4}, .duration = milliseconds(20), .first_question = 7},
      {.loop = OpenLoop{1000}, .duration = milliseconds(20), .first_question = 7}};
  for (const LoadPlan& plan : plans) {
    FakeLoadServer server({.service = milliseconds(1)});
    const LoadResult result = RunLoad(plan, server, server);
    std::vector<uint64_t> expected;
    for (uint64_t question = 7; question < result.next_question; ++question)
      expected.push_back(question);
    EXPECT_EQ(server.questions, expected);
    EXPECT_EQ(server.questions.size(), static_cast<size_t>(Sum(result.all_codes)));
  }
}

}  // namespace
}  // namespace stepcast::client::load_run_test
