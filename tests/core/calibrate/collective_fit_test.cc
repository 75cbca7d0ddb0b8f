#include "core/calibrate/collective_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/communication/collective_time.h"
#include "tests/support/profile_json.h"
#include "tests/support/repetitions.h"

namespace stepcast::collective_fit_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Reason = FitWarning::Reason;

// The link of which measurements are made.
struct Truth {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing;
  double latency = 20e-6;
  double bandwidth = 1.2e9;
  double addition = 0;
};

double SecondsOf(const Truth& truth, const MeasuredCollective& m) {
  const Scenario scenario{.workers = m.workers,
                          .bandwidth_bytes_per_second = truth.bandwidth,
                          .communication = AllReduce{.algorithm = truth.algorithm,
                                                     .latency_seconds = truth.latency,
                                                     .reduction_seconds_per_byte = truth.addition}};
  return CollectiveTimes(scenario).SecondsOf(m.kind, m.size_bytes);
}

// Sizes from 1 KiB to 96 MiB, so many a number of workers and kind.
struct Campaign {
  Truth truth;
  std::vector<int32_t> workers = {2, 4, 8};
  std::vector<Collective> kinds = {Collective::kAllReduce};
  int sizes = 14;
  double noise = 0;          // standard deviation of the times' logarithm
  double outlier_share = 0;  // they took 3 to 30 times as long
};

std::vector<MeasuredCollective> Measured(const Campaign& campaign, Random& random) {
  std::vector<MeasuredCollective> points;
  for (const int32_t workers : campaign.workers) {
    for (const Collective kind : campaign.kinds) {
      for (int k = 0; k < campaign.sizes; ++k) {
        MeasuredCollective m{.kind = kind,
                             .workers = workers,
                             .size_bytes = int64_t{1024} << (k * 17 / campaign.sizes)};
        m.size_bytes += static_cast<int64_t>(random.Below(static_cast<uint64_t>(m.size_bytes) / 2));
        m.seconds = SecondsOf(campaign.truth, m) * std::exp(campaign.noise * random.Normal());
        points.push_back(m);
      }
    }
  }
  const auto outliers =
      static_cast<size_t>(campaign.outlier_share * static_cast<double>(points.size()));
  for (size_t i = 0; i < outliers; ++i) {
    std::swap(points[i], points[i + random.Below(points.size() - i)]);
    points[i].seconds *= 3 + 27 * random.Unit();
  }
  return points;
}

CollectiveFit FitOf(const std::vector<MeasuredCollective>& points,
                    CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing) {
  const auto query = ResolveCollectiveFit({.measurements = points, .algorithm = algorithm});
  EXPECT_TRUE(query.ok()) << query.status();
  return FitCollectives(*query, NeverStop).value();
}

std::vector<Reason> ReasonsOf(const CollectiveFit& fit) {
  std::vector<Reason> reasons;
  for (const FitWarning& warning : fit.warnings) reasons.push_back(warning.reason);
  return reasons;
}

void ExpectNear(const FittedCoefficient& fitted, double truth, double relative) {
  EXPECT_NEAR(fitted.value, truth, relative * truth);
  EXPECT_LE(fitted.lower, fitted.value);
  EXPECT_GE(fitted.upper, fitted.value);
}

TEST(CollectiveFitTest, ARingWithoutNoiseIsFoundAgain) {
  Random random({1});
  const Truth truth{.addition = 3e-10};
  const CollectiveFit fit = FitOf(Measured(
      {.truth = truth, .kinds = {Collective::kAllReduce, Collective::kAllGather}}, random));
  ExpectNear(fit.bandwidth, truth.bandwidth, 1e-5);
  ExpectNear(fit.latency, truth.latency, 1e-5);
  ExpectNear(fit.reduction, truth.addition, 1e-5);
  EXPECT_LT(fit.relative_residual, 1e-7);
  EXPECT_EQ(fit.outliers, 0);
  EXPECT_THAT(fit.warnings, IsEmpty());
}

