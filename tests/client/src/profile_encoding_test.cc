#include "stepcast/profile_encoding.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "stepcast/error_details.h"
#include "stepcast/json.h"
#include "tests/client/support/random_message.h"
#include "tests/client/support/text_proto.h"

namespace stepcast::client::profile_encoding_test {
namespace {

using testing::HasSubstr;

TEST(ProfileEncodingTest, EachEncodingIsRecognisedByItsContentAndReadAlike) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 generator(seed);
    v1::Profile profile;
    FillRandomly(profile, generator, /*all=*/true);
    std::string text;
    ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(profile, &text));
    const std::string json = ToJson(profile);
    const std::string binary = profile.SerializeAsString();

    EXPECT_EQ(DetectProfileEncoding(json), v1::UploadProfileRequest::JSON);
    EXPECT_EQ(DetectProfileEncoding(text), v1::UploadProfileRequest::TEXT);
    EXPECT_EQ(DetectProfileEncoding(binary), v1::UploadProfileRequest::BINARY);
    for (const std::string& bytes : {json, text, binary}) {
      const absl::StatusOr<v1::Profile> read = ParseProfile(bytes);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_THAT(*read, EqualsProto(profile));
    }
  }
}

TEST(ProfileEncodingTest, JsonMayHaveEitherSpellingAndLeadingSpace) {
  const absl::StatusOr<v1::Profile> snake = ParseProfile("\n  {\"batch_size\": 3}");
  const absl::StatusOr<v1::Profile> camel = ParseProfile("{\"batchSize\": 3}");
  ASSERT_TRUE(snake.ok()) << snake.status();
  ASSERT_TRUE(camel.ok()) << camel.status();
  EXPECT_EQ(snake->batch_size(), 3);
  EXPECT_THAT(*snake, EqualsProto(*camel));
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

// Every text of a profile, at any depth, by the path it is named by.
TEST(ProfileEncodingTest, ABrokenTextIsNamedByItsPath) {
  const auto says = [](const std::string& text) {
    return std::string(ParseProfile(text).status().message());
  };
  EXPECT_THAT(says(R"pb(display_name: "\377")pb"), HasSubstr(": display_name is not UTF-8"));
  EXPECT_THAT(says(R"pb(labels { key: "k" value: "\377" })pb"), HasSubstr(": labels is not"));
  EXPECT_THAT(says(R"pb(labels { key: "\377" value: "v" })pb"), HasSubstr(": labels is not"));
  EXPECT_THAT(says(R"pb(operations {}
                        operations { parameter: "\377" })pb"),
              HasSubstr(": operations[1].parameter is not"));
  // Cut off, overlong, and a surrogate.
  for (const char* broken : {"\\342\\202", "\\300\\200", "\\355\\240\\200"})
    EXPECT_THAT(says(std::string("owner: \"") + broken + "\""), HasSubstr(": owner is not"));
  EXPECT_TRUE(ParseProfile("owner: \"\\342\\202\\254\"").ok());
}

TEST(ProfileEncodingTest, NoBytesCrashIt) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 generator(seed);
    std::string bytes(generator() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(generator());
    for (const auto encoding :
         {v1::UploadProfileRequest::ENCODING_UNSPECIFIED, v1::UploadProfileRequest::BINARY,
          v1::UploadProfileRequest::JSON, v1::UploadProfileRequest::TEXT}) {
      const absl::StatusOr<v1::Profile> read = ParseProfile(bytes, encoding);
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
