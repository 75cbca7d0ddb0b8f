// The promises of ProfileStore, asked of every implementation.
#include "tests/server/store/profile_store_contract.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "server/store/profile_store.h"
#include "tests/server/store/sample_profile.h"

namespace stepcast::server::profile_store_contract_test {

namespace {

using testing::ElementsAre;

void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& reason) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(DetailsOf(status).reason, reason) << status;
}

TEST_P(ProfileStoreTest, GetReturnsWhatWasPut) {
  const StoredProfile profile = SampleProfile("a", SampleContent(1, 100'000));
  const ProfileSummary stored = MustPut(profile);
  ProfileSummary expected = profile.summary;
  expected.etag = stored.etag;
  expected.create_time_ns = clock_.WallNs();
  expected.update_time_ns = clock_.WallNs();
  EXPECT_NE(stored.etag, "");
  EXPECT_EQ(stored, expected);
  const absl::StatusOr<StoredProfile> got = store_->Get("a");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->summary, expected);
  EXPECT_EQ(got->content, profile.content);
  EXPECT_EQ(*store_->GetSummary("a"), expected);
}

TEST_P(ProfileStoreTest, AnyBytesAreKept) {
  StoredProfile profile = SampleProfile(std::string("i\0d\xff", 4), "");
  profile.summary.display_name = std::string("\0\xc3\x28'\";--", 8);
  profile.summary.labels = {{"", std::string("\0", 1)}, {std::string("k\0y", 3), "v"}};
  profile.summary.batch_size = 2147483647;
  const ProfileSummary stored = MustPut(profile);
  const absl::StatusOr<StoredProfile> got = store_->Get(profile.summary.id);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->summary, stored);
  EXPECT_EQ(got->summary.display_name, profile.summary.display_name);
  EXPECT_EQ(got->summary.labels, profile.summary.labels);
  EXPECT_EQ(got->summary.batch_size, 2147483647);
  EXPECT_EQ(got->content, "");
}

TEST_P(ProfileStoreTest, TheSameDigestAgainIsTheFirstOne) {
  StoredProfile profile = SampleProfile("a", "content");
  const ProfileSummary first = MustPut(profile);
  clock_.Advance(1000);
  profile.summary.labels = {{"other", "labels"}};
  EXPECT_EQ(MustPut(profile), first);
  EXPECT_EQ(*store_->GetSummary("a"), first);
}

TEST_P(ProfileStoreTest, ATakenIdWithOtherContentIsRefusedAndStays) {
  MustPut(SampleProfile("a", "content"));
  const absl::Status refused = store_->Put(SampleProfile("a", "other"), "").status();
  ExpectError(refused, absl::StatusCode::kAlreadyExists, "PROFILE_EXISTS");
  EXPECT_EQ(DetailsOf(refused).resource.name, "profiles/a");
  EXPECT_EQ(store_->Get("a")->content, "content");
}

TEST_P(ProfileStoreTest, WhatIsNotThereIsNotFoundByName) {
  const std::vector<absl::Status> all = {store_->Get("b").status(),
                                         store_->GetSummary("b").status(), store_->Delete("b", ""),
                                         store_->Delete("b", "etag")};
  for (const absl::Status& status : all) {
    ExpectError(status, absl::StatusCode::kNotFound, "PROFILE_NOT_FOUND");
    EXPECT_EQ(DetailsOf(status).resource.name, "profiles/b");
  }
}

TEST_P(ProfileStoreTest, ADeletedProfileIsGone) {
  MustPut(SampleProfile("a", "content"));
  ASSERT_TRUE(store_->Delete("a", "").ok());
  ExpectError(store_->Get("a").status(), absl::StatusCode::kNotFound, "PROFILE_NOT_FOUND");
  EXPECT_THAT(Ids({}), ElementsAre());
}

TEST_P(ProfileStoreTest, EveryDeletionChangesTheGenerationAndNothingElseDoes) {
  const uint64_t at_first = store_->Generation();
  const ProfileSummary stored = MustPut(SampleProfile("a", "content"));
  MustPut(SampleProfile("b", "other"));
  EXPECT_TRUE(store_->Get("a").ok());
  EXPECT_FALSE(store_->Delete("a", stored.etag + "x").ok());
  EXPECT_FALSE(store_->Delete("c", "").ok());
  EXPECT_EQ(store_->Generation(), at_first);
  ASSERT_TRUE(store_->Delete("a", stored.etag).ok());
  const uint64_t after_one = store_->Generation();
  EXPECT_NE(after_one, at_first);
  ASSERT_TRUE(store_->Delete("b", "").ok());
  EXPECT_NE(store_->Generation(), after_one);
  EXPECT_NE(store_->Generation(), at_first);
}

