// Durable stores against the one in memory: the same answers to any sequence of calls.
#include <iterator>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "server/base/clock.h"
#include "server/store/memory_stores.h"
#include "tests/server/store/profile_store_contract.h"
#include "tests/server/store/sample_profile.h"
#include "tests/server/store/temporary_directory.h"

namespace stepcast::server::profile_store_equivalence_test {
namespace {

// An answer in words, without the etag, which is random.
std::string Words(const absl::Status& status) {
  const ErrorDetails details = DetailsOf(status);
  std::string words = absl::StrCat(absl::StatusCodeToString(status.code()), " ", details.reason,
                                   " ", details.quota_subject);
  if (!details.quota_subject.empty()) absl::StrAppend(&words, " ", std::string(status.message()));
  return words;
}

std::string Words(const ProfileSummary& summary) {
  std::string words =
      absl::StrCat(summary.id, " ", summary.digest, " ", summary.model, " ", summary.owner, " ",
                   summary.create_time_ns, " ", summary.update_time_ns);
  for (const auto& [key, value] : summary.labels) absl::StrAppend(&words, " ", key, "=", value);
  return words;
}

std::string Words(const absl::StatusOr<ProfileSummary>& summary) {
  return summary.ok() ? Words(*summary) : Words(summary.status());
}

std::string Words(const absl::StatusOr<StoredProfile>& profile) {
  return profile.ok() ? absl::StrCat(Words(profile->summary), " ", profile->content)
                      : Words(profile.status());
}

std::string Words(const absl::StatusOr<ProfilePage>& page) {
  if (!page.ok()) return Words(page.status());
  std::string words = page->more ? "more" : "last";
  for (const ProfileSummary& summary : page->profiles)
    absl::StrAppend(&words, "; ", Words(summary));
  return words;
}

class Pair {
 public:
  Pair(const ProfileStoreKind& kind, const std::string& place, uint64_t seed)
      : kind_(kind), place_(place), random_(seed) {
    Reopen();
  }

  // One random call, made to both. Returns their answers.
  std::pair<std::string, std::string> Call() {
    clock_.Advance(1 + static_cast<int64_t>(random_() % 5));
    const std::string id = absl::StrCat("p", random_() % 8);
    switch (random_() % 12) {
      case 0:
      case 1:
      case 2:
      case 3:
        return CallPut(id);
      case 4:
        return CallDelete(id);
      case 5:
        return {Words(memory_.Get(id)), Words(disk_->Get(id))};
      case 6:
        return {Words(memory_.GetSummary(id)), Words(disk_->GetSummary(id))};
      case 7:
        if (random_() % 4 == 0) Reopen();
        return CallList(id);
      case 8:
      case 9:
        return CallReplace(id);
      default:
        return CallList(id);
    }
  }

 private:
  void Reopen() {
    disk_ = nullptr;
    disk_ = kind_.open(place_, limits_, clock_);
    ASSERT_NE(disk_, nullptr);
  }

  StoredProfile Random(const std::string& id) {
    StoredProfile profile = SampleProfile(id, std::string(random_() % 3 + 1, 'x'));
    // A repetition of a request is identical in everything but who makes it, so what describes the
    // profile follows from its id.
    profile.summary.labels = {{"id", id}, {absl::StrCat("l", id.back() % 3), "v"}};
    profile.summary.model = absl::StrCat("m", id.back() % 2);
    profile.summary.owner = kOwners[random_() % std::size(kOwners)];
    return profile;
  }

  std::string RandomRequest() {
    return random_() % 2 == 0 ? "" : absl::StrCat("r", random_() % 12);
  }

  std::pair<std::string, std::string> CallReplace(const std::string& id) {
    const StoredProfile profile = Random(id);
    ReplaceTerms in_memory{.allow_missing = random_() % 2 == 0, .request_id = RandomRequest()};
    ReplaceTerms on_disk = in_memory;
    if (random_() % 2 == 0) {
      const absl::StatusOr<ProfileSummary> there = memory_.GetSummary(id);
      const absl::StatusOr<ProfileSummary> there_too = disk_->GetSummary(id);
      in_memory.etag = there.ok() ? there->etag : "other";
      on_disk.etag = there_too.ok() ? there_too->etag : "other";
    }
    return {Words(memory_.Replace(profile, in_memory)), Words(disk_->Replace(profile, on_disk))};
  }

  std::pair<std::string, std::string> CallPut(const std::string& id) {
    const StoredProfile profile = Random(id);
    const std::string request_id = RandomRequest();
    return {Words(memory_.Put(profile, request_id)), Words(disk_->Put(profile, request_id))};
  }

  std::pair<std::string, std::string> CallDelete(const std::string& id) {
    const absl::StatusOr<ProfileSummary> in_memory = memory_.GetSummary(id);
    const absl::StatusOr<ProfileSummary> on_disk = disk_->GetSummary(id);
    switch (random_() % 3) {
      case 0:
        return {Words(memory_.Delete(id, "other")), Words(disk_->Delete(id, "other"))};
      case 1:
        if (in_memory.ok() && on_disk.ok())
          return {Words(memory_.Delete(id, in_memory->etag)),
                  Words(disk_->Delete(id, on_disk->etag))};
        [[fallthrough]];
      default:
        return {Words(memory_.Delete(id, "")), Words(disk_->Delete(id, ""))};
    }
  }

  std::pair<std::string, std::string> CallList(const std::string& after) {
    ListQuery query{.after = random_() % 2 == 0 ? "" : after,
                    .limit = static_cast<int>(random_() % 5 + 1)};
    if (random_() % 2 == 0) query.filter.model = absl::StrCat("m", random_() % 3);
    if (random_() % 3 == 0)
      query.filter.labels = {{absl::StrCat("l", random_() % 3), random_() % 4 == 0 ? "w" : "v"}};
    if (random_() % 3 == 0) query.filter.present_labels = {absl::StrCat("l", random_() % 3)};
    return {Words(memory_.List(query)), Words(disk_->List(query))};
  }

  static constexpr const char* kOwners[] = {"", "anna", "bert"};

  const ProfileStoreKind kind_;
  const std::string place_;
  std::mt19937_64 random_;
  const StoreLimits limits_ = {.max_profiles = 6,
                               .max_total_bytes = 12,
                               .max_client_profiles = 3,
                               .max_client_store_bytes = 6,
                               .max_request_ids = 5};
  FakeClock clock_;
  MemoryProfileStore memory_{limits_, clock_};
  std::unique_ptr<ProfileStore> disk_;
};

TEST_P(ProfileStoreEquivalenceTest, AnswersAsMemoryDoes) {
  if (const std::string missing = GetParam().missing(); !missing.empty()) GTEST_SKIP() << missing;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const TemporaryDirectory directory;
    Pair pair(GetParam(), directory.path(), seed);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    for (int call = 0; call < 300; ++call) {
      const auto [in_memory, on_disk] = pair.Call();
      ASSERT_EQ(in_memory, on_disk) << "call " << call;
      ASSERT_FALSE(testing::Test::HasFatalFailure());
    }
  }
}

}  // namespace
}  // namespace stepcast::server::profile_store_equivalence_test
