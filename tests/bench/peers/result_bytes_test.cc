#include "tests/bench/peers/result_bytes.h"

#include "gtest/gtest.h"

namespace stepcast::bench::result_bytes_test {
namespace {

TEST(ResultBytesTest, AResultComesBackAsItWas) {
  const PeerResult result{.cost = {.cpu_ns = 12.5, .operations = 7},
                          .step_ends = {{0.25, 1.0 / 3}, {}, {2}}};
  const PeerResult back = FromBytes(ToBytes(result));
  EXPECT_EQ(back.cost.cpu_ns, result.cost.cpu_ns);
  EXPECT_EQ(back.cost.operations, result.cost.operations);
  EXPECT_EQ(back.step_ends, result.step_ends);
}

}  // namespace
}  // namespace stepcast::bench::result_bytes_test