TEST_P(ProfileStoreTest, WhatWasReadUnderTheSameGenerationStillHolds) {
  constexpr int kReaders = 3;
  constexpr int kRounds = 200;
  // The one who writes says what is stored, before it puts and after a deletion has returned;
  // readers keep what they read and its generation.
  std::atomic<int> deleted_up_to{-1};
  std::atomic<bool> done{false};
  std::atomic<int> trusted{0};  // times that something kept was held to be good
  std::vector<std::thread> readers;
  readers.reserve(kReaders);
  for (int reader = 0; reader < kReaders; ++reader) {
    readers.emplace_back([&] {
      std::string kept;
      uint64_t kept_at = 0;
      while (!done) {
        const int gone = deleted_up_to;
        const uint64_t generation = store_->Generation();
        if (!kept.empty() && generation == kept_at) {
          ASSERT_GT(std::stoi(kept), gone) << "a deleted content was trusted";
          ++trusted;
          continue;
        }
        const absl::StatusOr<StoredProfile> got = store_->Get("a");
        kept = got.ok() ? got->content : "";
        kept_at = generation;
      }
    });
  }
  // Readers need more rounds to meet any writer where writing is fast.
  for (int round = 0; (round < kRounds || trusted < kRounds) && !HasFailure(); ++round) {
    MustPut(SampleProfile("a", absl::StrCat(round)));
    std::this_thread::yield();
    EXPECT_TRUE(store_->Delete("a", "").ok());
    deleted_up_to = round;
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
}

TEST_P(ProfileStoreTest, DeleteWithAnotherEtagIsAborted) {
  const ProfileSummary stored = MustPut(SampleProfile("a", "content"));
  ExpectError(store_->Delete("a", stored.etag + "x"), absl::StatusCode::kAborted, "ETAG_MISMATCH");
  EXPECT_TRUE(store_->Get("a").ok());
  EXPECT_TRUE(store_->Delete("a", stored.etag).ok());
}

TEST_P(ProfileStoreTest, AProfileStoredAgainHasAnotherEtag) {
  const ProfileSummary first = MustPut(SampleProfile("a", "content"));
  ASSERT_TRUE(store_->Delete("a", first.etag).ok());
  const ProfileSummary second = MustPut(SampleProfile("a", "content"));
  EXPECT_NE(second.etag, first.etag);
  ExpectError(store_->Delete("a", first.etag), absl::StatusCode::kAborted, "ETAG_MISMATCH");
}

TEST_P(ProfileStoreTest, AReplacementHasTheNameTheOwnerAndTheBirthdayOfWhatWasThere) {
  const ProfileSummary first = MustPut(ProfileOf("anna", "a", "content"));
  const uint64_t generation = store_->Generation();
  clock_.Advance(1000);
  const StoredProfile other = ProfileOf("bert", "a", SampleContent(2, 50'000));
  const absl::StatusOr<ProfileSummary> second = store_->Replace(other, {.etag = first.etag});
  ASSERT_TRUE(second.ok()) << second.status();
  ProfileSummary expected = other.summary;
  expected.owner = "anna";
  expected.etag = second->etag;
  expected.create_time_ns = first.create_time_ns;
  expected.update_time_ns = clock_.WallNs();
  EXPECT_NE(second->etag, first.etag);
  EXPECT_EQ(*second, expected);
  EXPECT_EQ(store_->Get("a")->summary, expected);
  EXPECT_EQ(store_->Get("a")->content, other.content);
  EXPECT_NE(store_->Generation(), generation);
  EXPECT_THAT(Ids({}), ElementsAre("a"));
}

TEST_P(ProfileStoreTest, AReplacementByTheSameChangesNothing) {
  const StoredProfile profile = SampleProfile("a", "content");
  const ProfileSummary first = MustPut(profile);
  clock_.Advance(1000);
  EXPECT_EQ(*store_->Replace(profile, {}), first);
  EXPECT_EQ(*store_->Replace(profile, {.etag = first.etag, .request_id = "request"}), first);
  EXPECT_EQ(*store_->GetSummary("a"), first);
  StoredProfile relabelled = profile;
  relabelled.summary.labels = {{"other", "label"}};
  const absl::StatusOr<ProfileSummary> second = store_->Replace(relabelled, {});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(second->etag, first.etag);
  EXPECT_EQ(store_->GetSummary("a")->labels, relabelled.summary.labels);
}

TEST_P(ProfileStoreTest, AReplacementOfWhatIsNotThereNeedsPermission) {
  const StoredProfile profile = SampleProfile("a", "content");
  ExpectError(store_->Replace(profile, {}).status(), absl::StatusCode::kNotFound,
              "PROFILE_NOT_FOUND");
  ExpectError(store_->Replace(profile, {.etag = "e"}).status(), absl::StatusCode::kNotFound,
              "PROFILE_NOT_FOUND");
  ExpectError(store_->Replace(profile, {.etag = "e", .allow_missing = true}).status(),
              absl::StatusCode::kAborted, "ETAG_MISMATCH");
  EXPECT_THAT(Ids({}), ElementsAre());
  const absl::StatusOr<ProfileSummary> stored = store_->Replace(profile, {.allow_missing = true});
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->create_time_ns, clock_.WallNs());
  EXPECT_EQ(store_->Get("a")->content, "content");
}

TEST_P(ProfileStoreTest, AReplacementWithAnotherEtagIsAbortedAndChangesNothing) {
  const ProfileSummary first = MustPut(SampleProfile("a", "content"));
  const uint64_t generation = store_->Generation();
  const absl::Status refused =
      store_->Replace(SampleProfile("a", "other"), {.etag = first.etag + "x"}).status();
  ExpectError(refused, absl::StatusCode::kAborted, "ETAG_MISMATCH");
  EXPECT_EQ(DetailsOf(refused).resource.name, "profiles/a");
  EXPECT_EQ(*store_->GetSummary("a"), first);
  EXPECT_EQ(store_->Get("a")->content, "content");
  EXPECT_EQ(store_->Generation(), generation);
}

TEST_P(ProfileStoreTest, ARepeatedReplacementReturnsWhatTheFirstStoredWhateverItsEtag) {
  const ProfileSummary first = MustPut(SampleProfile("a", "content"));
  const StoredProfile second = SampleProfile("a", "second");
  const ReplaceTerms terms{.etag = first.etag, .request_id = "request"};
  const ProfileSummary stored = *store_->Replace(second, terms);
  clock_.Advance(1000);
  EXPECT_EQ(*store_->Replace(second, terms), stored);
  // Not even where another has come after it does a late repetition replace that.
  const ProfileSummary third = *store_->Replace(SampleProfile("a", "third"), {});
  EXPECT_EQ(*store_->Replace(second, terms), stored);
  EXPECT_EQ(*store_->GetSummary("a"), third);
  ExpectError(store_->Replace(SampleProfile("a", "fourth"), terms).status(),
              absl::StatusCode::kInvalidArgument, "REQUEST_ID_REUSED");
}

TEST_P(ProfileStoreTest, AReplacementCountsByWhatItHasMore) {
  Restart({.max_profiles = 2, .max_total_bytes = 100});
  MustPut(SampleProfile("a", std::string(60, 'a')));
  MustPut(SampleProfile("b", std::string(40, 'b')));
  const auto replace = [&](const std::string& id, size_t bytes) {
    return store_->Replace(SampleProfile(id, std::string(bytes, 'c')), {}).status();
  };
  ExpectError(replace("a", 61), absl::StatusCode::kResourceExhausted, "STORE_FULL");
  EXPECT_EQ(store_->Get("a")->content, std::string(60, 'a'));
  EXPECT_TRUE(replace("a", 50).ok());
  EXPECT_TRUE(replace("b", 50).ok());
  // A limit that was lowered refuses nothing that does not grow.
  store_->SetLimits({.max_profiles = 1, .max_total_bytes = 10});
  EXPECT_TRUE(replace("a", 49).ok());
  ExpectError(replace("a", 50), absl::StatusCode::kResourceExhausted, "STORE_FULL");
  store_->SetLimits({.max_profiles = 3, .max_total_bytes = 100});
  MustPut(SampleProfile("c", "c"));
  ExpectError(store_->Put(SampleProfile("d", ""), "").status(),
              absl::StatusCode::kResourceExhausted, "STORE_FULL");
}

TEST_P(ProfileStoreTest, WhoReadsDuringReplacementsHasOneOrTheOtherWhole) {
  constexpr int kReplacements = 1000;
  constexpr int kReaders = 2;
  const auto content = [](int number) {
    return SampleContent(number % 2, 200 + number % 2 * 9000);
  };
  MustPut(SampleProfile("a", content(0)));
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  readers.reserve(kReaders);
  for (int reader = 0; reader < kReaders; ++reader) {
    readers.emplace_back([&] {
      while (!done) {
        const absl::StatusOr<StoredProfile> got = store_->Get("a");
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_EQ(got->summary.digest, SampleProfile("a", got->content).summary.digest);
        ASSERT_TRUE(store_->GetSummary("a").ok());
        const absl::StatusOr<ProfilePage> page = store_->List({});
        ASSERT_TRUE(page.ok()) << page.status();
        ASSERT_EQ(page->profiles.size(), 1U);
      }
    });
  }
  for (int i = 1; i <= kReplacements && !HasFailure(); ++i)
    EXPECT_TRUE(store_->Replace(SampleProfile("a", content(i)), {}).ok());
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(store_->Get("a")->content, content(kReplacements));
}

TEST_P(ProfileStoreTest, OfReplacementsAtOnceWithOneEtagOneWins) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    const std::string id = absl::StrCat("p", round);
    const std::string etag = MustPut(SampleProfile(id, "content")).etag;
    std::atomic<int> won{0};
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        const absl::Status status =
            store_->Replace(SampleProfile(id, absl::StrCat(thread)), {.etag = etag}).status();
        if (status.ok()) ++won;
        EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(won, 1);
  }
}

