#include "server/rpc/parsed_bytes.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/support/slice.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/random.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::server::parsed_bytes_test {
namespace {

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
}  // namespace stepcast::server::parsed_bytes_test
