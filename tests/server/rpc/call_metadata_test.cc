#include "server/rpc/call_metadata.h"

#include <string>

#include "gtest/gtest.h"

namespace stepcast::server::call_metadata_test {
namespace {

TEST(CallMetadataTest, TheTraceIsTheSecondPartOfATraceparent) {
  EXPECT_EQ(TraceIdIn("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            "4bf92f3577b34da6a3ce929d0e0e4736");
}

TEST(CallMetadataTest, ALaterVersionMayGoOnAndTheFirstMayNot) {
  EXPECT_EQ(TraceIdIn("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"),
            "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(TraceIdIn("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"), "");
  EXPECT_EQ(TraceIdIn("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more"), "");
}

TEST(CallMetadataTest, WhatIsNoTraceparentIsNone) {
  for (const char* text : {"", "00", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                           "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e473\"-00f067aa0ba902b7-01"}) {
    EXPECT_EQ(TraceIdIn(text), "") << text;
  }
}

TEST(CallMetadataTest, ARequestIdIsPrintableAndNotTooLong) {
  EXPECT_EQ(CleanRequestId("job-17/a"), "job-17/a");
  EXPECT_EQ(CleanRequestId("two words"), "");
  EXPECT_EQ(CleanRequestId("line\nbreak"), "");
  EXPECT_EQ(CleanRequestId(std::string(kMaxRequestIdBytes, 'x')).size(), kMaxRequestIdBytes);
  EXPECT_EQ(CleanRequestId(std::string(kMaxRequestIdBytes + 1, 'x')), "");
}

}  // namespace
}  // namespace stepcast::server::call_metadata_test
