#include "server/handlers/expected_work.h"

#include "gtest/gtest.h"

#include "tests/server/support/random_profile.h"

namespace stepcast::server::expected_work_test {
namespace {

TEST(ExpectedWorkTest, APredictionsWorkIsThatOfItsWorkersAndOfTheOneTheyAreComparedWith) {
  const Profile profile = *Profile::Create(RandomProfile(1));
  ThroughputQuery query{.scenarios = {Scenario{.workers = 3}, Scenario{.workers = 6}},
                        .options = {.steps_per_worker = 100, .replications = 2}};
  EXPECT_DOUBLE_EQ(OperationsOf(profile, query),
                   10.0 * static_cast<double>(profile.operations().size()) * 100 * 2);
}

TEST(ExpectedWorkTest, IsWithinAFactorOfFiveOfWhatIsSimulated) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Profile profile = *Profile::Create(RandomProfile(seed));
    const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(
        profile, {.worker_counts = {1, 2, 5},
                  .options = {.steps_per_worker = 60, .warmup_steps = 10, .replications = 3}});
    ASSERT_TRUE(query.ok()) << query.status();
    const auto answer = PredictThroughput(profile, *query, [] { return absl::OkStatus(); });
    if (!answer.ok()) continue;
    // The runs with the other start, which tell whether it is steady, come on top.
    EXPECT_LE(static_cast<double>(answer->simulation.simulated_operations),
              5 * OperationsOf(profile, *query))
        << "seed " << seed;
    EXPECT_GE(static_cast<double>(answer->simulation.simulated_operations),
              0.2 * OperationsOf(profile, *query))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace stepcast::server::expected_work_test
