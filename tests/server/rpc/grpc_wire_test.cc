#include "server/rpc/grpc_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "google/rpc/status.pb.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::server::grpc_wire_test {
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

constexpr int64_t kNoLimit = int64_t{1} << 40;

grpc::ByteBuffer BufferOf(const std::string& bytes, size_t slice_bytes = 1 << 20) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes)
    slices.emplace_back(bytes.substr(at, slice_bytes));
  return {slices.data(), slices.size()};
}

TEST(MessageBufferTest, AMessageComesBackThroughAnySlices) {
  v1::ListProfilesRequest message;
  message.set_filter(std::string(5000, 'f'));
  message.set_page_size(7);
  grpc::ByteBuffer buffer;
  ASSERT_TRUE(SerializeMessage(message, buffer).ok());
  for (const size_t slice : {1, 3, 1000, 1 << 20}) {
    v1::ListProfilesRequest back;
    ASSERT_TRUE(ParseMessage(BufferOf(message.SerializeAsString(), slice), kNoLimit, back).ok())
        << slice;
    EXPECT_EQ(back.SerializeAsString(), message.SerializeAsString()) << slice;
  }
  v1::ListProfilesRequest back;
  ASSERT_TRUE(ParseMessage(buffer, kNoLimit, back).ok());
  EXPECT_EQ(back.filter(), message.filter());
}

TEST(MessageBufferTest, AnEmptyBufferIsAnEmptyMessage) {
  v1::ListProfilesRequest message;
  grpc::ByteBuffer buffer;
  ASSERT_TRUE(SerializeMessage(message, buffer).ok());
  EXPECT_TRUE(ParseMessage(buffer, kNoLimit, message).ok());
}

TEST(MessageBufferTest, ABufferThatHoldsAMessageTakesTheNextInItsPlace) {
  grpc::ByteBuffer buffer;
  for (const size_t length : {5000, 3, 0, 2'000'000, 1}) {
    v1::ListProfilesRequest message;
    message.set_filter(std::string(length, 'f'));
    ASSERT_TRUE(SerializeMessage(message, buffer).ok()) << length;
    EXPECT_EQ(buffer.Length(), message.ByteSizeLong());
    v1::ListProfilesRequest back;
    ASSERT_TRUE(ParseMessage(buffer, kNoLimit, back).ok()) << length;
    EXPECT_EQ(back.filter().size(), length);
  }
}

TEST(MessageBufferTest, NoBufferAtAllIsMalformed) {
  v1::ListProfilesRequest message;
  EXPECT_EQ(DetailsOf(ParseMessage(grpc::ByteBuffer(), kNoLimit, message)).reason,
            "REQUEST_MALFORMED");
}

TEST(MessageBufferTest, TheLimitItselfIsAllowed) {
  v1::ListProfilesRequest message;
  message.set_filter(std::string(100, 'f'));
  const std::string bytes = message.SerializeAsString();
  const auto size = static_cast<int64_t>(bytes.size());
  EXPECT_TRUE(ParseMessage(BufferOf(bytes), size, message).ok());
  const absl::Status status = ParseMessage(BufferOf(bytes), size - 1, message);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(status).reason, "MESSAGE_TOO_LARGE");
  EXPECT_EQ(DetailsOf(status).quota_subject, "max_message_bytes");
  EXPECT_THAT(ParseMessage(BufferOf(bytes), size - 1, message, "question_bytes").message(),
              testing::HasSubstr("the limit question_bytes = "));
}

TEST(MessageBufferTest, AnyBytesAreAMessageOrMalformed) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random({seed});
    std::string bytes(1 + random.Below(64), ' ');
    for (char& c : bytes) c = static_cast<char>(random.Below(256));
    v1::CreateProfileRequest message;
    const absl::Status status =
        ParseMessage(BufferOf(bytes, 1 + random.Below(64)), kNoLimit, message);
    if (status.ok()) continue;
    EXPECT_EQ(DetailsOf(status).reason, "REQUEST_MALFORMED") << "seed " << seed;
  }
}

TEST(MessageBufferTest, DeepNestingIsRefused) {
  v1::CreateProfileRequest message;
  EXPECT_FALSE(ParseMessage(BufferOf(std::string(100'000, '\xAB')), kNoLimit, message).ok());
}

}  // namespace
}  // namespace stepcast::server::grpc_wire_test
