#include "core/base/stop_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace stepcast::stop_check_test {
namespace {

using Item = std::pair<int64_t, size_t>;

bool Less(const Item& a, const Item& b) { return a.first < b.first; }

TEST(PacedSortTest, SortsAsTheLibraryDoes) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random({seed, 3});
    std::vector<Item> items(random.Below(seed % 5 == 0 ? 20'000 : 1'500));
    const uint64_t values = 1 + random.Below(2'000);
    for (size_t i = 0; i < items.size(); ++i)
      items[i] = {static_cast<int64_t>(random.Below(values)), i};
    std::vector<Item> expected = items;
    std::stable_sort(expected.begin(), expected.end(), Less);
    PacedStopCheck pace(NeverStop);
    ASSERT_TRUE(PacedStableSort(items, Less, pace));
    ASSERT_EQ(items, expected) << "seed " << seed;
  }
}

TEST(PacedSortTest, StopsAtEveryCheck) {
  std::vector<Item> many(50'000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = {static_cast<int64_t>(i * 7919 % 50'000), i};
  int checks = 0;
  for (bool sorted = false; !sorted; ++checks) {
    int asked = 0;
    const auto stop = [&] {
      return asked++ == checks ? absl::CancelledError("enough") : absl::OkStatus();
    };
    PacedStopCheck pace(stop);
    std::vector<Item> items = many;
    sorted = PacedStableSort(items, Less, pace);
    EXPECT_EQ(sorted, pace.status().ok());
  }
  // Runs, and six rounds of merging, of 50,000 each.
  EXPECT_GT(checks, 50);
}

}  // namespace
}  // namespace stepcast::stop_check_test
