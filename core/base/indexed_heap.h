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

  explicit IndexedHeap(size_t slots) : key_(slots), position_(slots, kAbsent) { heap_.reserve(slots); }

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  bool Contains(Slot slot) const { return position_[Index(slot)] != kAbsent; }
  // REQUIRES: Contains(slot).
  int64_t KeyOf(Slot slot) const { return key_[Index(slot)]; }
  // REQUIRES: !empty().
  Slot Top() const { return heap_.front(); }
  int64_t TopKey() const { return key_[Index(heap_.front())]; }

  // Puts the slot in, or gives it another key.
  void Set(Slot slot, int64_t key) {
    key_[Index(slot)] = key;
    int32_t at = position_[Index(slot)];
    if (at == kAbsent) {
      at = static_cast<int32_t>(heap_.size());
      heap_.push_back(slot);
    }
    SiftDown(SiftUp(at, slot), slot);
  }

  // Takes the slot out, if it is in.
  void Remove(Slot slot) {
    const int32_t at = position_[Index(slot)];
    if (at == kAbsent) return;
    position_[Index(slot)] = kAbsent;
    const Slot last = heap_.back();
    heap_.pop_back();
    if (last != slot) SiftDown(SiftUp(at, last), last);
  }

  // Visits (slot, key) of all, in no promised order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Slot slot : heap_) visit(slot, key_[Index(slot)]);
  }

  // REQUIRES: !empty().
  Slot Pop() {
    const Slot slot = Top();
    Remove(slot);
    return slot;
  }

 private:
  static constexpr int32_t kAbsent = -1;

  static size_t Index(int32_t slot) { return static_cast<size_t>(slot); }

  void Place(int32_t at, Slot slot) {
    heap_[Index(at)] = slot;
    position_[Index(slot)] = at;
  }

  // Both take a hole at `at` and return where the slot came to lie.
  int32_t SiftUp(int32_t at, Slot slot) {
    const int64_t key = key_[Index(slot)];
    while (at > 0) {
      const int32_t parent = (at - 1) / 2;
      const Slot above = heap_[Index(parent)];
      if (key_[Index(above)] <= key) break;
      Place(at, above);
      at = parent;
    }
    Place(at, slot);
    return at;
  }

  int32_t SiftDown(int32_t at, Slot slot) {
    const int64_t key = key_[Index(slot)];
    const auto size = static_cast<int32_t>(heap_.size());
    for (int32_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && key_[Index(heap_[Index(child + 1)])] < key_[Index(heap_[Index(child)])]) ++child;
      const Slot below = heap_[Index(child)];
      if (key_[Index(below)] >= key) break;
      Place(at, below);
      at = child;
    }
    Place(at, slot);
    return at;
  }

  std::vector<int64_t> key_;       // by slot
  std::vector<int32_t> position_;  // by slot; kAbsent: not in the heap
  std::vector<Slot> heap_;
};

}  // namespace stepcast
