#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/texts/answer_texts.h"

#include "tests/client/support/text_proto.h"

namespace stepcast::client::profile_fit_test {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::FitParsingOverheadResponse Fit() {
  return Proto<v1::FitParsingOverheadResponse>(R"pb(
    seconds_per_byte: 2.5e-10
    seconds: 40e-6
    seconds_per_byte_interval { lower: 2e-10 upper: 3e-10 }
    seconds_interval { lower: 38e-6 upper: 42e-6 }
    residual_seconds: 1.5e-6
    relative_residual: 0.03
    outliers: 4
    least_squares { seconds_per_byte: 1e-9 seconds: -1e-6 })pb");
}

// Two measurements, of which the first took so long.
v1::FitParsingOverheadRequest Measured(double seconds) {
  auto request = Proto<v1::FitParsingOverheadRequest>(
      "measurements { size_bytes: 1 } measurements { size_bytes: 2 seconds: 2 }");
  request.mutable_measurements(0)->set_seconds(seconds);
  return request;
}

TEST(FitTextTest, SaysTheLineHowSureItIsAndHowToUseIt) {
  EXPECT_EQ(FitText(Measured(1), Fit()),
            "parsing: 40 us a tensor (38 to 42) and 250 ns a kB (200 to 300)\n"
            "         of 2 measurements half are within 1.5 us, or 3%, of that; 4 are outliers\n"
            "         plain least squares would say -1 us and 1000 ns a kB\n"
            "         use it with --parsing-seconds 4e-05 --parsing-seconds-per-byte 2.5e-10\n");
}

TEST(FitTextTest, WarnsOfMeasurementsThatAreNothing) {
  EXPECT_THAT(FitText(Measured(0), Fit()), HasSubstr("1 took no time at all"));
  EXPECT_THAT(FitText(Measured(1), Fit()), Not(HasSubstr("no time at all")));
}

v1::FitCollectivesResponse FittedLink() {
  return Proto<v1::FitCollectivesResponse>(R"pb(
    bandwidth_bytes_per_second: 1.1578e8
    latency_seconds: 99.3e-6
    bandwidth_interval { lower: 1.142e8 upper: 1.173e8 level: 0.95 }
    latency_interval { lower: 93.1e-6 upper: 105e-6 level: 0.95 }
    relative_residual: 0.019
    outliers: 1
    by_workers { workers: 2 measurements: 8 relative_residual: 0.026 bias: -0.023 }
    by_workers { workers: 4 measurements: 4 outliers: 1 relative_residual: 0.015 bias: 0.01 }
    warnings { reason: REDUCTION_NOT_TOLD message: "reduction 0: because" }
    scenario {
      bandwidth_bytes_per_second: 1.1578e8
      all_reduce { algorithm: GLOO latency_seconds: 99.3e-6 reduction_seconds_per_byte: 0 }
    })pb");
}

TEST(CollectiveFitTextTest, SaysTheLinkHowSureItIsAndHowToUseIt) {
  v1::FitCollectivesRequest request;
  for (int i = 0; i < 12; ++i) request.add_measurements();
  EXPECT_EQ(CollectiveFitText(request, FittedLink()),
            "                          fitted              95% interval\n"
            "bandwidth             115.8 MB/s  114.2 MB/s .. 117.3 MB/s\n"
            "latency of a message    99.30 us      93.10 us .. 105.0 us\n"
            "adding a byte           not told\n"
            "\n"
            "workers  measurements  outliers  half within  median\n"
            "      2             8         0         2.6%   -2.3%\n"
            "      4             4         1         1.5%   +1.0%\n"
            "    all            12         1         1.9%\n"
            "warning: reduction 0: because\n"
            "use it with --algorithm gloo --bandwidth 115780000B/s --latency 99300ns\n");
}

TEST(CollectiveFitTextTest, ALinkInsideANodeHasItsOwnFlags) {
  v1::FitCollectivesResponse response = FittedLink();
  *response.mutable_scenario() = Proto<v1::Scenario>(R"pb(
    all_reduce {
      algorithm: RING
      workers_per_node: 8
      intra_node_bandwidth_bytes_per_second: 3e11
      intra_node_latency_seconds: 2e-6
      reduction_seconds_per_byte: 1.5e-12
    })pb");
  EXPECT_THAT(CollectiveFitText({}, response),
              HasSubstr("use it with --algorithm ring --workers-per-node 8 --intra-bandwidth "
                        "300000000000B/s --intra-latency 2000ns --reduction-seconds-per-byte "
                        "1.5e-12\n"));
}

TEST(CollectiveFitTextTest, ABandwidthThatIsNotToldHasNoFlag) {
  v1::FitCollectivesResponse response = FittedLink();
  response.clear_bandwidth_bytes_per_second();
  response.mutable_scenario()->clear_bandwidth_bytes_per_second();
  EXPECT_THAT(CollectiveFitText({}, response), HasSubstr("not told"));
  EXPECT_THAT(CollectiveFitText({}, response), Not(HasSubstr("--bandwidth")));
}

v1::FitContentionResponse FittedContention() {
  return Proto<v1::FitContentionResponse>(R"pb(
    contention {
      alpha1: 1
      alpha2: 1e-4
      overlapped { gamma1: 8e9 gamma2: 5e9 gamma3: 0.02 }
      alone { gamma1: 1e10 gamma2: 4e9 gamma3: 0.03 }
    }
    alpha1_interval { lower: 0.99 upper: 1.01 level: 0.95 }
    alpha2_interval { lower: 9e-5 upper: 1.1e-4 level: 0.95 }
    overlapped {
      gamma1_interval { lower: 7e9 upper: 9e9 }
      gamma2_interval { lower: 4e9 upper: 6e9 }
      gamma3_interval { lower: 0.01 upper: 0.03 }
      is_told: true
      outliers: 1
      relative_residual: 0.02
    }
    alone { outliers: 2 relative_residual: 0.01 }
    assumptions {})pb");
}

TEST(ContentionFitTextTest, SaysTheConstantsHowSureTheyAreAndHowToUseThem) {
  EXPECT_EQ(ContentionFitText(FittedContention(), "contention.json"),
            "                              fitted      95% interval\n"
            "alpha1, speed of computation       1      0.99 .. 1.01\n"
            "alpha2, taken by a thread     0.0001  9e-05 .. 0.00011\n"
            "overlapped gamma1, bytes/s     8e+09    7e+09 .. 9e+09\n"
            "overlapped gamma2, bytes/s     5e+09    4e+09 .. 6e+09\n"
            "overlapped gamma3               0.02      0.01 .. 0.03\n"
            "alone gamma1, bytes/s          1e+10    not told apart\n"
            "alone gamma2, bytes/s          4e+09    not told apart\n"
            "alone gamma3                    0.03    not told apart\n"
            "half of the transfers beside computation are within 2.0%; 1 is an outlier\n"
            "half of the transfers alone are within 1.0%; 2 are outliers\n"
            "LIBRA's bound holds: what it assumes does at the threads measured\n"
            "use it with tune --contention contention.json\n");
}

TEST(ContentionFitTextTest, AVoidBoundAndConstantsOfNoJobAreWarnedOf) {
  v1::FitContentionResponse response = FittedContention();
  response.mutable_assumptions()->set_guarantee_void_because("too fast");
  EXPECT_THAT(ContentionFitText(response, ""),
              HasSubstr("\nwarning: LIBRA's bound is void: too fast\n--save FILE writes"));
  response.set_unusable_because("contention.alpha2: 3 halts");
  EXPECT_THAT(ContentionFitText(response, ""),
              HasSubstr("\nwarning: of no job: contention.alpha2: 3 halts\n"));
}

}  // namespace
}  // namespace stepcast::client::profile_fit_test
