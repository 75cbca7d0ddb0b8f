// A binary heap of slots ordered by key, whose keys can be changed and removed in place.
//
// Slots are 0 .. size-1, each in the heap at most once. Equal keys leave in no promised order: who needs one sorts what leaves together.
// Cost: Set, Remove and Pop O(log n), Top O(1); no allocation after construction.
// Threads: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast {

class IndexedHeap {
 public:
  using Slot = int32_t;

  explicit IndexedHeap(size_t slots) : position_(slots, kAbsent) { heap_.reserve(slots); }

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  bool Contains(Slot slot) const { return position_[Index(slot)] != kAbsent; }
  // REQUIRES: Contains(slot).
  int64_t KeyOf(Slot slot) const { return heap_[Index(position_[Index(slot)])].key; }
  // REQUIRES: !empty().
  Slot Top() const { return heap_.front().slot; }
  int64_t TopKey() const { return heap_.front().key; }

  // Whether there is one slot whose key is less than all others.
  bool HasOneTop() const {
    return !heap_.empty() && (heap_.size() < 2 || heap_[1].key > heap_[0].key) && (heap_.size() < 3 || heap_[2].key > heap_[0].key);
  }

  // Puts the slot in, or gives it another key.
  void Set(Slot slot, int64_t key) {
    const int32_t at = position_[Index(slot)];
    if (at == kAbsent) {
      heap_.push_back({});
      SiftUp(static_cast<int32_t>(heap_.size()) - 1, {.key = key, .slot = slot});
    } else {
      Sift(at, {.key = key, .slot = slot});
    }
  }

  // Takes the slot out, if it is in.
  void Remove(Slot slot) {
    const int32_t at = position_[Index(slot)];
    if (at == kAbsent) return;
    position_[Index(slot)] = kAbsent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (last.slot != slot) Sift(at, last);
  }

  // Visits (slot, key) of all, in no promised order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Entry& entry : heap_) visit(entry.slot, entry.key);
  }
  // Appends every slot whose key is the least, in no promised order. REQUIRES: !empty(). Cost: of their number.
  void AppendTops(std::vector<Slot>& tops) const {
    size_t next = tops.size();
    const int64_t key = TopKey();
    tops.push_back(Top());
    // They lie together at the top: what is below another key is not least.
    for (; next < tops.size(); ++next) {
      const size_t child = 2 * Index(position_[Index(tops[next])]) + 1;
      if (child < heap_.size() && heap_[child].key == key) tops.push_back(heap_[child].slot);
      if (child + 1 < heap_.size() && heap_[child + 1].key == key) tops.push_back(heap_[child + 1].slot);
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

  struct Entry {
    int64_t key = 0;
    Slot slot = 0;
  };

  static size_t Index(int32_t slot) { return static_cast<size_t>(slot); }

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
    const auto size = static_cast<int32_t>(heap_.size());
    for (int32_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && heap_[Index(child + 1)].key < heap_[Index(child)].key) ++child;
      const Entry below = heap_[Index(child)];
      if (below.key >= entry.key) break;
      Place(at, below);
      at = child;
    }
    Place(at, entry);
  }

  std::vector<int32_t> position_;  // by slot; kAbsent: not in the heap
  std::vector<Entry> heap_;
};

}  // namespace stepcast
