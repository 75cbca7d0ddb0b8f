#include <gtest/gtest.h>

#include "core/calibrate/parsing_overhead_fit.h"
#include "tests/core/calibrate/streams.h"

namespace stepcast::lone_transfers_test {
namespace {

using testing::ProfileOf;

// At a byte a nanosecond.
TEST(LoneTransfersTest, OnlyWhatNothingHeldUpIsMeasured) {
  const Profile profile = ProfileOf({{{0, 1000, 1300}, {10, 1000, 2300}, {5000, 500, 5600}},
                                     // The second overtook the first.
                                     {{0, 1000, 2000}, {10, 1000, 1500}, {5000, 500, 5400}}},
                                    1e9);
  const std::vector<ParsingMeasurement> measured = MeasureLoneTransfers(profile, NeverStop).value();
  ASSERT_EQ(measured.size(), 3U);
  EXPECT_EQ(measured[0].size_bytes, 1000);
  EXPECT_NEAR(measured[0].seconds, 300e-9, 1e-15);
  EXPECT_EQ(measured[1].size_bytes, 500);
  EXPECT_NEAR(measured[1].seconds, 100e-9, 1e-15);
  EXPECT_EQ(measured[2].seconds, 0);
}

TEST(LoneTransfersTest, StopsWhenTold) {
  EXPECT_EQ(MeasureLoneTransfers(ProfileOf({{{0, 1000, 1300}}}, 1e9),
                                 [] { return absl::CancelledError(); })
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stepcast::lone_transfers_test
