#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/answer_texts.h"

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

}  // namespace
}  // namespace stepcast::client::profile_fit_test