TEST(CollectiveFitTest, GloosMessagesWithoutNoiseAreFoundAgain) {
  Random random({2});
  for (const double addition : {0.0, 2.5e-10, 3e-9}) {
    const Truth truth{.algorithm = CollectiveAlgorithm::kGloo,
                      .latency = 60e-6,
                      .bandwidth = 1.2e8,
                      .addition = addition};
    const CollectiveFit fit =
        FitOf(Measured({.truth = truth, .workers = {2, 3, 4, 6}}, random), truth.algorithm);
    ExpectNear(fit.bandwidth, truth.bandwidth, 1e-5);
    ExpectNear(fit.latency, truth.latency, 1e-5);
    EXPECT_NEAR(fit.reduction.value, addition, 1e-5 * addition + 1e-14);
    EXPECT_EQ(fit.outliers, 0);
    EXPECT_EQ(ReasonsOf(fit),
              addition > 0 ? std::vector{Reason::kReductionAmbiguous} : std::vector<Reason>())
        << addition;
  }
}

TEST(CollectiveFitTest, AllGathersTellASlowAdditionFromASlowLink) {
  // n messages a half: 2n x 8 and 3 in the one case, n x (5 + 11) and ... + 5 in the other.
  Random random({3});
  const Truth slow_link{.algorithm = CollectiveAlgorithm::kGloo,
                        .latency = 0,
                        .bandwidth = 1 / 8e-9,
                        .addition = 3e-9};
  const Truth slow_addition{.algorithm = CollectiveAlgorithm::kGloo,
                            .latency = 0,
                            .bandwidth = 1 / 3e-9,
                            .addition = 13e-9};
  for (const int64_t size : {100'000, 10'000'000}) {
    const MeasuredCollective m{.workers = 4, .size_bytes = size};
    EXPECT_NEAR(SecondsOf(slow_addition, m) / SecondsOf(slow_link, m), 1, 1e-6);
  }
  Campaign campaign{.truth = slow_addition};
  CollectiveFit fit = FitOf(Measured(campaign, random), CollectiveAlgorithm::kGloo);
  ExpectNear(fit.reduction, slow_link.addition, 1e-4);
  EXPECT_THAT(ReasonsOf(fit), Contains(Reason::kReductionAmbiguous));
  campaign.kinds = {Collective::kAllReduce, Collective::kAllGather};
  fit = FitOf(Measured(campaign, random), CollectiveAlgorithm::kGloo);
  ExpectNear(fit.bandwidth, slow_addition.bandwidth, 1e-4);
  ExpectNear(fit.reduction, slow_addition.addition, 1e-4);
}

TEST(CollectiveFitTest, AFifthOfOutliersMovesNothing) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Campaign campaign{.outlier_share = 0.2};
    Random random({seed, 4});
    const CollectiveFit fit = FitOf(Measured(campaign, random));
    ExpectNear(fit.bandwidth, campaign.truth.bandwidth, 1e-6);
    ExpectNear(fit.latency, campaign.truth.latency, 1e-6);
    EXPECT_EQ(fit.outliers, 8);
    campaign.noise = 0.02;
    const CollectiveFit noisy = FitOf(Measured(campaign, random));
    ExpectNear(noisy.bandwidth, campaign.truth.bandwidth, 0.03);
    ExpectNear(noisy.latency, campaign.truth.latency, 0.03);
    EXPECT_NEAR(noisy.outliers, 8, 1);
  }
}

TEST(CollectiveFitTest, AllReducesOfARingDoNotTellAdditionsFromTheLink) {
  Random random({5});
  const Truth truth{.addition = 4e-10};
  const CollectiveFit fit = FitOf(Measured({.truth = truth}, random));
  EXPECT_FALSE(fit.reduction.is_told);
  EXPECT_EQ(fit.reduction.value, 0);
  EXPECT_THAT(ReasonsOf(fit), ElementsAre(Reason::kReductionNotTold));
  // A ring adds half of what it sends.
  ExpectNear(fit.bandwidth, 1 / (1 / truth.bandwidth + truth.addition / 2), 1e-6);
  // So all-reduces are predicted alike, of any number of workers.
  const Truth fitted{.latency = fit.latency.value, .bandwidth = fit.bandwidth.value};
  const MeasuredCollective m{.workers = 32, .size_bytes = 5'000'000};
  EXPECT_NEAR(SecondsOf(fitted, m) / SecondsOf(truth, m), 1, 1e-6);
}

