#include "core/recommend/curve_ceiling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/random.h"

namespace stepcast::curve_ceiling_test {
namespace {

TEST(CurveCeilingTest, NothingKnownIsNoCeiling) {
  EXPECT_EQ(CurveCeiling().At(3), std::numeric_limits<double>::infinity());
}

TEST(CurveCeilingTest, MoreWorkersAreNoMoreEfficientThanFewer) {
  CurveCeiling curve;
  curve.Know(2, 10);
  EXPECT_EQ(curve.At(6), 30);
  EXPECT_EQ(curve.At(1), std::numeric_limits<double>::infinity());
}

TEST(CurveCeilingTest, EachWorkerMoreAddsNoMoreThanTheOneBefore) {
  CurveCeiling curve;
  curve.Know(2, 10);
  curve.Know(4, 14);
  EXPECT_EQ(curve.At(6), 18);
  curve.Know(8, 19);
  EXPECT_EQ(curve.At(6), 18);
  curve.Know(10, 20);
  EXPECT_EQ(curve.At(7), 18.5);  // on the line from 10 to 8
}

TEST(CurveCeilingTest, AFallingCurveMayStayAsHighAsItWas) {
  CurveCeiling curve;
  curve.Know(4, 20);
  curve.Know(6, 16);
  EXPECT_EQ(curve.At(8), 16);
  curve.Know(10, 12);
  EXPECT_EQ(curve.At(5),
            18);  // on the straight line from 4 to 6, which the line from 10 to 6 would cut
}

TEST(CurveCeilingTest, ExcessIsHowFarAResultIsAboveIt) {
  CurveCeiling curve;
  curve.Know(2, 10);
  curve.Know(4, 10);
  EXPECT_EQ(curve.ExcessOf(6, 10), 0);
  EXPECT_DOUBLE_EQ(curve.ExcessOf(6, 12), 0.2);
}

TEST(CurveCeilingTest, HoldsEveryConcaveCurveWhateverIsKnownOfIt) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 5});
    const double bend = 1 + 20 * random.Unit();
    const double fall = random.Unit() < 0.3 ? 0.01 * random.Unit() : 0;
    const auto value = [&](int32_t w) { return w / (w + bend) - fall * w; };
    CurveCeiling curve;
    std::set<int32_t> known;
    for (int i = 0; i < 12; ++i) {
      const auto workers = static_cast<int32_t>(1 + random.Below(64));
      if (!known.insert(workers).second) continue;
      EXPECT_LE(curve.ExcessOf(workers, value(workers)), 1e-12);
      curve.Know(workers, value(workers));
      for (int32_t w = 1; w <= 64; ++w) {
        if (known.count(w) == 0) {
          EXPECT_GE(curve.At(w), value(w) - 1e-12) << w;
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepcast::curve_ceiling_test
