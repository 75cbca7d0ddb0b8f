#include "tests/bench/papers/all_reduce_scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "core/base/random.h"
#include "tests/bench/papers/pattern_search.h"

namespace stepcast::bench::all_reduce_scaling_test {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PatternSearchTest, FindsTheLeastWithinBounds) {
  const auto bowl = [](const std::vector<double>& at) {
    return std::pow(std::log(at[0] / 3e-4), 2) + std::pow(std::log(at[1] / 7e8), 2);
  };
  const SearchResult found = Minimize(bowl, {{1e-9, 1}, {1e6, 1e12}}, {{0.1, 1e7}});
  EXPECT_THAT(found.at, ElementsAre(DoubleNear(3e-4, 3e-6), DoubleNear(7e8, 7e6)));
  const SearchResult bounded = Minimize(bowl, {{1e-3, 1}, {1e6, 1e8}}, {{0.1, 1e7}});
  EXPECT_THAT(bounded.at, ElementsAre(1e-3, 1e8));
}

TEST(NetworkTest, BucketsAreTheParametersOfTheNetwork) {
  for (const auto& [model, parameters] :
       {std::pair("resnet50", 25'557'032), std::pair("resnet18_cifar", 11'173'962),
        std::pair("word_lstm", 13'987'678)}) {
    const BucketedNetwork& network = NetworkOf(model);
    int64_t bytes = 0;
    for (const int64_t bucket : network.bucket_bytes) bytes += bucket;
    EXPECT_EQ(network.bucket_bytes.size(), network.ready.size());
    // ResNet-50's are recorded ones, which hold nothing else, too.
    EXPECT_EQ(bytes, int64_t{4} * parameters) << model;
    EXPECT_EQ(network.ready.back(), 1) << model;
  }
  EXPECT_THAT(NetworkOf("resnet18_cifar").bucket_bytes,
              ElementsAre(9'461'800, 26'494'976, 8'739'072));
  EXPECT_THROW(NetworkOf("lenet"), std::runtime_error);
}

// 100 ms of which backward takes the last 56.
PublishedRow Row(int32_t nodes, int32_t workers_per_node) {
  return {.model = "resnet50",
          .job = "",
          .nodes = nodes,
          .workers_per_node = workers_per_node,
          .batch_size = 32,
          .one_worker_seconds = 0.1,
          .step_seconds = 0.2};
}

