// A stable sort that asks whether it should stop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/stop_check.h"

namespace stepcast {

// Sorts as std::stable_sort does. False: `pace` told to stop, and the items are in any order. Cost:
// O(n log n); memory: as much again as the items.
template <typename Item, typename Less>
bool PacedStableSort(std::vector<Item>& items, Less less, PacedStopCheck& pace) {
  constexpr size_t kRun = 1024;
  const size_t size = items.size();
  using Difference = typename std::vector<Item>::difference_type;
  const auto at = [](std::vector<Item>& list, size_t i) {
    return list.begin() + static_cast<Difference>(i);
  };
  for (size_t begin = 0; begin < size; begin += kRun) {
    const size_t end = std::min(begin + kRun, size);
    std::stable_sort(at(items, begin), at(items, end), less);
    if (!pace.GoesOn(static_cast<int64_t>(kRun))) return false;
  }
  std::vector<Item> merged(size > kRun ? size : 0);
  for (size_t run = kRun; run < size; run *= 2) {
    for (size_t begin = 0; begin < size; begin += 2 * run) {
      const size_t middle = std::min(begin + run, size);
      const size_t end = std::min(middle + run, size);
      size_t a = begin;
      size_t b = middle;
      for (size_t to = begin; to < end; ++to) {
        const bool second = a == middle || (b < end && less(items[b], items[a]));
        merged[to] = std::move(items[second ? b++ : a++]);
        if (!pace.GoesOn(1)) return false;
      }
    }
    items.swap(merged);
  }
  return true;
}

}  // namespace stepcast
