#include "server/rpc/grpc_status.h"

#include <gtest/gtest.h>

#include "google/rpc/status.pb.h"

#include "core/base/error.h"

namespace stepcast::server::grpc_status_test {
namespace {

TEST(GrpcStatusTest, OkIsOkWithoutDetails) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).error_details().empty());
}

TEST(GrpcStatusTest, EveryCodeIsItselfAndHasDetailsOfTheSameCode) {
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status =
        ToGrpcStatus(absl::Status(static_cast<absl::StatusCode>(code), "why"));
    EXPECT_EQ(static_cast<int>(status.error_code()), code);
    EXPECT_EQ(status.error_message(), "why");
    google::rpc::Status wire;
    ASSERT_TRUE(wire.ParseFromString(status.error_details()));
    EXPECT_EQ(wire.code(), code);
    EXPECT_GE(wire.details_size(), 1);
  }
}

}  // namespace
}  // namespace stepcast::server::grpc_status_test
