#include "server/app/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace stepcast::server::listen_address_test {
namespace {

TEST(ListenAddressTest, OnlyWhatNeverLeavesTheMachineIsLoopback) {
  for (const char* const address : {"127.0.0.1:0", "127.9.9.9:1", "localhost:1", "[::1]:50051"})
    EXPECT_TRUE(IsLoopback(address)) << address;
  for (const char* const address : {"0.0.0.0:0", "[::]:0", "128.0.0.1:1", "10.127.0.0:1",
                                    "localhost.example.com:1", "127.0.0.1.example.com:1"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

TEST(ListenAddressTest, AnAddressHasAHostAndAPort) {
  for (const std::string address : {"127.0.0.1:0", "localhost:65535", "[::1]:50051", "0.0.0.0:1"}) {
    EXPECT_TRUE(CheckListenAddress("--listen", address).ok()) << address;
  }
  for (const std::string address :
       {"", ":", ":1", "host", "host:", "host:x", "host:-1", "host:65536", "::1:50051", "[]:1"}) {
    const absl::Status status = CheckListenAddress("--listen", address);
    EXPECT_EQ(DetailsOf(status).faults.empty() ? "" : DetailsOf(status).faults[0].field, "--listen")
        << address;
  }
}

TEST(ListenAddressTest, ThePortInUseTakesThePlaceOfTheOneAskedFor) {
  EXPECT_EQ(WithPort("127.0.0.1:0", 7), "127.0.0.1:7");
  EXPECT_EQ(WithPort("[::1]:0", 7), "[::1]:7");
}

TEST(ListenAddressTest, AnErrorSaysWhatTheSystemSays) {
  // 192.0.2.0/24 is for documentation (RFC 5737), so no machine has it.
  const absl::Status status = ListenError("192.0.2.1:1");
  EXPECT_EQ(DetailsOf(status).reason, "LISTEN_FAILED");
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("Cannot assign requested address"));
}

}  // namespace
}  // namespace stepcast::server::listen_address_test
