// The promises of ProfileStore about the shares of its clients, asked of every implementation.
#include <atomic>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "server/store/profile_store.h"
#include "tests/server/store/profile_store_contract.h"
#include "tests/server/store/sample_profile.h"

namespace stepcast::server::profile_store_quota_test {

namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

void ExpectQuotaExceeded(const absl::Status& status, const std::string& owner) {
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  const ErrorDetails details = DetailsOf(status);
  EXPECT_EQ(details.reason, "CLIENT_QUOTA_EXCEEDED") << status;
  EXPECT_EQ(details.quota_subject, absl::StrCat("client:", owner));
  EXPECT_EQ(details.retry_delay_ms, 0);  // waiting frees nothing
}

TEST_P(ProfileStoreTest, TheNumberOfAClientsProfilesIsLimited) {
  Restart({.max_client_profiles = 2});
  MustPut(ProfileOf("anna", "a", "content"));
  MustPut(ProfileOf("anna", "b", "content"));
  const absl::Status full = store_->Put(ProfileOf("anna", "c", "content"), "request").status();
  ExpectQuotaExceeded(full, "anna");
  EXPECT_THAT(DetailsOf(full).metadata,
              UnorderedElementsAre(Pair("client", "anna"), Pair("max_client_profiles", "2"),
                                   Pair("used", "2"), Pair("wanted", "1")));
  MustPut(ProfileOf("bert", "d", "content"));
  ASSERT_TRUE(store_->Delete("a", "").ok());
  MustPut(ProfileOf("anna", "c", "content"), "request");
  EXPECT_THAT(Ids({}), ElementsAre("b", "c", "d"));
}

TEST_P(ProfileStoreTest, TheBytesOfAClientsProfilesAreLimited) {
  Restart({.max_client_store_bytes = 100});
  MustPut(ProfileOf("anna", "a", std::string(60, 'a')));
  const absl::Status full = store_->Put(ProfileOf("anna", "b", std::string(41, 'b')), "").status();
  ExpectQuotaExceeded(full, "anna");
  EXPECT_THAT(DetailsOf(full).metadata,
              UnorderedElementsAre(Pair("client", "anna"), Pair("max_client_store_bytes", "100"),
                                   Pair("used", "60"), Pair("wanted", "41")));
  MustPut(ProfileOf("bert", "b", std::string(100, 'b')));
  MustPut(ProfileOf("anna", "c", std::string(40, 'c')));
  ASSERT_TRUE(store_->Delete("a", "").ok());
  MustPut(ProfileOf("anna", "d", std::string(60, 'd')));
}

TEST_P(ProfileStoreTest, WhatIsThereAlreadyBelongsToItsFirstOwnerAndCountsForNobodyElse) {
  Restart({.max_client_profiles = 1});
  const ProfileSummary first = MustPut(ProfileOf("anna", "a", "content"));
  EXPECT_EQ(first.owner, "anna");
  EXPECT_EQ(MustPut(ProfileOf("bert", "a", "content"), "request"), first);
  EXPECT_EQ(MustPut(ProfileOf("anna", "a", "content")), first);  // needs no room
  MustPut(ProfileOf("bert", "b", "content"));
  ExpectQuotaExceeded(store_->Put(ProfileOf("anna", "c", "content"), "").status(), "anna");
  // Whoever deletes it, it is its owner who has room again.
  ASSERT_TRUE(store_->Delete("a", "").ok());
  ExpectQuotaExceeded(store_->Put(ProfileOf("bert", "a", "content"), "").status(), "bert");
  MustPut(ProfileOf("anna", "c", "content"));
}

TEST_P(ProfileStoreTest, AProfileBelongsToWhoStoresItAgainAfterItsDeletion) {
  MustPut(ProfileOf("anna", "a", "content"));
  ASSERT_TRUE(store_->Delete("a", "").ok());
  EXPECT_EQ(MustPut(ProfileOf("bert", "a", "content")).owner, "bert");
  EXPECT_EQ(store_->Get("a")->summary.owner, "bert");
  EXPECT_EQ(store_->List({})->profiles[0].owner, "bert");
}

TEST_P(ProfileStoreTest, ALateRepetitionNamesTheFirstOwner) {
  const ProfileSummary first = MustPut(ProfileOf("anna", "a", "content"), "request");
  ASSERT_TRUE(store_->Delete("a", "").ok());
  EXPECT_EQ(MustPut(ProfileOf("bert", "a", "content"), "request"), first);
}

TEST_P(ProfileStoreTest, ClientsWithoutANameHaveNoQuota) {
  Restart({.max_client_profiles = 1, .max_client_store_bytes = 1});
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(MustPut(SampleProfile(absl::StrCat("p", i), "content")).owner, "");
}

TEST_P(ProfileStoreTest, WithoutALimitAClientMayFillTheStore) {
  Restart({.max_profiles = 5});
  for (int i = 0; i < 5; ++i) MustPut(ProfileOf("anna", absl::StrCat("p", i), "content"));
  EXPECT_EQ(DetailsOf(store_->Put(ProfileOf("anna", "q", "content"), "").status()).reason,
            "STORE_FULL");
}

TEST_P(ProfileStoreTest, NewLimitsHoldForTheNextPutAndTakeNothingAway) {
  MustPut(ProfileOf("anna", "a", "content"));
  MustPut(ProfileOf("anna", "b", "content"));
  store_->SetLimits({.max_client_profiles = 1});
  ExpectQuotaExceeded(store_->Put(ProfileOf("anna", "c", "content"), "").status(), "anna");
  EXPECT_THAT(Ids({}), ElementsAre("a", "b"));
  ASSERT_TRUE(store_->Delete("a", "").ok());
  ExpectQuotaExceeded(store_->Put(ProfileOf("anna", "c", "content"), "").status(), "anna");
  store_->SetLimits({.max_profiles = 1});
  EXPECT_EQ(DetailsOf(store_->Put(ProfileOf("anna", "c", "content"), "").status()).reason,
            "STORE_FULL");
  store_->SetLimits({});
  MustPut(ProfileOf("anna", "c", "content"));
}

TEST_P(ProfileStoreTest, AnOwnersNameIsAnyBytes) {
  const std::string name("a\0\xff'\"", 5);
  Restart({.max_client_profiles = 1});
  EXPECT_EQ(MustPut(ProfileOf(name, "a", "content")).owner, name);
  EXPECT_EQ(store_->GetSummary("a")->owner, name);
  MustPut(ProfileOf(name.substr(0, 2), "b", "content"));
  ExpectQuotaExceeded(store_->Put(ProfileOf(name, "c", "content"), "").status(), name);
}

TEST_P(ProfileStoreTest, ManyThreadsTogetherNeverPassAClientsQuota) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 30;
  constexpr int64_t kMaxBytes = 1000;
  constexpr size_t kBytes = 90;
  Restart({.max_client_store_bytes = kMaxBytes});
  const auto bytes_of = [&](const std::string& owner) {
    int64_t bytes = 0;
    const absl::StatusOr<ProfilePage> page = store_->List({.limit = 1000});
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) return bytes;
    for (const ProfileSummary& summary : page->profiles)
      bytes += summary.owner == owner ? summary.size_bytes : 0;
    return bytes;
  };
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::vector<std::string> mine;
      for (int round = 0; round < kRounds; ++round) {
        const std::string id = absl::StrCat("p", thread, "-", round);
        const absl::Status status =
            store_->Put(ProfileOf("anna", id, std::string(kBytes, 'x')), "").status();
        ASSERT_LE(bytes_of("anna"), kMaxBytes);
        if (status.ok()) {
          mine.push_back(id);
          continue;
        }
        ExpectQuotaExceeded(status, "anna");
        ++refused;
        if (mine.size() < 2) continue;
        ASSERT_TRUE(store_->Delete(mine.back(), "").ok());
        mine.pop_back();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(refused, 0);
  // The count is that of what is there: alone, one fills it to the last that fits.
  while (store_->Put(ProfileOf("anna", absl::StrCat("q", ++stores_), std::string(kBytes, 'x')), "")
             .ok())
    continue;
  EXPECT_EQ(bytes_of("anna"), static_cast<int64_t>(kMaxBytes / kBytes * kBytes));
}

