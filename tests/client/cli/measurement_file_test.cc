#include "client/cli/measurement_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::client::measurement_file_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MeasurementFileTest, SeparatorsTitlesCommentsAndLineEndsMayVary) {
  EXPECT_THAT(ParseMeasurements("size_bytes,seconds\r\n1,0.5\r\n# no\n\n 2 ; 1e-3 \n3\t4").value(),
              ElementsAre(ParsingMeasurement{1, 0.5}, ParsingMeasurement{2, 1e-3},
                          ParsingMeasurement{3, 4}));
  EXPECT_THAT(ParseMeasurements("").value(), ElementsAre());
}

TEST(MeasurementFileTest, WhatIsNoMeasurementIsNamedByItsLine) {
  const auto says = [](const char* text) {
    return std::string(ParseMeasurements(text).status().message());
  };
  EXPECT_THAT(says("1,2\nsize,seconds\n"),
              HasSubstr("line 2 is not \"size_bytes,seconds\": \"size,seconds\""));
  EXPECT_THAT(says("1,2,3"), HasSubstr("line 1"));
  EXPECT_THAT(says("1.5,2"), HasSubstr("\"1.5,2\""));
  EXPECT_THAT(says("1"), HasSubstr("\"1\""));
  EXPECT_THAT(says("1,\x01"), HasSubstr("\\x01"));
}

// What they say is for the service to judge.
TEST(MeasurementFileTest, NumbersThatMakeNoSenseAreStillMeasurements) {
  EXPECT_THAT(ParseMeasurements("-1,-2").value(), ElementsAre(ParsingMeasurement{-1, -2}));
}

TEST(MeasurementFileTest, TellsMeasurementsFromProfiles) {
  EXPECT_TRUE(LooksLikeMeasurements("1000,3e-6"));
  EXPECT_TRUE(LooksLikeMeasurements("# comment\n\nsize_bytes;seconds\n1;2"));
  EXPECT_TRUE(LooksLikeMeasurements("-1,2"));
  EXPECT_FALSE(LooksLikeMeasurements("{\"batchSize\": 1, \"a\": 2}"));
  EXPECT_FALSE(LooksLikeMeasurements("batch_size: 1, model: 2"));
  EXPECT_FALSE(LooksLikeMeasurements(std::string_view("\x0a\x05,abc", 6)));
  EXPECT_FALSE(LooksLikeMeasurements(""));
}

}  // namespace
}  // namespace stepcast::client::measurement_file_test
