// Killed at a random moment, the store has every profile it acknowledged, whole, and no other half
// there.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "server/base/clock.h"
#include "server/store/sqlite_profile_store.h"
#include "tests/server/store/sample_profile.h"
#include "tests/server/store/temporary_directory.h"

namespace stepcast::server::sqlite_profile_store_crash_test {
namespace {

// From a few bytes to some hundred pages, so that a kill falls into every phase of a transaction.
std::string ContentOf(uint64_t number) {
  return SampleContent(number, 1 + number * 7919 % 300'000);
}

// Puts profiles first, first + 1, ... until killed, deleting every fifth again, and writes each
// number to `pipe` once it is acknowledged.
[[noreturn]] void PutForEver(const std::string& directory, uint64_t first, int pipe) {
  const FakeClock clock;
  const auto store = SqliteProfileStore::Open({.directory = directory}, clock);
  if (!store.ok()) _exit(1);
  for (uint64_t number = first;; ++number) {
    const std::string id = absl::StrCat("p", number);
    if (!(*store)->Put(SampleProfile(id, ContentOf(number)), absl::StrCat("request", number)).ok())
      _exit(2);
    if (number % 5 == 0 && !(*store)->Delete(id, "").ok()) _exit(3);
    if (write(pipe, &number, sizeof number) != sizeof number) _exit(4);
  }
}

class Round {
 public:
  Round(const std::string& directory, uint64_t first,
        void (*write_for_ever)(const std::string&, uint64_t, int) = PutForEver) {
    int ends[2];
    if (pipe(ends) != 0) return;
    child_ = fork();
    if (child_ == 0) write_for_ever(directory, first, ends[1]);
    close(ends[1]);
    acknowledgements_ = ends[0];
  }

  bool Next(uint64_t& number) const {
    return read(acknowledgements_, &number, sizeof number) == sizeof number;
  }

  // Returns whether it was the signal that ended the child, which means that it had met no error.
  bool Kill() const {
    kill(child_, SIGKILL);
    int status = 0;
    return waitpid(child_, &status, 0) == child_ && WIFSIGNALED(status);
  }

  ~Round() { close(acknowledgements_); }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

 private:
  pid_t child_ = -1;
  int acknowledgements_ = -1;
};

// Every profile listed is whole; returns their numbers.
std::set<uint64_t> ReadAll(SqliteProfileStore& store) {
  std::set<uint64_t> numbers;
  const absl::StatusOr<ProfilePage> page = store.List({.limit = 1'000'000});
  EXPECT_TRUE(page.ok()) << page.status();
  if (!page.ok()) return numbers;
  for (const ProfileSummary& summary : page->profiles) {
    uint64_t number = 0;
    EXPECT_TRUE(absl::SimpleAtoi(summary.id.substr(1), &number)) << summary.id;
    const absl::StatusOr<StoredProfile> got = store.Get(summary.id);
    EXPECT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(got.ok() && got->content == ContentOf(number)) << summary.id;
    EXPECT_EQ(summary.labels.size(), 2) << summary.id;
    numbers.insert(number);
  }
  return numbers;
}

// Replaces one profile by version first, first + 1, ... until killed, and writes each number to
// `pipe` once it is acknowledged.
[[noreturn]] void ReplaceForEver(const std::string& directory, uint64_t first, int pipe) {
  const FakeClock clock;
  const auto store = SqliteProfileStore::Open({.directory = directory}, clock);
  if (!store.ok()) _exit(1);
  for (uint64_t number = first;; ++number) {
    const StoredProfile next = SampleProfile("a", ContentOf(number));
    if (!(*store)->Replace(next, {.allow_missing = true}).ok()) _exit(2);
    if (write(pipe, &number, sizeof number) != sizeof number) _exit(3);
  }
}

TEST(SqliteProfileStoreCrashTest, KilledWhileReplacingItHasTheFormerOrTheNewOne) {
  constexpr int kRounds = 20;
  const uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << std::endl;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const TemporaryDirectory directory;
  uint64_t next = 1;
  for (int round_number = 0; round_number < kRounds; ++round_number) {
    SCOPED_TRACE(absl::StrCat("round ", round_number));
    uint64_t last = 0;
    {
      const Round round(directory.path(), next, ReplaceForEver);
      const uint64_t wanted = 1 + random() % 20;
      for (uint64_t i = 0; i < wanted && round.Next(last);) ++i;
      for (uint64_t left = random() % 400'000; left > 0; --left) random();
      ASSERT_TRUE(round.Kill());
      while (round.Next(last)) {
      }
    }
    ASSERT_GE(last, next) << "nothing was acknowledged";
    const FakeClock clock;
    const auto store = SqliteProfileStore::Open({.directory = directory.path()}, clock);
    ASSERT_TRUE(store.ok()) << store.status();
    const absl::StatusOr<StoredProfile> got = (*store)->Get("a");
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(got->content == ContentOf(last) || got->content == ContentOf(last + 1));
    ASSERT_EQ((*store)->List({})->profiles.size(), 1U);
    next = last + 2;
  }
}

TEST(SqliteProfileStoreCrashTest, EveryAcknowledgedProfileSurvivesAKill) {
  constexpr int kRounds = 20;
  const uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << std::endl;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const TemporaryDirectory directory;
  std::set<uint64_t> acknowledged;
  uint64_t next = 1;
  for (int round_number = 0; round_number < kRounds; ++round_number) {
    SCOPED_TRACE(absl::StrCat("round ", round_number));
    uint64_t last = 0;
    {
      const Round round(directory.path(), next);
      const uint64_t wanted = 1 + random() % 40;
      for (uint64_t i = 0; i < wanted && round.Next(last); ++i) {
        if (last % 5 != 0) acknowledged.insert(last);
      }
      // Some way into the next one: as long as it takes to draw so many numbers.
      for (uint64_t left = random() % 400'000; left > 0; --left) random();
      ASSERT_TRUE(round.Kill());
      // Writes that it acknowledged while we waited.
      while (round.Next(last)) {
        if (last % 5 != 0) acknowledged.insert(last);
      }
    }
    ASSERT_GE(last, next) << "nothing was acknowledged";
    const FakeClock clock;
    const auto store = SqliteProfileStore::Open({.directory = directory.path()}, clock);
    ASSERT_TRUE(store.ok()) << store.status();
    const std::set<uint64_t> found = ReadAll(**store);
    // The one on its way when the kill came may be there, whole, or not.
    if (found.contains(last + 1)) acknowledged.insert(last + 1);
    ASSERT_EQ(found, acknowledged);
    next = last + 2;
  }
  std::cout << acknowledged.size() << " profiles in " << kRounds << " rounds" << std::endl;
}

}  // namespace
}  // namespace stepcast::server::sqlite_profile_store_crash_test