TEST(CollectiveFitTest, OneNumberOfWorkersDoesNotTellGloosAdditionsApart) {
  const Truth truth{.algorithm = CollectiveAlgorithm::kGloo, .latency = 1e-6, .addition = 2e-10};
  std::vector<MeasuredCollective> points;
  // Two messages a chunk, whatever the size.
  for (int64_t size = 1 << 16; size <= 1 << 23; size *= 2) {
    points.push_back({.workers = 4, .size_bytes = size});
    points.back().seconds = SecondsOf(truth, points.back());
  }
  const CollectiveFit fit = FitOf(points, truth.algorithm);
  EXPECT_FALSE(fit.reduction.is_told);
  EXPECT_THAT(
      fit.warnings,
      ElementsAre(AllOf(Field(&FitWarning::reason, Reason::kReductionNotTold),
                        Field(&FitWarning::message, HasSubstr("several numbers of workers")))));
  EXPECT_LT(fit.relative_residual, 1e-6);
}

TEST(CollectiveFitTest, EqualSharesDoNotTellLatencyFromBandwidth) {
  std::vector<MeasuredCollective> points;
  for (const int32_t workers : {2, 4, 8, 16})
    points.push_back({.workers = workers, .size_bytes = workers * 1000, .seconds = 1e-3 * workers});
  const CollectiveFit fit = FitOf(points);
  EXPECT_FALSE(fit.latency.is_told);
  EXPECT_THAT(ReasonsOf(fit), Contains(Reason::kLatencyNotTold));
}

TEST(CollectiveFitTest, TimesThatDoNotGrowTellNoBandwidth) {
  std::vector<MeasuredCollective> points;
  for (const int64_t size : {8, 64, 512, 4096})
    points.push_back({.workers = 4, .size_bytes = size, .seconds = 6e-5});
  const CollectiveFit fit = FitOf(points);
  EXPECT_EQ(fit.bandwidth.value, 0);
  EXPECT_GT(fit.bandwidth.lower, 0);
  EXPECT_NEAR(fit.latency.value, 1e-5, 1e-12);
  EXPECT_THAT(ReasonsOf(fit), Contains(Reason::kBandwidthNotTold));
}

TEST(CollectiveFitTest, EachNumberOfWorkersHasItsResiduals) {
  Random random({6});
  std::vector<MeasuredCollective> points = Measured({.workers = {2, 4, 6, 8}}, random);
  // A switch of algorithms: the largest job is half as fast again.
  for (MeasuredCollective& m : points) {
    if (m.workers == 8) m.seconds *= 1.5;
  }
  const CollectiveFit fit = FitOf(points);
  ASSERT_EQ(fit.by_workers.size(), 4);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(fit.by_workers[i].measurements, 14);
    EXPECT_EQ(fit.by_workers[i].outliers, 0);
    EXPECT_NEAR(fit.by_workers[i].bias, 0, 1e-6);
  }
  EXPECT_EQ(fit.by_workers[3].workers, 8);
  EXPECT_EQ(fit.by_workers[3].outliers, 14);
  EXPECT_NEAR(fit.by_workers[3].bias, 0.5, 1e-6);
  EXPECT_NEAR(fit.by_workers[3].relative_residual, 0.5, 1e-6);
  EXPECT_THAT(fit.warnings,
              Contains(AllOf(Field(&FitWarning::reason, Reason::kAlgorithmFails),
                             Field(&FitWarning::message, HasSubstr("with 8 workers half of the "
                                                                   "times are 50% or more")))));
  // No flags say that: the points themselves do, each once.
  EXPECT_THAT(ReasonsOf(fit), Contains(Reason::kNoLine));
  EXPECT_EQ(fit.points.size(), points.size());
}

