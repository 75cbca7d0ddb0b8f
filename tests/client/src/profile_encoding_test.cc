#include "stepcast/profile_encoding.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "client/src/convert/profile_proto.h"

#include "stepcast/error_details.h"
#include "stepcast/json.h"
#include "tests/client/support/random_message.h"

namespace stepcast::client::profile_encoding_test {
namespace {

using testing::HasSubstr;

TEST(ProfileEncodingTest, EachEncodingIsRecognisedByItsContentAndReadAlike) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 generator(seed);
    v1::Profile message;
    FillRandomly(message, generator, /*all=*/true);
    Profile profile;
    FromProto(message, profile);
    std::string text;
    ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(message, &text));
    const std::string json = ToJson(profile);
    const std::string binary = message.SerializeAsString();

    EXPECT_EQ(DetectProfileEncoding(json), ProfileEncoding::kJson);
    EXPECT_EQ(DetectProfileEncoding(text), ProfileEncoding::kText);
    EXPECT_EQ(DetectProfileEncoding(binary), ProfileEncoding::kBinary);
    for (const std::string& bytes : {json, text, binary}) {
      const absl::StatusOr<Profile> read = ParseProfile(bytes);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(*read, profile);
    }
  }
}

TEST(ProfileEncodingTest, JsonMayHaveEitherSpellingAndLeadingSpace) {
  const absl::StatusOr<Profile> snake = ParseProfile("\n  {\"batch_size\": 3}");
  const absl::StatusOr<Profile> camel = ParseProfile("{\"batchSize\": 3}");
  ASSERT_TRUE(snake.ok()) << snake.status();
  ASSERT_TRUE(camel.ok()) << camel.status();
  EXPECT_EQ(snake->batch_size, 3);
  EXPECT_EQ(*snake, *camel);
}

TEST(ProfileEncodingTest, WhatCannotBeReadSaysWhere) {
  const absl::Status json = ParseProfile("{\"batch\": 3}").status();
  EXPECT_TRUE(absl::IsInvalidArgument(json));
  EXPECT_EQ(GetErrorDetails(json).reason, "PROFILE_UNREADABLE");
  EXPECT_THAT(std::string(json.message()), HasSubstr("batch"));
  const absl::Status text = ParseProfile("batch_size: 3\nmodell: \"x\"").status();
  EXPECT_THAT(std::string(text.message()), HasSubstr("line 2"));
  EXPECT_THAT(std::string(text.message()), HasSubstr("modell"));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseProfile(std::string("\x0a\xff\x01", 3)).status()));
  const absl::Status utf8 = ParseProfile("model: \"\\377\"").status();
  EXPECT_TRUE(absl::IsInvalidArgument(utf8));
  EXPECT_THAT(std::string(utf8.message()), HasSubstr("model is not UTF-8"));
}

TEST(ProfileEncodingTest, NoBytesCrashIt) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 generator(seed);
    std::string bytes(generator() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(generator());
    for (const auto encoding : {ProfileEncoding::kUnspecified, ProfileEncoding::kBinary,
                                ProfileEncoding::kJson, ProfileEncoding::kText}) {
      const absl::StatusOr<Profile> read = ParseProfile(bytes, encoding);
      ASSERT_TRUE(read.ok() || absl::IsInvalidArgument(read.status())) << "seed " << seed;
    }
  }
}

TEST(ReadFileTest, GivesEveryByte) {
  const std::string path = testing::TempDir() + "stepcast_read_file_test";
  std::string content("a\0b\r\n\xff", 6);
  content.resize(3'000'000, 'x');
  std::ofstream(path, std::ios::binary) << content;
  const absl::StatusOr<std::string> read = ReadFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == content);
  std::remove(path.c_str());
}

TEST(ReadFileTest, SaysWhatIsWrongWithThePath) {
  const absl::Status missing = ReadFile("/nowhere/at/all").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/nowhere/at/all"));
  EXPECT_EQ(GetErrorDetails(missing).reason, "FILE_UNREADABLE");
  EXPECT_TRUE(absl::IsInvalidArgument(ReadFile(testing::TempDir()).status()));
}

}  // namespace
}  // namespace stepcast::client::profile_encoding_test