TEST_P(ProfileStoreTest, ARepeatedRequestReturnsWhatTheFirstStored) {
  const StoredProfile profile = SampleProfile("a", "content");
  const ProfileSummary first = MustPut(profile, "request");
  clock_.Advance(1000);
  EXPECT_EQ(MustPut(profile, "request"), first);
}

TEST_P(ProfileStoreTest, ALateRepetitionDoesNotBringBackWhatWasDeleted) {
  const StoredProfile profile = SampleProfile("a", "content");
  const ProfileSummary first = MustPut(profile, "request");
  ASSERT_TRUE(store_->Delete("a", "").ok());
  clock_.Advance(1000);
  EXPECT_EQ(MustPut(profile, "request"), first);
  ExpectError(store_->Get("a").status(), absl::StatusCode::kNotFound, "PROFILE_NOT_FOUND");
  const ProfileSummary second = MustPut(profile, "another");
  EXPECT_NE(second.etag, first.etag);
  EXPECT_EQ(MustPut(profile, "request"), first);
  EXPECT_EQ(*store_->GetSummary("a"), second);
}

TEST_P(ProfileStoreTest, ARequestIdForSomethingElseIsRefused) {
  MustPut(SampleProfile("a", "content"), "request");
  for (const StoredProfile& other : {SampleProfile("a", "other"), SampleProfile("b", "content")}) {
    const absl::Status refused = store_->Put(other, "request").status();
    ExpectError(refused, absl::StatusCode::kInvalidArgument, "REQUEST_ID_REUSED");
    ASSERT_EQ(DetailsOf(refused).faults.size(), 1);
    EXPECT_EQ(DetailsOf(refused).faults[0].field, "request_id");
  }
  EXPECT_THAT(Ids({}), ElementsAre("a"));
}