// As where a library takes another protocol from some size on: no line holds for both.
TEST(CollectiveFitTest, PointsThatFollowNoLineAreTakenAsTheyAre) {
  Random random({11});
  std::vector<MeasuredCollective> points = Measured({}, random);
  const CollectiveFit line = FitOf(points);
  EXPECT_THAT(ReasonsOf(line), Not(Contains(Reason::kNoLine)));
  EXPECT_TRUE(line.points.empty());
  for (MeasuredCollective& m : points)
    if (m.size_bytes > 100'000) m.seconds *= m.size_bytes > 3'000'000 ? 1 : 4;
  std::vector<MeasuredCollective> twice = points;
  for (MeasuredCollective& m : twice) m.seconds *= 3;
  points.insert(points.end(), twice.begin(), twice.end());
  const CollectiveFit fit = FitOf(points);
  EXPECT_THAT(ReasonsOf(fit), Contains(Reason::kNoLine));
  ASSERT_EQ(fit.points.size(), twice.size());
  // Of two of one kind, workers and size the median.
  EXPECT_TRUE(std::is_sorted(fit.points.begin(), fit.points.end(),
                             [](const MeasuredCollective& a, const MeasuredCollective& b) {
                               return std::tuple(a.kind, a.workers, a.size_bytes) <
                                      std::tuple(b.kind, b.workers, b.size_bytes);
                             }));
}

TEST(CollectiveFitTest, TwoWorkersAloneAreWarnedOf) {
  Random random({7});
  EXPECT_THAT(ReasonsOf(FitOf(Measured({.workers = {2}}, random))),
              Contains(Reason::kTwoWorkersOnly));
  EXPECT_THAT(ReasonsOf(FitOf(Measured({.workers = {3}}, random))),
              Not(Contains(Reason::kTwoWorkersOnly)));
}

struct CoverageCase {
  const char* name;
  Campaign campaign;
};

class CoverageTest : public ::testing::TestWithParam<CoverageCase> {};

TEST_P(CoverageTest, IntervalsHoldTheTruthAsOftenAsTheySay) {
  const Campaign& campaign = GetParam().campaign;
  const Truth& truth = campaign.truth;
  constexpr int kSeeds = testing::Repetitions(300);
  int bandwidths = 0;
  int latencies = 0;
  int reductions = 0;
  int told = 0;
  double worst_bandwidth = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random({seed, 99});
    const CollectiveFit fit = FitOf(Measured(campaign, random), truth.algorithm);
    const auto holds = [](const FittedCoefficient& fitted, double value) {
      return fitted.lower <= value && value <= fitted.upper ? 1 : 0;
    };
    bandwidths += holds(fit.bandwidth, truth.bandwidth);
    latencies += holds(fit.latency, truth.latency);
    told += fit.reduction.is_told ? 1 : 0;
    reductions += holds(fit.reduction, truth.addition);
    worst_bandwidth =
        std::max(worst_bandwidth, std::abs(fit.bandwidth.value / truth.bandwidth - 1));
  }
  std::printf("%s: bandwidth %d, latency %d, reduction %d of %d; worst bandwidth %.1f %% off\n",
              GetParam().name, bandwidths, latencies, reductions, kSeeds, 100 * worst_bandwidth);
  STEPCAST_SKIP_SHARES_UNDER_SANITIZERS();
  EXPECT_GE(bandwidths, 0.9 * kSeeds);
  EXPECT_GE(latencies, 0.9 * kSeeds);
  EXPECT_GE(reductions, 0.9 * kSeeds);
  const bool is_ring_of_one_kind =
      truth.algorithm == CollectiveAlgorithm::kRing && campaign.kinds.size() == 1;
  EXPECT_EQ(told, is_ring_of_one_kind ? 0 : kSeeds);
}

const std::vector<Collective> kBoth = {Collective::kAllReduce, Collective::kAllGather};
constexpr Truth kGloo{
    .algorithm = CollectiveAlgorithm::kGloo, .latency = 60e-6, .bandwidth = 1.2e8};
constexpr Truth kGlooAdding{.algorithm = CollectiveAlgorithm::kGloo,
                            .latency = 60e-6,
                            .bandwidth = 1.2e8,
                            .addition = 3e-9};

