#include "core/importing/pytorch/gradient_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/base/random.h"

namespace stepcast::gradient_buckets_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMiB = 1 << 20;

TEST(GradientBucketsTest, ABucketIsClosedOnceItHasReachedItsLimit) {
  EXPECT_THAT(AssignBuckets({kMiB, 1, 25 * kMiB, 1, 1}, {}), ElementsAre(1, 2, 2));
  EXPECT_THAT(AssignBuckets({kMiB - 1, 1, 25 * kMiB - 1, 1}, {}), ElementsAre(2, 2));
  EXPECT_THAT(AssignBuckets({}, {}), IsEmpty());
}

// ResNet-18's gradients by torchvision's architecture, in the order of backward. Their buckets as
// pytorch/pytorch#48880 reports them.
std::vector<int64_t> ResNet18() {
  std::vector<int64_t> elements = {1000, 512'000};
  for (int64_t channels = 512; channels >= 64; channels /= 2) {
    const int64_t before = channels == 64 ? 64 : channels / 2;
    for (const int64_t convolution : {channels * channels * 9, channels * channels * 9})
      elements.insert(elements.end(), {channels, channels, convolution});
    if (channels > 64) elements.insert(elements.end(), {channels, channels, before * channels});
    for (const int64_t convolution : {channels * channels * 9, before * channels * 9})
      elements.insert(elements.end(), {channels, channels, convolution});
  }
  elements.insert(elements.end(), {64, 64, 64 * 3 * 49});
  std::vector<int64_t> bytes;
  for (const int64_t count : elements) bytes.push_back(4 * count);
  return bytes;
}

std::vector<int64_t> Sizes(const std::vector<int64_t>& bytes, const std::vector<size_t>& counts) {
  std::vector<int64_t> sizes;
  size_t next = 0;
  for (const size_t count : counts) {
    sizes.push_back(0);
    for (size_t i = 0; i < count; ++i) sizes.back() += bytes[next++];
  }
  return sizes;
}

TEST(GradientBucketsTest, OfResNet18AreThoseThatWereReported) {
  const std::vector<int64_t> bytes = ResNet18();
  ASSERT_EQ(bytes.size(), 62U);
  ASSERT_EQ(std::accumulate(bytes.begin(), bytes.end(), int64_t{0}), 4 * 11'689'512);
  EXPECT_THAT(Sizes(bytes, AssignBuckets(bytes, {})),
              ElementsAre(2'052'000, 28'852'224, 15'853'824));
  EXPECT_THAT(Sizes(bytes, AssignBuckets(bytes, {.cap_bytes = 35 * kMiB})),
              ElementsAre(2'052'000, 38'297'600, 6'408'448));
}

// Tensors that a hook sends of each bucket: what stays as it is, and two thin matrices for each
// other.
TEST(GradientBucketsTest, TheRankOfPowerSgdIsFoundAgain) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random({seed, 34});
    const auto rank = static_cast<int64_t>(1 + random.Below(8));
    std::vector<GradientShape> shapes;
    std::vector<int64_t> sent;
    int64_t whole = 0;
    for (uint64_t buckets = 1 + random.Below(4); buckets > 0; --buckets) {
      std::array<int64_t, 3> parts = {};
      for (uint64_t count = 1 + random.Below(6); count > 0; --count) {
        const auto rows = static_cast<int64_t>(64 + random.Below(1000));
        const auto columns = static_cast<int64_t>(64 + random.Below(1000));
        shapes.push_back({.rows = rows, .elements = rows * columns});
        shapes.push_back({.rows = rows, .elements = rows});
        parts[0] += rows;
        parts[1] += rows * rank;
        parts[2] += columns * rank;
        whole += rows * columns + rows;
      }
      sent.insert(sent.end(), parts.begin(), parts.end());
    }
    // Matrices of which it saves less than half stay as they are.
    const bool is_usual =
        std::all_of(shapes.begin(), shapes.end(), [rank](const GradientShape& shape) {
          const int64_t columns = shape.elements / shape.rows;
          return columns == 1 || 2 * rank * (shape.rows + columns) < shape.elements;
        });
    if (is_usual) {
      EXPECT_EQ(PowerSgdRank(shapes, sent), rank) << "seed " << seed;
    }
    EXPECT_EQ(PowerSgdRank(shapes, {whole}), 0) << "seed " << seed;
    EXPECT_EQ(PowerSgdRank(shapes, {whole / 2, whole - whole / 2}), 0) << "seed " << seed;
  }
}