TEST_P(ProfileStoreTest, ARequestThatFoundTheProfileThereIsRemembered) {
  MustPut(SampleProfile("a", "content"));
  MustPut(SampleProfile("a", "content"), "request");
  ExpectError(store_->Put(SampleProfile("b", "other"), "request").status(),
              absl::StatusCode::kInvalidArgument, "REQUEST_ID_REUSED");
}

TEST_P(ProfileStoreTest, ARequestThatFailedIsNotRemembered) {
  MustPut(SampleProfile("a", "content"));
  ASSERT_FALSE(store_->Put(SampleProfile("a", "other"), "request").ok());
  EXPECT_EQ(MustPut(SampleProfile("b", "other"), "request").id, "b");
}

TEST_P(ProfileStoreTest, TheOldestRequestIdIsForgottenFirst) {
  Restart({.max_request_ids = 3});
  for (int i = 0; i < 4; ++i)
    MustPut(SampleProfile(absl::StrCat("p", i), "content"), absl::StrCat("request", i));
  // request1 to request3 are known, request0 is new again and pushes request1 out.
  for (int i = 1; i < 4; ++i) {
    const absl::Status refused =
        store_->Put(SampleProfile("q", "other"), absl::StrCat("request", i)).status();
    ExpectError(refused, absl::StatusCode::kInvalidArgument, "REQUEST_ID_REUSED");
  }
  MustPut(SampleProfile("q0", "other"), "request0");
  MustPut(SampleProfile("q1", "other"), "request1");
  ExpectError(store_->Put(SampleProfile("r", "other"), "request3").status(),
              absl::StatusCode::kInvalidArgument, "REQUEST_ID_REUSED");
}

