// A binary heap of slots ordered by key, whose keys can be changed and removed in place.
//
// Slots are 0 .. size-1, each in the heap at most once. Equal keys leave in no promised order: who
// needs one sorts what leaves together. Cost: Set, Remove and Pop O(log n), Top O(1); no allocation
// after construction. Behind the last entry lie empty ones with a key above all others, so that
// looking at a child that is not there needs no branch. Threads: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/index.h"
namespace stepcast {

class IndexedHeap {
 public:
  using Slot = int32_t;

  // The TopKey of an empty heap. Above every key.
  static constexpr int64_t kNoKey = std::numeric_limits<int64_t>::max();

  explicit IndexedHeap(size_t slots) : position_(slots, kAbsent), heap_(slots + kEmptyEntries) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return static_cast<size_t>(size_); }
  bool Contains(Slot slot) const { return position_[Index(slot)] != kAbsent; }
  // REQUIRES: Contains(slot).
  int64_t KeyOf(Slot slot) const { return heap_[Index(position_[Index(slot)])].key; }
  // REQUIRES: !empty().
  Slot Top() const { return heap_[0].slot; }
  int64_t TopKey() const { return heap_[0].key; }
  // The least key but the top's; kNoKey where there is none.
  int64_t SecondKey() const { return std::min(heap_[1].key, heap_[2].key); }

  // True if one slot's key is less than all others.
  bool HasOneTop() const {
    return static_cast<int>(heap_[1].key > heap_[0].key) &
           static_cast<int>(heap_[2].key > heap_[0].key);
  }

  // Puts the slot in, or gives it another key. REQUIRES: key < kNoKey.
  void Set(Slot slot, int64_t key) {
    const int32_t at = position_[Index(slot)];
    if (at == kAbsent) {
      SiftUp(size_++, {.key = key, .slot = slot});
    } else {
      Sift(at, {.key = key, .slot = slot});
    }
  }

  // Takes the slot out, if it is in.
  void Remove(Slot slot) {
    const int32_t at = position_[Index(slot)];
    if (at == kAbsent) return;
    position_[Index(slot)] = kAbsent;
    const Entry last = heap_[Index(--size_)];
    heap_[Index(size_)] = {};
    if (last.slot != slot) Sift(at, last);
  }

  // Visits (slot, key) of all, in no promised order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (int32_t at = 0; at < size_; ++at) visit(heap_[Index(at)].slot, heap_[Index(at)].key);
  }
  // Appends every slot whose key is the least, in no promised order. REQUIRES: !empty(). Cost: of
  // their number.
  void AppendTops(std::vector<Slot>& tops) const { AppendUpTo(TopKey(), tops); }
  // The same of every slot whose key is at most `key`. REQUIRES: TopKey() is.
  void AppendUpTo(int64_t key, std::vector<Slot>& tops) const {
    size_t next = tops.size();
    tops.push_back(Top());
    // They lie together at the top: what is below a greater key is greater.
    for (; next < tops.size(); ++next) {
      const int32_t child = 2 * position_[Index(tops[next])] + 1;
      if (child >= size_) continue;
      if (heap_[Index(child)].key <= key) tops.push_back(heap_[Index(child)].slot);
      if (heap_[Index(child + 1)].key <= key) tops.push_back(heap_[Index(child + 1)].slot);
    }
  }

  // REQUIRES: !empty().
  Slot Pop() {
    const Slot slot = Top();
    Remove(slot);
    return slot;
  }

 private:
  static constexpr int32_t kAbsent = -1;
  static constexpr size_t kEmptyEntries = 3;  // the top and both its children

  struct Entry {
    int64_t key = kNoKey;
    Slot slot = 0;
  };

  void Place(int32_t at, Entry entry) {
    heap_[Index(at)] = entry;
    position_[Index(entry.slot)] = at;
  }

  // These take a hole at `at`.
  void Sift(int32_t at, Entry entry) {
    if (at > 0 && heap_[Index((at - 1) / 2)].key > entry.key) {
      SiftUp(at, entry);
    } else {
      SiftDown(at, entry);
    }
  }

  void SiftUp(int32_t at, Entry entry) {
    while (at > 0) {
      const int32_t parent = (at - 1) / 2;
      const Entry above = heap_[Index(parent)];
      if (above.key <= entry.key) break;
      Place(at, above);
      at = parent;
    }
    Place(at, entry);
  }

  void SiftDown(int32_t at, Entry entry) {
    for (int32_t child = 2 * at + 1; child < size_; child = 2 * at + 1) {
      child += static_cast<int32_t>(heap_[Index(child + 1)].key < heap_[Index(child)].key);
      const Entry below = heap_[Index(child)];
      if (below.key >= entry.key) break;
      Place(at, below);
      at = child;
    }
    Place(at, entry);
  }

  std::vector<int32_t> position_;  // by slot; kAbsent: not in the heap
  std::vector<Entry> heap_;        // the first size_ are in use, all others empty
  int32_t size_ = 0;
};

}  // namespace stepcast
