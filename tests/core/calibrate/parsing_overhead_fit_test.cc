#include "core/calibrate/parsing_overhead_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace stepcast::parsing_overhead_fit_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

auto FaultAt(const std::string& field, const std::string& says) {
  return AllOf(Field(&Fault::field, field), Field(&Fault::description, HasSubstr(says)));
}

std::vector<Fault> FaultsOf(const ParsingOverheadDraft& draft) {
  const absl::Status status = ResolveParsingOverhead(draft).status();
  EXPECT_EQ(DetailsOf(status).reason, "REQUEST_INVALID");
  return DetailsOf(status).faults;
}

const std::vector<ParsingMeasurement> kThree = {{1000, 3e-6}, {2000, 5e-6}, {3000, 7e-6}};

TEST(ParsingOverheadFitTest, ThreeMeasurementsOnALineAreThatLine) {
  const ParsingOverheadFit fit =
      FitParsingOverhead(ResolveParsingOverhead({.measurements = kThree}).value(), NeverStop)
          .value();
  EXPECT_NEAR(fit.fit.line.slope, 2e-9, 1e-20);
  EXPECT_NEAR(fit.fit.line.offset, 1e-6, 1e-17);
  EXPECT_NEAR(fit.least_squares.slope, 2e-9, 1e-20);
  EXPECT_EQ(fit.confidence_level, 0.95);
  EXPECT_NEAR(fit.fit.residual, 0, 1e-18);
}

TEST(ParsingOverheadFitTest, RefusesWhatIsNoLine) {
  EXPECT_THAT(FaultsOf({.measurements = {{1, 1}, {2, 2}}}),
              ElementsAre(FaultAt("measurements", "2 are too few")));
  EXPECT_THAT(FaultsOf({.measurements = {{8, 1}, {8, 2}, {8, 3}}}),
              ElementsAre(FaultAt("measurements", "all are of 8 bytes")));
  EXPECT_THAT(
      FaultsOf({.measurements = std::vector<ParsingMeasurement>(kMaxParsingMeasurements + 1)}),
      ElementsAre(FaultAt("measurements", "100001 are more than 100000")));
}

TEST(ParsingOverheadFitTest, NamesEveryNumberThatIsOutOfBounds) {
  std::vector<ParsingMeasurement> measurements = kThree;
  measurements[0].size_bytes = -1;
  measurements[1].seconds = -1e-9;
  measurements[2].seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(FaultsOf({.measurements = measurements, .confidence_level = 1}),
              ElementsAre(FaultAt("confidence_level", "1 is not above 0 and below 1"),
                          FaultAt("measurements[0].size_bytes", "-1"),
                          FaultAt("measurements[1].seconds", "-1e-09"),
                          FaultAt("measurements[2].seconds", "nan")));
  measurements = kThree;
  measurements[1].seconds = std::numeric_limits<double>::infinity();
  EXPECT_THAT(FaultsOf({.measurements = measurements}),
              ElementsAre(FaultAt("measurements[1].seconds", "inf")));
}

TEST(ParsingOverheadFitTest, StopsWhenTold) {
  const ParsingOverheadQuery query = ResolveParsingOverhead({.measurements = kThree}).value();
  EXPECT_EQ(FitParsingOverhead(query, [] { return absl::CancelledError(); }).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stepcast::parsing_overhead_fit_test
