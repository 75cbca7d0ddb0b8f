#include "server/base/bounded_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"

namespace stepcast::server::bounded_cache_test {
namespace {

// The obvious way: a list that is searched from the last asked for on.
class Obvious {
 public:
  explicit Obvious(size_t max_bytes) : max_bytes_(max_bytes) {}

  std::optional<int> Find(const std::string& key) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].key != key) continue;
      const Entry found = entries_[i];
      entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
      entries_.insert(entries_.begin(), found);
      return found.value;
    }
    return std::nullopt;
  }
  void Keep(const std::string& key, int value, size_t value_bytes) {
    const size_t bytes = value_bytes + key.size() + BoundedCache<int>::kEntryBytes;
    if (bytes > max_bytes_) return;
    std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; });
    entries_.insert(entries_.begin(), {.key = key, .value = value, .bytes = bytes});
    while (Bytes() > max_bytes_) entries_.pop_back();
  }
  size_t Bytes() const {
    size_t bytes = 0;
    for (const Entry& entry : entries_) bytes += entry.bytes;
    return bytes;
  }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string key;
    int value = 0;
    size_t bytes = 0;
  };
  size_t max_bytes_;
  std::vector<Entry> entries_;
};

class Sums : public CacheObserver {
 public:
  void OnAsked(bool found) override { ++(found ? found_ : missed_); }
  void OnChanged(int64_t entries, int64_t bytes, int64_t dropped) override {
    entries_ += entries;
    bytes_ += bytes;
    dropped_ += dropped;
  }
  int64_t found_ = 0;
  int64_t missed_ = 0;
  int64_t entries_ = 0;
  int64_t bytes_ = 0;
  int64_t dropped_ = 0;
};

TEST(BoundedCacheTest, HoldsWhatAnObviousOneHolds) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 71});
    const size_t max_bytes = 200 + random.Below(3000);
    Sums sums;
    BoundedCache<int> cache(max_bytes, &sums);
    Obvious obvious(max_bytes);
    int64_t asked = 0;
    for (int i = 0; i < 500; ++i) {
      const std::string key = "key" + std::to_string(random.Below(20));
      if (random.Below(2) == 0) {
        const size_t bytes = random.Below(random.Below(10) == 0 ? 4000 : 400);
        cache.Keep(key, std::make_shared<const int>(i), bytes);
        obvious.Keep(key, i, bytes);
      } else {
        ++asked;
        const std::shared_ptr<const int> found = cache.Find(key);
        const std::optional<int> expected = obvious.Find(key);
        ASSERT_EQ(found != nullptr, expected.has_value()) << key;
        if (found != nullptr) {
          ASSERT_EQ(*found, *expected);
        }
      }
      ASSERT_EQ(cache.bytes(), obvious.Bytes());
      ASSERT_LE(cache.bytes(), max_bytes);
      ASSERT_EQ(sums.bytes_, static_cast<int64_t>(obvious.Bytes()));
      ASSERT_EQ(sums.entries_, static_cast<int64_t>(obvious.size()));
    }
    EXPECT_EQ(sums.found_ + sums.missed_, asked);
  }
}

TEST(BoundedCacheTest, AValueThatGoesLivesOnWithItsUsers) {
  constexpr size_t kRoomForOne = BoundedCache<std::string>::kEntryBytes + 20;
  Sums sums;
  BoundedCache<std::string> cache(kRoomForOne, &sums);
  cache.Keep("a", std::make_shared<const std::string>("first"), 5);
  const std::shared_ptr<const std::string> first = cache.Find("a");
  cache.Keep("b", std::make_shared<const std::string>("second"), 6);
  EXPECT_EQ(cache.Find("a"), nullptr);
  EXPECT_EQ(*first, "first");
  EXPECT_EQ(sums.dropped_, 1);
}

TEST(BoundedCacheTest, WhatDoesNotFitAloneLeavesTheOthers) {
  BoundedCache<int> cache(1000);
  cache.Keep("small", std::make_shared<const int>(1), 10);
  cache.Keep("large", std::make_shared<const int>(2), 1000);
  EXPECT_EQ(cache.Find("large"), nullptr);
  EXPECT_NE(cache.Find("small"), nullptr);
}

}  // namespace
}  // namespace stepcast::server::bounded_cache_test