TEST(TimelineTest, ARoundTakesTheSlowestHop) {
  const RingCluster cluster{.bandwidth_bytes_per_second = 1e9,
                            .latency_seconds = 1e-3,
                            .intra_node_bandwidth_bytes_per_second = 5e8,
                            .intra_node_latency_seconds = 1e-4};
  EXPECT_DOUBLE_EQ(RingSeconds(Row(4, 1), cluster, 4'000'000), 6 * (1e-3 + 1e-3));
  EXPECT_DOUBLE_EQ(RingSeconds(Row(1, 4), cluster, 4'000'000), 6 * (1e-4 + 2e-3));
  EXPECT_DOUBLE_EQ(RingSeconds(Row(2, 2), cluster, 4'000'000), 6 * (1e-4 + 2e-3));
  EXPECT_DOUBLE_EQ(RingSeconds(Row(2, 2), cluster, 400'000), 6 * (1e-3 + 1e-4));
}

TEST(TimelineTest, OnlyWhatBackwardDoesNotHideIsAdded) {
  // Latency alone, 2 rounds a bucket: five collectives of 10 ms. The last bucket is ready when
  // backward ends, and all before it are through by then.
  const RingCluster quick{.bandwidth_bytes_per_second = 1e15, .latency_seconds = 5e-3};
  EXPECT_NEAR(TimelineSeconds(Row(2, 1), quick), 0.11, 1e-6);
  EXPECT_NEAR(NoOverlapSeconds(Row(2, 1), quick), 0.15, 1e-6);
  // Five of 40 ms, one after the other from the first bucket on.
  const RingCluster slow{.bandwidth_bytes_per_second = 1e15, .latency_seconds = 20e-3};
  EXPECT_NEAR(TimelineSeconds(Row(2, 1), slow), 0.044 + .007 * 0.056 + 0.2, 1e-6);
  // Backward at half its speed beside 4 x 10 ms: 20 ms of it take 40.
  const RingCluster contended{
      .bandwidth_bytes_per_second = 1e15, .latency_seconds = 5e-3, .overlap_slowdown = 2};
  EXPECT_NEAR(TimelineSeconds(Row(2, 1), contended), 0.13, 1e-6);
}

// Two ways to the same number, one of which is the service's own.
TEST(TimelineTest, IsWhatTheEngineSimulates) {
  Random random({7, 11});
  for (int i = 0; i < 60; ++i) {
    const auto between = [&](double least, double most) {
      return least * std::pow(most / least, random.Unit());
    };
    PublishedRow row = Row(1 + i % 4, 1 + i % 3);
    if (row.workers() == 1) row.nodes = 2;
    row.model = i % 5 == 0 ? "word_lstm" : i % 5 == 1 ? "resnet18_cifar" : "resnet50";
    row.one_worker_seconds = between(0.01, 1);
    const RingCluster cluster{.bandwidth_bytes_per_second = between(1e8, 1e11),
                              .latency_seconds = between(1e-6, 1e-3),
                              .intra_node_bandwidth_bytes_per_second = between(1e8, 1e11),
                              .intra_node_latency_seconds = between(1e-6, 1e-3),
                              .overlap_slowdown = i % 2 == 0 ? 1 : between(1.01, 3)};
    const double worked_out = TimelineSeconds(row, cluster);
    EXPECT_NEAR(PredictedSeconds(row, cluster) / worked_out, 1, 1e-6) << "case " << i;
  }
}

TEST(PolluxTest, TheExponentSaysHowMuchOfTheNetworkIsHidden) {
  PolluxFormula formula{.one_node_seconds = 0.01,
                        .one_node_seconds_per_worker = 0.02,
                        .nodes_seconds = 0.075,
                        .nodes_seconds_per_worker = 0,
                        .exponent = 1};
  EXPECT_DOUBLE_EQ(PolluxSeconds(Row(1, 4), formula), 0.1 + 0.05);
  EXPECT_DOUBLE_EQ(PolluxSeconds(Row(1, 4), formula, 2), 0.1 + 0.1);
  formula.exponent = 2;
  EXPECT_DOUBLE_EQ(PolluxSeconds(Row(2, 1), formula), 0.125);
}

// Rows that a model itself made are predicted by what is fitted to them.
TEST(CalibrationTest, FindsWhatMadeTheRows) {
  const RingCluster truth{.bandwidth_bytes_per_second = 7e8,
                          .latency_seconds = 3e-4,
                          .intra_node_bandwidth_bytes_per_second = 4e9,
                          .intra_node_latency_seconds = 5e-5,
                          .overlap_slowdown = 1.2};
  const PolluxFormula formula{.exponent = 1.7};
  std::vector<PublishedRow> rings;
  std::vector<PublishedRow> curves;
  for (const int32_t nodes : {1, 2, 4, 8}) {
    for (const int32_t per_node : {1, 2, 4}) {
      for (const double seconds : {0.05, 0.2, 0.5}) {
        PublishedRow row = Row(nodes, per_node);
        if (row.workers() == 1) continue;
        row.one_worker_seconds = seconds;
        row.step_seconds = TimelineSeconds(row, truth);
        rings.push_back(row);
        row.step_seconds = PolluxSeconds(row, formula);
        curves.push_back(row);
      }
    }
  }
  const RingCluster cluster = CalibrateRing(rings, /*with_slowdown=*/true);
  for (const PublishedRow& row : rings)
    EXPECT_NEAR(TimelineSeconds(row, cluster) / row.step_seconds, 1, 0.05);
  const PolluxFormula fitted = FitPollux(curves);
  for (const PublishedRow& row : curves)
    EXPECT_NEAR(PolluxSeconds(row, fitted) / row.step_seconds, 1, 0.05);
}

// Measurements of the papers, as README.md has them.
class MeasuredScalingTest : public ::testing::Test {
 protected:
  // "" where it is not on this machine.
  static std::string Measured(const char* file) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment.
    const char* chosen = std::getenv("STEPCAST_SHARED_DATA");
    const std::filesystem::path folder =
        chosen != nullptr ? std::filesystem::path(chosen)
                          : std::filesystem::path(STEPCAST_SOURCE_DIR) / ".." / "shared" / "data";
    std::ifstream stream(folder / "scaling" / file);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }

  // Mean absolute error of step times of at least three workers.
  static double MeanError(const ScalingScore& score, double ScoredRow::*model) {
    double sum = 0;
    int rows = 0;
    for (const ScoredRow& scored : score.rows) {
      if (scored.row.workers() < 3) continue;
      sum += std::abs(scored.*model / scored.row.step_seconds - 1);
      ++rows;
    }
    return sum / rows;
  }
};

TEST_F(MeasuredScalingTest, PolluxsJobsArePredictedFromTheOtherNetwork) {
  const std::string text = Measured("pollux.json");
  if (text.empty()) GTEST_SKIP() << "shared/data/scaling/pollux.json is not on this machine";
  const std::vector<ScalingScore> scores = ScoreSet(ReadPollux(text));
  ASSERT_EQ(scores.size(), 2U);
  for (const ScalingScore& score : scores) {
    EXPECT_LT(MeanError(score, &ScoredRow::predicted), 0.11) << score.calibrated_on;
    EXPECT_LT(MeanError(score, &ScoredRow::predicted), MeanError(score, &ScoredRow::no_overlap))
        << score.calibrated_on;
    // Pollux's formula saw these very rows, the simulation did not.
    EXPECT_LT(MeanError(score, &ScoredRow::predicted),
              MeanError(score, &ScoredRow::pollux_fitted) + 0.01)
        << score.calibrated_on;
  }
  EXPECT_THAT(ErrorTable(scores), HasSubstr("| Pollux, T4 | resnet50 | resnet18_cifar | 2 | 22 |"));
  EXPECT_THAT(RowTable(scores), HasSubstr("| Pollux, T4 | resnet50 | 16 x 4 | 20 |"));
  EXPECT_THAT(ClusterTable(scores), HasSubstr("| Pollux, T4 | resnet18_cifar | "));
}

}  // namespace
}  // namespace stepcast::bench::all_reduce_scaling_test
