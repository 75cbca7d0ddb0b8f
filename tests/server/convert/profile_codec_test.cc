#include "server/convert/profile_codec.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "server/convert/profile_convert.h"
#include "tests/server/support/random_profile.h"
#include "tests/support/profile_json.h"

namespace stepcast::server::profile_codec_test {
namespace {

Profile Make(ProfileDraft draft) {
  absl::StatusOr<Profile> profile = Profile::Create(std::move(draft));
  EXPECT_TRUE(profile.ok()) << profile.status();
  return *std::move(profile);
}

// One profile in every encoding.
std::map<ProfileEncoding, std::string> Encodings(const ProfileDraft& draft) {
  const v1::Profile message = ToWire(draft);
  std::map<ProfileEncoding, std::string> bytes;
  bytes[ProfileEncoding::kBinary] = message.SerializeAsString();
  EXPECT_TRUE(
      google::protobuf::util::MessageToJsonString(message, &bytes[ProfileEncoding::kJson]).ok());
  EXPECT_TRUE(google::protobuf::TextFormat::PrintToString(message, &bytes[ProfileEncoding::kText]));
  return bytes;
}

TEST(ProfileCodecTest, AContentDecodesToItsProfile) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Profile profile = Make(RandomProfile(seed));
    const absl::StatusOr<Profile> back = DecodeProfile(EncodeProfile(profile).content);
    ASSERT_TRUE(back.ok()) << "seed " << seed << ": " << back.status();
    EXPECT_TRUE(back->content() == profile.content()) << "seed " << seed;
  }
}

TEST(ProfileCodecTest, TheDigestIsNotOfDisplayNameAndLabels) {
  ProfileDraft other = RandomProfile(1);
  other.display_name = "something else";
  other.labels = {{"another", "label"}};
  EXPECT_EQ(DigestOf(Make(RandomProfile(1))), DigestOf(Make(other)));
  EXPECT_NE(EncodeProfile(Make(RandomProfile(1))).content, EncodeProfile(Make(other)).content);
}

TEST(ProfileCodecTest, TheDigestIsOfEverythingElse) {
  const std::vector<std::function<void(ProfileDraft&)>> changes{
      [](ProfileDraft& draft) { draft.model += "x"; },
      [](ProfileDraft& draft) { draft.framework += "x"; },
      [](ProfileDraft& draft) { ++draft.batch_size; },
      [](ProfileDraft& draft) { draft.platform.bandwidth_bytes_per_second += 1; },
      [](ProfileDraft& draft) { draft.platform.parsing_overhead.seconds += 1e-6; },
      [](ProfileDraft& draft) { draft.platform.parsing_overhead.seconds_per_byte += 1e-12; },
      [](ProfileDraft& draft) { ++draft.platform.window_bytes; },
      [](ProfileDraft& draft) { ++draft.parameter_servers; },
      [](ProfileDraft& draft) { draft.operations[0].name += "x"; },
      [](ProfileDraft& draft) { draft.operations[0].parameter += "x"; },
      [](ProfileDraft& draft) { ++draft.steps[0].start_ns[0]; },
      [](ProfileDraft& draft) { ++draft.steps[0].end_ns[0]; },
      [](ProfileDraft& draft) { draft.steps.push_back(draft.steps[0]); },
  };
  const std::string digest = DigestOf(Make(RandomProfile(2)));
  for (size_t i = 0; i < changes.size(); ++i) {
    ProfileDraft draft = RandomProfile(2);
    changes[i](draft);
    EXPECT_NE(DigestOf(Make(draft)), digest) << "change " << i;
  }
}

// Names of stored profiles come from it, so it must never change, whatever the library or the
// platform.
TEST(ProfileCodecTest, TheDigestOfARecordedProfileStays) {
  const ProfileDraft draft = testing::ProfileFromJson(
      testing::ReadJsonFile(STEPCAST_SOURCE_DIR "/tests/data/testbed/alexnet_64.profile.json"));
  EXPECT_EQ(DigestOf(Make(draft)),
            "97624657506276357465801b08eff516b5c9d2891e9c3988b1176aaaee3afd41");
  EXPECT_EQ(EncodeProfile(Make(draft)).digest, DigestOf(Make(draft)));
}

TEST(ProfileCodecTest, EveryEncodingReadsTheSame) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (const auto& [encoding, bytes] : Encodings(RandomProfile(seed))) {
      const absl::StatusOr<ProfileInput> input = ReadProfile(encoding, bytes);
      ASSERT_TRUE(input.ok()) << "seed " << seed << ": " << input.status();
      EXPECT_TRUE(input->draft == RandomProfile(seed))
          << "seed " << seed << ", encoding " << static_cast<int>(encoding);
    }
  }
}