TEST(GradientBucketsTest, MembersAndCapAreFoundAgain) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random({seed, 9});
    std::vector<int64_t> bytes;
    for (uint64_t count = 1 + random.Below(60); count > 0; --count)
      bytes.push_back(static_cast<int64_t>(1 + random.Below(3 * kMiB)));
    const Buckets rule = {.first_bytes = static_cast<int64_t>(1 + random.Below(2 * kMiB)),
                          .cap_bytes = static_cast<int64_t>(1 + random.Below(10 * kMiB))};
    const std::vector<size_t> counts = AssignBuckets(bytes, rule);
    const std::vector<int64_t> sizes = Sizes(bytes, counts);
    const std::optional<BucketMembers> members = FindBucketMembers(bytes, sizes);
    ASSERT_TRUE(members.has_value()) << "seed " << seed;
    EXPECT_EQ(members->counts, counts) << "seed " << seed;
    EXPECT_EQ(members->skipped, 0U) << "seed " << seed;
    const std::optional<CapRange> caps = CapsThatMake(bytes, counts);
    ASSERT_TRUE(caps.has_value()) << "seed " << seed;
    EXPECT_LE(caps->least, rule.cap_bytes) << "seed " << seed;
    EXPECT_GE(caps->most, rule.cap_bytes) << "seed " << seed;
    for (const int64_t cap : {caps->least, std::min(caps->most, 100 * kMiB)}) {
      EXPECT_EQ(AssignBuckets(bytes, {.first_bytes = rule.first_bytes, .cap_bytes = cap}), counts)
          << "seed " << seed << " cap " << cap;
    }
  }
}

TEST(GradientBucketsTest, LimitsOfTheFirstBucketMakeIt) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random({seed, 10});
    std::vector<int64_t> bytes;
    for (uint64_t count = 1 + random.Below(20); count > 0; --count)
      bytes.push_back(static_cast<int64_t>(1 + random.Below(3 * kMiB)));
    const Buckets rule = {.first_bytes = static_cast<int64_t>(1 + random.Below(4 * kMiB)),
                          .cap_bytes = 8 * kMiB};
    const std::vector<size_t> counts = AssignBuckets(bytes, rule);
    const CapRange limits = FirstLimitsThatMake(bytes, counts);
    EXPECT_EQ(limits.most == INT64_MAX, counts.size() == 1) << "seed " << seed;
    for (const int64_t first : {limits.least, std::min(limits.most, 100 * kMiB)}) {
      EXPECT_EQ(AssignBuckets(bytes, {.first_bytes = first, .cap_bytes = rule.cap_bytes}), counts)
          << "seed " << seed << " first " << first;
    }
    if (limits.least > 1) {
      EXPECT_NE(
          AssignBuckets(bytes, {.first_bytes = limits.least - 1, .cap_bytes = rule.cap_bytes}),
          counts)
          << "seed " << seed;
    }
  }
}

TEST(GradientBucketsTest, OfMicroStepsOnlyTheLastIsSent) {
  const std::optional<BucketMembers> members = FindBucketMembers({5, 6, 7, 5, 6, 7}, {11, 7});
  ASSERT_TRUE(members.has_value());
  EXPECT_EQ(members->skipped, 3U);
  EXPECT_THAT(members->counts, ElementsAre(2, 1));
}

TEST(GradientBucketsTest, SizesThatDoNotAddUpHaveNoMembers) {
  EXPECT_FALSE(FindBucketMembers({5, 6, 7}, {10, 8}).has_value());
  EXPECT_FALSE(FindBucketMembers({5, 6, 7}, {19}).has_value());
  EXPECT_FALSE(FindBucketMembers({5, 6, 7}, {6, 13}).has_value());
}

TEST(GradientBucketsTest, NoCapMakesBucketsThatGrowAndShrink) {
  EXPECT_FALSE(CapsThatMake({1, 9, 1, 1, 1, 1}, {1, 2, 1, 2}).has_value());
}

}  // namespace
}  // namespace stepcast::gradient_buckets_test