TEST_P(ProfileStoreTest, ARepetitionSaysTheSameBesidesItsContent) {
  const StoredProfile profile = SampleProfile("p", "content");
  const auto replace = [&](const std::string& says) {
    return store_->Replace(profile, {.allow_missing = true, .request_id = "once", .says = says});
  };
  const absl::StatusOr<ProfileSummary> first = replace("a name");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(replace("a name")->etag, first->etag);
  for (const char* other : {"another", ""})
    ExpectError(replace(other).status(), absl::StatusCode::kInvalidArgument, "REQUEST_ID_REUSED");
}

TEST_P(ProfileStoreTest, TheNumberOfProfilesIsLimited) {
  Restart({.max_profiles = 2});
  MustPut(SampleProfile("a", "content"));
  MustPut(SampleProfile("b", "content"));
  const absl::Status full = store_->Put(SampleProfile("c", "content"), "request").status();
  ExpectError(full, absl::StatusCode::kResourceExhausted, "STORE_FULL");
  EXPECT_EQ(DetailsOf(full).quota_subject, "max_profiles");
  EXPECT_EQ(DetailsOf(full).metadata.at("max_profiles"), "2");
  EXPECT_GT(DetailsOf(full).retry_delay_ms, 0);
  MustPut(SampleProfile("b", "content"));  // what is there already needs no room
  ASSERT_TRUE(store_->Delete("a", "").ok());
  MustPut(SampleProfile("c", "content"), "request");
  EXPECT_THAT(Ids({}), ElementsAre("b", "c"));
}

TEST_P(ProfileStoreTest, TheBytesOfAllProfilesAreLimited) {
  Restart({.max_total_bytes = 100});
  MustPut(SampleProfile("a", std::string(60, 'a')));
  const absl::Status full = store_->Put(SampleProfile("b", std::string(41, 'b')), "").status();
  ExpectError(full, absl::StatusCode::kResourceExhausted, "STORE_FULL");
  EXPECT_EQ(DetailsOf(full).quota_subject, "max_store_bytes");
  MustPut(SampleProfile("b", std::string(40, 'b')));
  ASSERT_TRUE(store_->Delete("a", "").ok());
  MustPut(SampleProfile("c", std::string(60, 'c')));
}

TEST_P(ProfileStoreTest, ListsByIdBytewise) {
  for (const char* id : {"b", "a-b", "B", "a", "\xff", "ab", "a0"})
    MustPut(SampleProfile(id, "content"));
  EXPECT_THAT(Ids({}), ElementsAre("B", "a", "a-b", "a0", "ab", "b", "\xff"));
}

TEST_P(ProfileStoreTest, ListGivesTheSummariesAsTheyWerePut) {
  StoredProfile without_labels = SampleProfile("b", "content");
  without_labels.summary.labels.clear();
  const ProfileSummary a = MustPut(SampleProfile("a", "content"));
  const ProfileSummary b = MustPut(without_labels);
  EXPECT_THAT(store_->List({})->profiles, ElementsAre(a, b));
}

