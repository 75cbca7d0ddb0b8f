#include "server/convert/calibration_convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::server::calibration_convert_test {
namespace {

using ::testing::ElementsAre;

TEST(CalibrationConvertTest, FitParsingOverheadCarriesEverything) {
  v1::FitParsingOverheadRequest wire;
  for (const double seconds : {0.5, 0.75}) {
    v1::ParsingMeasurement& measurement = *wire.add_measurements();
    measurement.set_size_bytes(static_cast<int64_t>(1000 * seconds));
    measurement.set_seconds(seconds);
  }
  EXPECT_THAT(FromWire(wire).draft.measurements,
              ElementsAre(ParsingMeasurement{500, 0.5}, ParsingMeasurement{750, 0.75}));
  EXPECT_EQ(FromWire(wire).draft.confidence_level, std::nullopt);
  wire.set_confidence_level(0);
  EXPECT_EQ(FromWire(wire).draft.confidence_level, 0);
}

TEST(CalibrationConvertTest, AFitCarriesEverything) {
  FitParsingOverheadAnswer answer;
  answer.answer = {.fit = {.line = {.slope = 2, .offset = 10},
                           .half_width = {.slope = 3, .offset = 4},
                           .residual = 5,
                           .relative_residual = 6,
                           .outliers = 7},
                   .least_squares = {.slope = 8, .offset = -9},
                   .confidence_level = 0.9};
  const v1::FitParsingOverheadResponse wire = ToWire(answer);
  EXPECT_EQ(wire.seconds_per_byte(), 2);
  EXPECT_EQ(wire.seconds(), 10);
  EXPECT_EQ(wire.seconds_per_byte_interval().lower(), 0);
  EXPECT_EQ(wire.seconds_per_byte_interval().upper(), 5);
  EXPECT_EQ(wire.seconds_per_byte_interval().level(), 0.9);
  EXPECT_EQ(wire.seconds_interval().lower(), 6);
  EXPECT_EQ(wire.seconds_interval().upper(), 14);
  EXPECT_EQ(wire.residual_seconds(), 5);
  EXPECT_EQ(wire.relative_residual(), 6);
  EXPECT_EQ(wire.outliers(), 7);
  EXPECT_EQ(wire.least_squares().seconds_per_byte(), 8);
  EXPECT_EQ(wire.least_squares().seconds(), -9);
}

}  // namespace
}  // namespace stepcast::server::calibration_convert_test
