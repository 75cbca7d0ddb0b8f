// FitParsingOverhead and FitCollectives through the real server: answered, answered alike, and
// refused.
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

class CollectivesEndToEndTest : public ::testing::Test {
 protected:
  // 2 (W - 1) (10 us + bytes / (W x 1 GB/s)), each tenth ten times as long.
  static v1::FitCollectivesRequest Benchmark(int count) {
    v1::FitCollectivesRequest request;
    for (int i = 0; i < count; ++i) {
      v1::AllReduce::MeasuredCollective& m = *request.add_measurements();
      m.set_kind(v1::Operation::ALL_REDUCE);
      m.set_workers(2 + i % 3);
      m.set_size_bytes(int64_t{10'000} * (i + 1));
      m.set_seconds(2 * (m.workers() - 1) *
                    (10e-6 + 1e-9 * static_cast<double>(m.size_bytes()) / m.workers()) *
                    (i % 10 == 9 ? 10 : 1));
    }
    return request;
  }

  grpc::Status Fit(const v1::FitCollectivesRequest& request) {
    grpc::ClientContext context;
    return server_.predictions().FitCollectives(&context, request, &reply_);
  }

  TestServer server_;
  v1::FitCollectivesResponse reply_;
};

TEST_F(CollectivesEndToEndTest, TheLinkIsFoundAndItsOutliersAreCounted) {
  const grpc::Status status = Fit(Benchmark(60));
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_NEAR(reply_.bandwidth_bytes_per_second(), 1e9, 1e3);
  EXPECT_NEAR(reply_.latency_seconds(), 10e-6, 1e-10);
  EXPECT_EQ(reply_.outliers(), 6);
  EXPECT_EQ(reply_.by_workers_size(), 3);
  EXPECT_EQ(reply_.scenario().bandwidth_bytes_per_second(), reply_.bandwidth_bytes_per_second());
  EXPECT_FALSE(reply_.engine_version().empty());
}

TEST_F(CollectivesEndToEndTest, AnEqualCallHasTheSameAnswer) {
  ASSERT_TRUE(Fit(Benchmark(60)).ok());
  const std::string first = reply_.SerializeAsString();
  ASSERT_TRUE(Fit(Benchmark(60)).ok());
  EXPECT_EQ(reply_.SerializeAsString(), first);
  ASSERT_TRUE(Fit(Benchmark(61)).ok());
  EXPECT_NE(reply_.SerializeAsString(), first);
}

TEST_F(CollectivesEndToEndTest, WhatNoFitIsMadeOfIsRefused) {
  v1::FitCollectivesRequest request = Benchmark(3);
  request.set_algorithm(v1::AllReduce::TREE);
  request.mutable_measurements(1)->set_workers(1);
  const grpc::Status status = Fit(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonOf(status), "REQUEST_INVALID");
  EXPECT_THAT(FieldsOf(status), ElementsAre("algorithm", "measurements[1].workers"));
}

}  // namespace
}  // namespace stepcast::server::calibration_end_to_end_test