INSTANTIATE_TEST_SUITE_P(
    Campaigns, CoverageTest,
    ::testing::Values(
        CoverageCase{"Ring", {.noise = 0.05}},
        CoverageCase{"RingTenthOff", {.noise = 0.05, .outlier_share = 0.1}},
        CoverageCase{"RingFifthOff", {.noise = 0.05, .outlier_share = 0.2}},
        CoverageCase{"RingOneSizeOfJob",
                     {.workers = {8}, .sizes = 20, .noise = 0.05, .outlier_share = 0.2}},
        CoverageCase{"RingSixPoints", {.workers = {4}, .sizes = 6, .noise = 0.05}},
        CoverageCase{
            "RingAdding",
            {.truth = {.addition = 3e-10}, .kinds = kBoth, .noise = 0.05, .outlier_share = 0.1}},
        CoverageCase{"RingNothingToAdd", {.kinds = kBoth, .noise = 0.05, .outlier_share = 0.1}},
        CoverageCase{"RingNoLatency",
                     {.truth = {.latency = 0}, .noise = 0.05, .outlier_share = 0.1}},
        CoverageCase{"Gloo",
                     {.truth = kGloo,
                      .workers = {2, 3, 4, 6},
                      .sizes = 8,
                      .noise = 0.03,
                      .outlier_share = 0.1}},
        CoverageCase{"GlooAdding",
                     {.truth = kGlooAdding,
                      .workers = {2, 3, 4, 6},
                      .sizes = 8,
                      .noise = 0.03,
                      .outlier_share = 0.2}}),
    [](const auto& param) { return param.param.name; });

// Medians of six all-reduces of gloo after a barrier, by rate of the link; two series of each.
std::vector<MeasuredCollective> RealAllReduces(int64_t rate) {
  std::vector<MeasuredCollective> points;
  const nlohmann::json rows =
      testing::ReadJsonFile(STEPCAST_SOURCE_DIR "/tests/data/ddp/allreduce.json");
  for (const nlohmann::json& row : rows) {
    if (row.at("at_once") != 1 || row.at("rate") != rate) continue;
    points.push_back(
        {.workers = row.at("workers"), .size_bytes = row.at("bytes"), .seconds = row.at("median")});
  }
  return points;
}

std::vector<MeasuredCollective> Of(const std::vector<MeasuredCollective>& points,
                                   int32_t least_workers, int32_t most_workers,
                                   int64_t least_bytes) {
  std::vector<MeasuredCollective> kept;
  std::copy_if(points.begin(), points.end(), std::back_inserter(kept), [&](const auto& m) {
    return m.workers >= least_workers && m.workers <= most_workers && m.size_bytes >= least_bytes;
  });
  return kept;
}

// Mean and largest of |predicted - measured| / measured.
struct Errors {
  double mean = 0;
  double worst = 0;
};
Errors ErrorsOf(const CollectiveFit& fit, const std::vector<MeasuredCollective>& points) {
  const Truth fitted{.algorithm = fit.algorithm,
                     .latency = fit.latency.value,
                     .bandwidth = fit.bandwidth.value,
                     .addition = fit.reduction.value};
  Errors errors;
  for (const MeasuredCollective& m : points) {
    const double error = std::abs(SecondsOf(fitted, m) / m.seconds - 1);
    errors.mean += error / static_cast<double>(points.size());
    errors.worst = std::max(errors.worst, error);
  }
  return errors;
}

