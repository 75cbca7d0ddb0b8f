#include "server/rpc/grpc_wire.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/support/slice.h>
#include <gtest/gtest.h>

#include <string>
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

constexpr int64_t kAll = int64_t{1} << 60;

int64_t Parsed(const google::protobuf::Message& message, int64_t enough = kAll) {
  return ParsedBytes(message.SerializeAsString(), *message.GetDescriptor(), enough);
}

v1::Profile ProfileOf(int operations) {
  v1::Profile profile;
  for (int i = 0; i < operations; ++i) profile.add_operations();
  return profile;
}

TEST(ParsedBytesTest, EmptyMessagesCountAsWhatTheyBecome) {
  const v1::Profile profile = ProfileOf(1000);
  EXPECT_EQ(profile.ByteSizeLong(), 2000u);
  EXPECT_GE(Parsed(profile), static_cast<int64_t>(profile.SpaceUsedLong()));
  EXPECT_LE(Parsed(profile), 500 * 1000);
  EXPECT_NEAR(static_cast<double>(Parsed(ProfileOf(2000)) - Parsed(profile)), 256'000, 1);
}

TEST(ParsedBytesTest, PackedNumbersCountAsNumbers) {
  v1::Profile profile;
  v1::Step& step = *profile.add_steps();
  for (int i = 0; i < 1000; ++i) step.add_start_ns(0);
  EXPECT_GE(Parsed(profile), 8000);
  EXPECT_LE(Parsed(profile), 9000);
}

TEST(ParsedBytesTest, TextAndUnknownFieldsCountAsTheirBytes) {
  v1::CreateProfileRequest request;
  request.set_profile_id(std::string(10'000, 'a'));
  EXPECT_GE(Parsed(request), 10'000);
  EXPECT_LE(Parsed(request), 11'000);
  const std::string unknown = "\xFA\x3F\x83\x01" + std::string(131, 'b');
  EXPECT_LE(ParsedBytes(unknown, *request.GetDescriptor(), kAll), 500);
  // Unknown numbers, and groups, one in the other and one after the other, are kept by the message.
  for (const std::string each : {"\x78\x01", "\x7B\x7C", "\x7B\x7B\x7C\x7C"}) {
    std::string flood = "\x73";
    for (int i = 0; i < 1000; ++i) flood += each;
    flood += "\x74";
    v1::CreateProfileRequest message;
    ASSERT_TRUE(message.ParseFromString(flood));
    EXPECT_GE(ParsedBytes(flood, *message.GetDescriptor(), kAll),
              static_cast<int64_t>(message.SpaceUsedLong()));
  }
}

TEST(ParsedBytesTest, SlicesMakeNoDifference) {
  v1::CreateProfileRequest request;
  *request.mutable_profile() = ProfileOf(50);
  request.mutable_profile()->set_model("m");
  const std::string bytes = request.SerializeAsString();
  std::vector<grpc::Slice> slices;
  for (const char c : bytes) slices.emplace_back(&c, 1);
  EXPECT_EQ(
      ParsedBytes(grpc::ByteBuffer(slices.data(), slices.size()), *request.GetDescriptor(), kAll),
      Parsed(request));
  EXPECT_EQ(ParsedBytes(grpc::ByteBuffer(), *request.GetDescriptor(), kAll), 0);
}

TEST(ParsedBytesTest, ItEndsSoonAfterEnough) {
  EXPECT_GT(Parsed(ProfileOf(100'000), 10'000), 10'000);
  EXPECT_LT(Parsed(ProfileOf(100'000), 10'000), 11'000);
}

TEST(ParsedBytesTest, AnyBytesHaveAnEnd) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random({seed});
    std::string bytes = ProfileOf(5).SerializeAsString();
    for (int i = 0; i < 20; ++i) bytes += static_cast<char>(random.Below(256));
    for (int i = 0; i < 3; ++i)
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    EXPECT_LT(ParsedBytes(bytes, *v1::Profile::descriptor(), kAll), 300 * 60) << "seed " << seed;
  }
  EXPECT_LT(ParsedBytes(std::string(100'000, '\x4A'), *v1::Profile::descriptor(), kAll), 200'000);
}

TEST(ParsedBytesTest, TextCountsItsBracketsAndSeparators) {
  const v1::Profile profile = ProfileOf(1000);
  std::string json;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(profile, &json).ok());
  EXPECT_GE(ParsedBytesOfText(json), Parsed(profile));
  EXPECT_LE(ParsedBytesOfText(json), 2 * Parsed(profile));
  EXPECT_GE(ParsedBytesOfText(profile.DebugString()), Parsed(profile));
}

}  // namespace
}  // namespace stepcast::server::grpc_wire_test
