// FitParsingOverhead through the real server: answered, answered alike, and refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/app/test_server.h"

namespace stepcast::server::calibration_end_to_end_test {
namespace {

using ::testing::ElementsAre;

v1::FitParsingOverheadRequest Measured(int count) {
  v1::FitParsingOverheadRequest request;
  for (int i = 0; i < count; ++i) {
    v1::ParsingMeasurement& measurement = *request.add_measurements();
    measurement.set_size_bytes(int64_t{1000} * (i + 1));
    measurement.set_seconds(1e-6 + 2e-9 * 1000 * (i + 1) + (i % 10 == 9 ? 1 : 0));
  }
  return request;
}

class CalibrationEndToEndTest : public ::testing::Test {
 protected:
  grpc::Status Fit(const v1::FitParsingOverheadRequest& request) {
    grpc::ClientContext context;
    return server_.predictions().FitParsingOverhead(&context, request, &reply_);
  }

  TestServer server_;
  v1::FitParsingOverheadResponse reply_;
};

TEST_F(CalibrationEndToEndTest, TheLineIsFoundAndItsOutliersAreCounted) {
  const grpc::Status status = Fit(Measured(100));
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_NEAR(reply_.seconds_per_byte(), 2e-9, 1e-15);
  EXPECT_NEAR(reply_.seconds(), 1e-6, 1e-10);
  EXPECT_EQ(reply_.outliers(), 10);
  EXPECT_EQ(reply_.seconds_interval().level(), 0.95);
  EXPECT_GT(reply_.least_squares().seconds(), 0.01);
  EXPECT_FALSE(reply_.engine_version().empty());
}

TEST_F(CalibrationEndToEndTest, AnEqualCallHasTheSameAnswer) {
  ASSERT_TRUE(Fit(Measured(100)).ok());
  const std::string first = reply_.SerializeAsString();
  ASSERT_TRUE(Fit(Measured(100)).ok());
  EXPECT_EQ(reply_.SerializeAsString(), first);
  ASSERT_TRUE(Fit(Measured(101)).ok());
  EXPECT_NE(reply_.SerializeAsString(), first);
}

TEST_F(CalibrationEndToEndTest, WhatIsNoLineIsRefused) {
  const grpc::Status status = Fit(Measured(2));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonOf(status), "REQUEST_INVALID");
  EXPECT_THAT(FieldsOf(status), ElementsAre("measurements"));
}

}  // namespace
}  // namespace stepcast::server::calibration_end_to_end_test