TEST(RealCollectivesTest, FittedTimesAreNearThoseThatWereMeasured) {
  constexpr int64_t kBucket = 1 << 18;
  for (const int64_t rate : {1'000'000'000, 500'000'000}) {
    const std::vector<MeasuredCollective> all = RealAllReduces(rate);
    ASSERT_EQ(all.size(), 48);
    const std::vector<MeasuredCollective> buckets = Of(all, 2, 6, kBucket);
    const double payload = 0.9564 * static_cast<double>(rate) / 8;  // 1500 of 1568.4 bytes a frame
    for (const auto algorithm : {CollectiveAlgorithm::kRing, CollectiveAlgorithm::kGloo}) {
      const CollectiveFit fit = FitOf(buckets, algorithm);
      const Errors errors = ErrorsOf(fit, buckets);
      const Errors small = ErrorsOf(FitOf(all, algorithm), all);
      std::printf(
          "%s, %d Mbit/s: %.2f MB/s, %.0f us, %.2f ns a byte; from 256 KiB on %.1f %% off, "
          "worst %.1f %%; fitted to all sizes %.1f %%, worst %.1f %%\n",
          NameOf(algorithm), static_cast<int>(rate / 1'000'000), fit.bandwidth.value / 1e6,
          1e6 * fit.latency.value, 1e9 * fit.reduction.value, 100 * errors.mean, 100 * errors.worst,
          100 * small.mean, 100 * small.worst);
      EXPECT_NEAR(fit.bandwidth.value / payload, 1, 0.06);
      EXPECT_LT(errors.mean, 0.045);
      EXPECT_LT(errors.worst, 0.25);
    }
  }
}

TEST(RealCollectivesTest, TwoWorkersAloneMakeLargerJobsTooFast) {
  constexpr int64_t kBucket = 1 << 18;
  for (const int64_t rate : {1'000'000'000, 500'000'000}) {
    const std::vector<MeasuredCollective> all = RealAllReduces(rate);
    const std::vector<MeasuredCollective> six = Of(all, 6, 6, kBucket);
    const CollectiveFit two = FitOf(Of(all, 2, 2, kBucket), CollectiveAlgorithm::kGloo);
    const CollectiveFit four = FitOf(Of(all, 2, 4, kBucket), CollectiveAlgorithm::kGloo);
    const Errors by_two = ErrorsOf(two, six);
    const Errors by_four = ErrorsOf(four, six);
    std::printf(
        "%d Mbit/s, six workers by a fit to two: %.1f %%, worst %.1f %%; by one to two to "
        "four: %.1f %%, worst %.1f %%\n",
        static_cast<int>(rate / 1'000'000), 100 * by_two.mean, 100 * by_two.worst,
        100 * by_four.mean, 100 * by_four.worst);
    EXPECT_THAT(ReasonsOf(two), Contains(Reason::kTwoWorkersOnly));
    EXPECT_LT(by_four.mean, by_two.mean);
  }
}

auto FaultAt(const std::string& field, const std::string& says) {
  return AllOf(Field(&Fault::field, field), Field(&Fault::description, HasSubstr(says)));
}

std::vector<Fault> FaultsOf(const CollectiveFitDraft& draft) {
  const absl::Status status = ResolveCollectiveFit(draft).status();
  EXPECT_EQ(DetailsOf(status).reason, "REQUEST_INVALID");
  return DetailsOf(status).faults;
}

const std::vector<MeasuredCollective> kThree = {
    {.workers = 2, .size_bytes = 1000, .seconds = 1e-3},
    {.workers = 2, .size_bytes = 2000, .seconds = 1.5e-3},
    {.workers = 4, .size_bytes = 3000, .seconds = 3e-3}};

TEST(CollectiveFitRequestTest, RefusesWhatNoFitIsMadeOf) {
  EXPECT_THAT(FaultsOf({}), ElementsAre(FaultAt("measurements", "0 are too few")));
  EXPECT_THAT(FaultsOf({.measurements = {kThree[0], kThree[1]}}),
              ElementsAre(FaultAt("measurements", "2 are too few")));
  EXPECT_THAT(FaultsOf({.measurements = {kThree[0], kThree[0], kThree[0]}}),
              ElementsAre(FaultAt("measurements", "all are of 1000 bytes")));
  EXPECT_THAT(FaultsOf({.measurements = std::vector(kMaxCollectiveMeasurements + 1, kThree[0])}),
              ElementsAre(FaultAt("measurements", "10001 are more than 10000")));
  for (const auto algorithm :
       {CollectiveAlgorithm::kHierarchical, CollectiveAlgorithm::kHalvingDoubling,
        CollectiveAlgorithm::kTree, CollectiveAlgorithm::kMeasured, CollectiveAlgorithm::kNccl}) {
    EXPECT_THAT(FaultsOf({.measurements = kThree, .algorithm = algorithm}),
                ElementsAre(FaultAt("algorithm", NameOf(algorithm))));
  }
}

TEST(CollectiveFitRequestTest, NamesEveryNumberThatIsOutOfBounds) {
  std::vector<MeasuredCollective> points = kThree;
  points[0].kind = Collective::kUnspecified;
  points[0].workers = 1;
  points[1].size_bytes = 0;
  points[1].seconds = std::numeric_limits<double>::quiet_NaN();
  points[2].seconds = 0;
  EXPECT_THAT(FaultsOf({.measurements = points, .confidence_level = 1, .workers_per_node = 0}),
              ElementsAre(FaultAt("confidence_level", "1 is not above 0 and below 1"),
                          FaultAt("workers_per_node", "0"), FaultAt("measurements[0].kind", "kind"),
                          FaultAt("measurements[0].workers", "1 is not from 2"),
                          FaultAt("measurements[1].size_bytes", "0 is not from 1"),
                          FaultAt("measurements[1].seconds", "nan"),
                          FaultAt("measurements[2].seconds", "0 is not from")));
  points = kThree;
  points[1].seconds = std::numeric_limits<double>::infinity();
  EXPECT_THAT(FaultsOf({.measurements = points}),
              ElementsAre(FaultAt("measurements[1].seconds", "inf")));
}

TEST(CollectiveFitRequestTest, LinksInsideNodesAndBetweenThemAreFittedApart) {
  EXPECT_THAT(FaultsOf({.measurements = kThree, .workers_per_node = 2}),
              ElementsAre(FaultAt("measurements[2].workers", "4 beside 2 with 2 on a node")));
  std::vector<MeasuredCollective> points = kThree;
  for (MeasuredCollective& m : points) m.workers *= 4;
  points[1].workers = 9;
  EXPECT_THAT(FaultsOf({.measurements = points, .workers_per_node = 4}),
              ElementsAre(FaultAt("measurements[1].workers", "9 do not fill nodes of 4")));
  points[1].workers = 8;
  const auto between = ResolveCollectiveFit({.measurements = points, .workers_per_node = 4});
  ASSERT_TRUE(between.ok()) << between.status();
  EXPECT_FALSE(FitCollectives(*between, NeverStop)->is_inside_node);
  const auto inside = ResolveCollectiveFit({.measurements = kThree, .workers_per_node = 4});
  ASSERT_TRUE(inside.ok()) << inside.status();
  EXPECT_TRUE(FitCollectives(*inside, NeverStop)->is_inside_node);
}

TEST(CollectiveFitRequestTest, ExtremesHaveFiniteAnswers) {
  Random random({8});
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<MeasuredCollective> points;
    for (uint64_t n = 3 + random.Below(20); n > 0; --n) {
      points.push_back(
          {.kind = static_cast<Collective>(1 + random.Below(4)),
           .workers = static_cast<int32_t>(
               2 + random.Below(1 + (kMaxMeasuredWorkers - 2) / (1 + random.Below(100'000)))),
           .size_bytes = int64_t{1} << random.Below(54),
           .seconds = std::pow(10, -12 + 16.9 * random.Unit())});
    }
    for (const auto algorithm : {CollectiveAlgorithm::kRing, CollectiveAlgorithm::kGloo}) {
      const auto query = ResolveCollectiveFit({.measurements = points, .algorithm = algorithm});
      if (!query.ok()) continue;
      const CollectiveFit fit = FitCollectives(*query, NeverStop).value();
      for (const FittedCoefficient* fitted : {&fit.bandwidth, &fit.latency, &fit.reduction}) {
        EXPECT_GE(fitted->value, 0);
        EXPECT_LE(fitted->lower, fitted->upper);
        EXPECT_TRUE(std::isfinite(fitted->upper)) << "seed " << seed;
      }
      EXPECT_TRUE(std::isfinite(fit.relative_residual)) << "seed " << seed;
    }
  }
}

TEST(CollectiveFitRequestTest, StopsWhenTold) {
  const CollectiveFitQuery query = ResolveCollectiveFit({.measurements = kThree}).value();
  EXPECT_EQ(FitCollectives(query, [] { return absl::CancelledError(); }).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stepcast::collective_fit_test