TEST_P(ProfileStoreTest, PagesMeetWithoutGapOrOverlapAndTheLastOneSaysSo) {
  for (int i = 0; i < 10; ++i) MustPut(SampleProfile(absl::StrCat("p", i), "content"));
  for (int limit = 1; limit <= 11; ++limit) {
    std::vector<std::string> all;
    bool more = true;
    while (more) {
      const std::vector<std::string> page =
          Ids({.after = all.empty() ? "" : all.back(), .limit = limit}, &more);
      ASSERT_LE(page.size(), limit);
      ASSERT_EQ(page.empty(), false);
      all.insert(all.end(), page.begin(), page.end());
      ASSERT_EQ(more, all.size() < 10) << "limit " << limit;
    }
    EXPECT_THAT(all, ElementsAre("p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"));
  }
}

TEST_P(ProfileStoreTest, FiltersBeforeItCountsThePage) {
  for (int i = 0; i < 10; ++i) {
    StoredProfile profile = SampleProfile(absl::StrCat("p", i), "content");
    profile.summary.model = i % 2 == 0 ? "even" : "odd";
    profile.summary.labels = {{"third", absl::StrCat(i % 3)}};
    if (i > 5) profile.summary.labels["big"] = "";
    MustPut(profile);
  }
  bool more = false;
  EXPECT_THAT(Ids({.filter = {.model = "even"}, .limit = 4}, &more),
              ElementsAre("p0", "p2", "p4", "p6"));
  EXPECT_TRUE(more);
  EXPECT_THAT(Ids({.filter = {.model = "even"}, .limit = 5}, &more),
              ElementsAre("p0", "p2", "p4", "p6", "p8"));
  EXPECT_FALSE(more);  // p9 follows, but does not match
  EXPECT_THAT(Ids({.filter = {.labels = {{"third", "1"}}}, .after = "p1"}),
              ElementsAre("p4", "p7"));
  EXPECT_THAT(
      Ids({.filter = {.model = "odd", .labels = {{"third", "1"}}, .present_labels = {"big"}}}),
      ElementsAre("p7"));
  EXPECT_THAT(Ids({.filter = {.model = "none"}}), ElementsAre());
}

TEST_P(ProfileStoreTest, AWallClockThatJumpsBackChangesTimesOnly) {
  const ProfileSummary first = MustPut(SampleProfile("b", "content"), "request");
  clock_.SetWall(first.create_time_ns - 3'600'000'000'000);
  const ProfileSummary second = MustPut(SampleProfile("a", "other"), "another");
  EXPECT_EQ(second.create_time_ns, clock_.WallNs());
  EXPECT_EQ(MustPut(SampleProfile("b", "content"), "request"), first);
  EXPECT_THAT(store_->List({})->profiles, ElementsAre(second, first));
  EXPECT_TRUE(store_->Check().ok());
  EXPECT_TRUE(store_->Delete("b", first.etag).ok());
}

TEST_P(ProfileStoreTest, ChecksOk) { EXPECT_TRUE(store_->Check().ok()); }

TEST_P(ProfileStoreTest, ThreadsOnTheSameIdsSeeWholeProfilesOnly) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 60;
  constexpr int kIds = 4;
  const auto content_of = [](int id) { return SampleContent(static_cast<uint64_t>(id), 5000); };
  std::atomic<int> put{0};
  std::atomic<int> deleted{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < kRounds; ++round) {
        const int number = (thread + round) % kIds;
        const std::string id = absl::StrCat("p", number);
        const absl::StatusOr<ProfileSummary> stored =
            store_->Put(SampleProfile(id, content_of(number)), "");
        ASSERT_TRUE(stored.ok()) << stored.status();
        ++put;
        const absl::StatusOr<StoredProfile> got = store_->Get(id);
        if (got.ok()) {
          ASSERT_EQ(got->content, content_of(number));
        } else {
          ASSERT_EQ(got.status().code(), absl::StatusCode::kNotFound) << got.status();
        }
        const absl::StatusOr<ProfilePage> page = store_->List({});
        ASSERT_TRUE(page.ok()) << page.status();
        for (const ProfileSummary& summary : page->profiles) ASSERT_EQ(summary.labels.size(), 2);
        const absl::Status status = store_->Delete(id, stored->etag);
        if (status.ok()) {
          ++deleted;
        } else {
          ASSERT_THAT(DetailsOf(status).reason,
                      testing::AnyOf("PROFILE_NOT_FOUND", "ETAG_MISMATCH"));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(put, kThreads * kRounds);
  EXPECT_GT(deleted, 0);
}

}  // namespace
}  // namespace stepcast::server::profile_store_contract_test
