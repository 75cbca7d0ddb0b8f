#include "server/handlers/decoded_profiles.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "server/convert/profile_codec.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server::decoded_profiles_test {
namespace {

constexpr size_t kRoom = size_t{1} << 20;

class Bytes final : public CacheObserver {
 public:
  void OnAsked(bool found) override { (found ? hits : misses) += 1; }
  void OnChanged(int64_t /*entries*/, int64_t change, int64_t /*dropped*/) override {
    bytes += change;
  }

  int hits = 0;
  int misses = 0;
  int64_t bytes = 0;
};

StoredProfile Stored(const std::string& id, const ProfileDraft& draft) {
  EncodedProfile encoded = EncodeProfile(Profile::Create(draft).value());
  return {.summary = {.id = id, .digest = std::move(encoded.digest)},
          .content = std::move(encoded.content)};
}

TEST(DecodedProfilesTest, AKeptProfileIsNotDecodedAgain) {
  Bytes seen;
  DecodedProfiles profiles(kRoom, &seen);
  const StoredProfile stored = Stored("a", SmallProfile());
  const Profile first = profiles.Decode(stored).value();
  const Profile second = profiles.Decode(stored).value();
  EXPECT_EQ(first.content(), SmallProfile());
  EXPECT_EQ(&first.content(), &second.content());
  EXPECT_EQ(seen.hits, 1);
  EXPECT_EQ(seen.misses, 1);
}

TEST(DecodedProfilesTest, OtherBytesUnderTheSameNameAreAnotherProfile) {
  DecodedProfiles profiles(kRoom);
  ProfileDraft other = SmallProfile();
  other.labels["team"] = "vision";  // of which the digest says nothing
  ASSERT_EQ(Stored("a", other).summary.digest, Stored("a", SmallProfile()).summary.digest);
  EXPECT_EQ(profiles.Decode(Stored("a", SmallProfile()))->content(), SmallProfile());
  EXPECT_EQ(profiles.Decode(Stored("a", other))->content(), other);
  EXPECT_EQ(profiles.Decode(Stored("a", SmallProfile()))->content(), SmallProfile());
}

TEST(DecodedProfilesTest, WithoutRoomEachIsDecodedAnew) {
  Bytes seen;
  DecodedProfiles profiles(0, &seen);
  const StoredProfile stored = Stored("a", SmallProfile());
  const Profile first = profiles.Decode(stored).value();
  const Profile second = profiles.Decode(stored).value();
  EXPECT_EQ(first.content(), second.content());
  EXPECT_NE(&first.content(), &second.content());
  EXPECT_EQ(seen.bytes, 0);
}

TEST(DecodedProfilesTest, BytesThatAreNoProfileFailEachTime) {
  DecodedProfiles profiles(kRoom);
  StoredProfile stored = Stored("a", SmallProfile());
  ASSERT_TRUE(profiles.Decode(stored).ok());
  stored.content.resize(stored.content.size() - 1);
  for (int turn = 0; turn < 2; ++turn)
    EXPECT_EQ(DetailsOf(profiles.Decode(stored).status()).reason, "PROFILE_CORRUPT");
}

TEST(DecodedProfilesTest, TheRoomCountsWhatWasDecodedAndTheBytesThatStandForIt) {
  Bytes seen;
  DecodedProfiles profiles(kRoom, &seen);
  ProfileDraft draft = SmallProfile();
  const StoredProfile few = Stored("a", draft);
  ASSERT_TRUE(profiles.Decode(few).ok());
  const int64_t bytes_of_few = seen.bytes;
  const RecordedStep step = draft.steps.front();
  draft.steps.resize(draft.steps.size() + 100, step);
  const StoredProfile many = Stored("a", draft);
  ASSERT_TRUE(profiles.Decode(many).ok());
  const auto times = 200 * static_cast<int64_t>(draft.operations.size());
  EXPECT_GE(seen.bytes - bytes_of_few,
            times * 8 + static_cast<int64_t>(many.content.size() - few.content.size()));
}

}  // namespace
}  // namespace stepcast::server::decoded_profiles_test
