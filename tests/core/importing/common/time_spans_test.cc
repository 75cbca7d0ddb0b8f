#include "core/importing/common/time_spans.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/random.h"

namespace stepcast::time_spans_test {
namespace {

constexpr int64_t kEnd = 60;

std::vector<TimeSpan> RandomSpans(Random& random) {
  std::vector<TimeSpan> spans;
  for (uint64_t count = random.Below(8); count > 0; --count) {
    const auto start = static_cast<int64_t>(random.Below(kEnd));
    spans.push_back({start, start + static_cast<int64_t>(random.Below(12))});
  }
  return spans;
}

// Each nanosecond by itself.
std::vector<bool> Marked(const std::vector<TimeSpan>& spans) {
  std::vector<bool> marked(2 * kEnd, false);
  for (const TimeSpan& span : spans) {
    for (int64_t at = span.start_ns; at < span.end_ns; ++at) marked[static_cast<size_t>(at)] = true;
  }
  return marked;
}

TEST(TimeSpansTest, AreWhatEachNanosecondByItselfSays) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random({seed, 15});
    const std::vector<TimeSpan> some = RandomSpans(random);
    const std::vector<TimeSpan> others = RandomSpans(random);
    const std::vector<TimeSpan> a = UnionOf(some);
    const std::vector<TimeSpan> b = UnionOf(others);
    const std::vector<bool> in_a = Marked(some);
    const std::vector<bool> in_b = Marked(others);
    ASSERT_EQ(Marked(a), in_a) << "seed " << seed;
    for (size_t i = 1; i < a.size(); ++i)
      ASSERT_GT(a[i].start_ns, a[i - 1].end_ns) << "seed " << seed;
    const std::vector<bool> in_both = Marked(BothOf(a, b));
    const std::vector<bool> in_gaps = Marked(GapsOf(a, 10, 50));
    LengthBefore length(a);
    int64_t passed = 0;
    for (int64_t at = 0; at < 2 * kEnd; ++at) {
      const auto index = static_cast<size_t>(at);
      ASSERT_EQ(length.At(at), passed) << "seed " << seed << " at " << at;
      ASSERT_EQ(in_both[index], in_a[index] && in_b[index]) << "seed " << seed << " at " << at;
      ASSERT_EQ(in_gaps[index], at >= 10 && at < 50 && !in_a[index])
          << "seed " << seed << " at " << at;
      passed += in_a[index] ? 1 : 0;
    }
    ASSERT_EQ(LengthOf(a), passed) << "seed " << seed;
  }
}

}  // namespace
}  // namespace stepcast::time_spans_test
