#include "core/base/indexed_heap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "core/base/random.h"

namespace stepcast::indexed_heap_test {
namespace {

// A multiset of keys and a map from slot to key, which say together what the heap holds.
struct Obvious {
  std::multiset<int64_t> keys;
  std::map<IndexedHeap::Slot, int64_t> key_of;

  void Set(IndexedHeap::Slot slot, int64_t key) {
    Remove(slot);
    keys.insert(key);
    key_of[slot] = key;
  }
  void Remove(IndexedHeap::Slot slot) {
    const auto at = key_of.find(slot);
    if (at == key_of.end()) return;
    keys.erase(keys.find(at->second));
    key_of.erase(at);
  }
};

void ExpectSame(const IndexedHeap& heap, const Obvious& obvious) {
  ASSERT_EQ(heap.size(), obvious.key_of.size());
  ASSERT_EQ(heap.empty(), obvious.key_of.empty());
  if (heap.empty()) {
    ASSERT_EQ(heap.TopKey(), IndexedHeap::kNoKey);
    return;
  }
  ASSERT_EQ(heap.TopKey(), *obvious.keys.begin());
  ASSERT_EQ(obvious.key_of.at(heap.Top()), heap.TopKey());
  ASSERT_EQ(heap.SecondKey(),
            heap.size() == 1 ? IndexedHeap::kNoKey : *std::next(obvious.keys.begin()));
  std::map<IndexedHeap::Slot, int64_t> visited;
  heap.ForEach([&](IndexedHeap::Slot slot, int64_t key) { visited[slot] = key; });
  ASSERT_EQ(visited, obvious.key_of);
  std::vector<IndexedHeap::Slot> tops;
  heap.AppendTops(tops);
  ASSERT_EQ(heap.HasOneTop(), tops.size() == 1);
  const std::set<IndexedHeap::Slot> distinct(tops.begin(), tops.end());
  ASSERT_EQ(distinct.size(), tops.size());
  ASSERT_EQ(tops.size(), obvious.keys.count(heap.TopKey()));
  for (const IndexedHeap::Slot slot : tops) ASSERT_EQ(obvious.key_of.at(slot), heap.TopKey());
  const int64_t most = heap.TopKey() + 5;
  tops.clear();
  heap.AppendUpTo(most, tops);
  ASSERT_EQ(std::set<IndexedHeap::Slot>(tops.begin(), tops.end()).size(), tops.size());
  ASSERT_EQ(static_cast<std::ptrdiff_t>(tops.size()),
            std::distance(obvious.keys.begin(), obvious.keys.upper_bound(most)));
  for (const IndexedHeap::Slot slot : tops) ASSERT_LE(obvious.key_of.at(slot), most);
}

TEST(IndexedHeapTest, HoldsWhatAMultisetHolds) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 51});
    const uint64_t slots = 1 + random.Below(40);
    const uint64_t keys = 1 + random.Below(30);  // few, so that many are equal
    IndexedHeap heap(slots);
    Obvious obvious;
    for (int i = 0; i < 300; ++i) {
      const auto slot = static_cast<IndexedHeap::Slot>(random.Below(slots));
      const uint64_t what = random.Below(4);
      if (what < 2) {
        const auto key = static_cast<int64_t>(random.Below(keys)) - 10;
        heap.Set(slot, key);
        obvious.Set(slot, key);
      } else if (what == 2) {
        heap.Remove(slot);
        obvious.Remove(slot);
      } else if (!heap.empty()) {
        obvious.Remove(heap.Pop());
      }
      ASSERT_EQ(heap.Contains(slot), obvious.key_of.contains(slot));
      ASSERT_NO_FATAL_FAILURE(ExpectSame(heap, obvious));
    }
  }
}

TEST(IndexedHeapTest, LeavesInOrderOfKeys) {
  Random random({1, 52});
  IndexedHeap heap(500);
  for (IndexedHeap::Slot slot = 0; slot < 500; ++slot)
    heap.Set(slot, static_cast<int64_t>(random.Below(1000)));
  int64_t last = -1;
  for (; !heap.empty(); heap.Pop()) {
    EXPECT_GE(heap.TopKey(), last);
    last = heap.TopKey();
  }
}

}  // namespace
}  // namespace stepcast::indexed_heap_test