TEST(ProfileCodecTest, WhatIsCutOffIsRefusedOrIsAnotherProfileButNeverTheSame) {
  for (const auto& [encoding, bytes] : Encodings(RandomProfile(3))) {
    for (size_t size = 0; size + 1 < bytes.size(); ++size) {
      const absl::StatusOr<ProfileInput> input = ReadProfile(encoding, bytes.substr(0, size));
      if (input.ok()) {
        EXPECT_FALSE(input->draft == RandomProfile(3))
            << "encoding " << static_cast<int>(encoding) << ", " << size << " bytes";
      } else {
        EXPECT_EQ(DetailsOf(input.status()).reason, "PROFILE_MALFORMED");
      }
    }
  }
}

TEST(ProfileCodecTest, AlteredBytesAreReadOrRefusedWithAReason) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random({seed});
    for (auto& [encoding, bytes] : Encodings(RandomProfile(seed))) {
      std::string altered = bytes;
      for (uint64_t count = 1 + random.Below(8); count > 0; --count)
        altered[random.Below(altered.size())] = static_cast<char>(random.Below(256));
      const absl::StatusOr<ProfileInput> input = ReadProfile(encoding, altered);
      if (input.ok()) continue;
      EXPECT_EQ(DetailsOf(input.status()).reason, "PROFILE_MALFORMED") << "seed " << seed;
    }
  }
}

TEST(ProfileCodecTest, UnknownFieldsAreAnError) {
  EXPECT_EQ(DetailsOf(ReadProfile(ProfileEncoding::kJson, R"({"batchsize": 3})").status())
                .faults.at(0)
                .field,
            "chunk");
  EXPECT_EQ(DetailsOf(ReadProfile(ProfileEncoding::kText, "batchsize: 3").status()).reason,
            "PROFILE_MALFORMED");
  v1::Profile newer = ToWire(RandomProfile(1));
  v1::Operation& operation = *newer.mutable_operations(1);
  operation.GetReflection()->MutableUnknownFields(&operation)->AddVarint(9999, 1);
  const absl::Status status =
      ReadProfile(ProfileEncoding::kBinary, newer.SerializeAsString()).status();
  EXPECT_EQ(DetailsOf(status).reason, "PROFILE_MALFORMED");
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("operations[1]: field 9999 of stepcast.v1.Operation"));
}

TEST(ProfileCodecTest, AMarkIsPassedOverAndWhatIsNoProfileIsNamed) {
  for (const auto& [encoding, bytes] : Encodings(RandomProfile(1))) {
    if (encoding == ProfileEncoding::kBinary) continue;
    const absl::StatusOr<ProfileInput> marked = ReadProfile(encoding, "\xef\xbb\xbf" + bytes);
    ASSERT_TRUE(marked.ok()) << marked.status();
    EXPECT_TRUE(marked->faults.empty());
  }
  // The image would be one unknown field.
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "the file is empty"},
      {std::string("\x89PNG\r\n\x1a\n\0\0", 10), "the file is an image"},
      {"\xff\xfe{", "the file is text in UTF-16: save it as UTF-8"}};
  for (const auto& [bytes, why] : cases) {
    for (const auto encoding :
         {ProfileEncoding::kJson, ProfileEncoding::kText, ProfileEncoding::kBinary}) {
      const ErrorDetails details = DetailsOf(ReadProfile(encoding, bytes).status());
      EXPECT_EQ(details.reason, "PROFILE_MALFORMED");
      EXPECT_EQ(details.faults, std::vector<Fault>({{"chunk", why}}));
    }
  }
  EXPECT_THAT(
      std::string(ReadProfile(ProfileEncoding::kJson, R"({"batchSize": NaN})").status().message()),
      ::testing::HasSubstr("NaN at byte 14 is not a number of JSON"));
}

TEST(ProfileCodecTest, DeepNestingIsRefused) {
  constexpr size_t kDepth = 100'000;
  EXPECT_FALSE(
      ReadProfile(ProfileEncoding::kJson, R"({"operations":)" + std::string(kDepth, '[')).ok());
  std::string text;
  for (size_t i = 0; i < kDepth; ++i) text += "platform { parsing_overhead { ";
  EXPECT_FALSE(ReadProfile(ProfileEncoding::kText, text).ok());
  // A group inside a group: the only unbounded nesting that binary knows.
  EXPECT_FALSE(ReadProfile(ProfileEncoding::kBinary, std::string(kDepth, '\xAB')).ok());
}

TEST(ProfileCodecTest, NoBytesAreNoProfile) {
  for (const ProfileEncoding encoding :
       {ProfileEncoding::kBinary, ProfileEncoding::kJson, ProfileEncoding::kText}) {
    EXPECT_EQ(DetailsOf(ReadProfile(encoding, "").status()).reason, "PROFILE_MALFORMED");
  }
}

TEST(ProfileCodecTest, AStoredContentThatIsNoneIsDataLoss) {
  for (const std::string content : {"", "\xff", "nonsense"}) {
    const absl::Status status = DecodeProfile(content).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(DetailsOf(status).reason, "PROFILE_CORRUPT");
  }
}

}  // namespace
}  // namespace stepcast::server::profile_codec_test
