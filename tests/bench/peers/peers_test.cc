// The peers simulate what the engine simulates, on small random networks.
#include <cstdint>

#include "gtest/gtest.h"

#include "core/base/random.h"
#include "tests/bench/agreement.h"
#include "tests/bench/engine_run.h"
#include "tests/bench/job.h"
#include "tests/bench/peers/list_scheduling_peer.h"
#include "tests/bench/peers/pseudo_code_peer.h"

namespace stepcast::bench::peers_test {
namespace {

constexpr uint64_t kSeeds = 200;
constexpr int32_t kSteps = 3;
// Steps take milliseconds here, so a tick is more of them than in the benchmark.
constexpr double kTolerance = 1e-7;

struct SmallCase {
  explicit SmallCase(uint64_t seed, int32_t most_workers) {
    Random random({seed, 21});
    job = LayeredJob(1 + static_cast<int32_t>(random.Below(30)),
                     1 + static_cast<int32_t>(random.Below(4)), seed);
    options = OptionsFor(
        job, 1 + static_cast<int32_t>(random.Below(static_cast<uint64_t>(most_workers))), kSteps);
    options.seed = seed;
  }

  Job job = LayeredJob(1, 1, 1);
  RunOptions options;
};

TEST(PseudoCodePeerTest, EndsEveryStepWhenTheEngineDoes) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const SmallCase small(seed, 6);
    const PeerResult result = PseudoCodePeer(*small.job.program).Run(small.options);
    ASSERT_NO_THROW(RequireAgreement("the pseudo-code", EngineStepEnds(small.job, small.options),
                                     result.step_ends, kSteps, kTolerance));
  }
}

TEST(ListSchedulingPeerTest, EndsEveryStepAtTheEnginesVeryTick) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const SmallCase small(seed, 1);
    const PeerResult result = ListSchedulingPeer(*small.job.program).Run(small.options);
    ASSERT_NO_THROW(RequireAgreement("list scheduling", EngineStepEnds(small.job, small.options),
                                     result.step_ends, kSteps, 0));
  }
}

TEST(PeersTest, CountTheOperationsThatTheEngineCounts) {
  const Job job = LayeredJob(10, 2, 1);
  const RunOptions options = OptionsFor(job, 1, kSteps);
  const int64_t operations = RunEngine(job, options).operations;
  EXPECT_EQ(operations, int64_t{kSteps} * job.program->size());
  EXPECT_EQ(PseudoCodePeer(*job.program).Run(options).cost.operations, operations);
  EXPECT_EQ(ListSchedulingPeer(*job.program).Run(options).cost.operations, operations);
}

}  // namespace
}  // namespace stepcast::bench::peers_test