// The answer that one call must give, from nothing but a list of what is there.
class PlainQuota {
 public:
  struct Entry {
    std::string owner;
    int64_t bytes = 0;
  };

  explicit PlainQuota(const StoreLimits& limits) : limits_(limits) {}

  // The reason of the refusal, or "owner NAME".
  std::string Put(const std::string& id, const Entry& entry) {
    if (const auto there = entries_.find(id); there != entries_.end()) {
      return there->second.bytes == entry.bytes ? absl::StrCat("owner ", there->second.owner)
                                                : "PROFILE_EXISTS";
    }
    int64_t profiles = 1;
    int64_t bytes = entry.bytes;
    for (const auto& [other, has] : entries_) {
      profiles += has.owner == entry.owner ? 1 : 0;
      bytes += has.owner == entry.owner ? has.bytes : 0;
    }
    const bool is_much =
        profiles > limits_.max_client_profiles || bytes > limits_.max_client_store_bytes;
    if (is_much && !entry.owner.empty()) return "CLIENT_QUOTA_EXCEEDED";
    if (static_cast<int64_t>(entries_.size()) >= limits_.max_profiles) return "STORE_FULL";
    entries_[id] = entry;
    return absl::StrCat("owner ", entry.owner);
  }

  std::string Delete(const std::string& id) {
    return entries_.erase(id) > 0 ? "" : "PROFILE_NOT_FOUND";
  }

 private:
  const StoreLimits limits_;
  std::map<std::string, Entry> entries_;
};

TEST_P(ProfileStoreTest, RandomCallsAreAnsweredAsByCountingAllThereIs) {
  const StoreLimits limits = {
      .max_profiles = 9, .max_client_profiles = 4, .max_client_store_bytes = 8};
  constexpr const char* kOwners[] = {"", "anna", "bert"};
  std::map<std::string, int> answers;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Restart(limits);
    PlainQuota plain(limits);
    std::mt19937_64 random(seed);
    for (int call = 0; call < 100; ++call) {
      const std::string id = absl::StrCat("p", random() % 14);
      if (random() % 4 == 0) {
        ASSERT_EQ(DetailsOf(store_->Delete(id, "")).reason, plain.Delete(id)) << "call " << call;
        continue;
      }
      const PlainQuota::Entry entry = {.owner = kOwners[random() % 3],
                                       .bytes = static_cast<int64_t>(random() % 4)};
      const auto stored = store_->Put(
          ProfileOf(entry.owner, id, std::string(static_cast<size_t>(entry.bytes), 'x')), "");
      const std::string answer =
          stored.ok() ? absl::StrCat("owner ", stored->owner) : DetailsOf(stored.status()).reason;
      ASSERT_EQ(answer, plain.Put(id, entry)) << "call " << call;
      ++answers[answer];
    }
  }
  for (const char* each : {"owner ", "owner anna", "owner bert", "CLIENT_QUOTA_EXCEEDED",
                           "STORE_FULL", "PROFILE_EXISTS"})
    EXPECT_GT(answers[each], 10) << each;
}

}  // namespace
}  // namespace stepcast::server::profile_store_quota_test
