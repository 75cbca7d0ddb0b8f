#include "core/orders/list_schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "core/base/random.h"
#include "core/engine/simulation.h"
#include "core/zoo/model_zoo.h"
#include "tests/core/engine/random_case.h"
#include "tests/core/predict/example_profiles.h"

namespace stepcast::list_schedule_test {
namespace {

std::vector<int32_t> AnyOrder(size_t size, Random& random) {
  std::vector<int32_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = size; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

// By the engine: the place in the order is the rank.
Span ByTheEngine(const LeastStep& step, const ListSchedule& schedule,
                 const std::vector<int32_t>& order) {
  std::vector<int32_t> ranks(static_cast<size_t>(step.graph().size()), Ranking::kUnranked);
  for (size_t place = 0; place < order.size(); ++place) {
    ranks[static_cast<size_t>(schedule.downloads()[static_cast<size_t>(order[place])])] =
        static_cast<int32_t>(place);
  }
  return step.Makespan(ranks, NeverStop).value();
}

TEST(ListScheduleTest, EqualsTheEngineToTheTickOnRandomJobs) {
  int32_t with_cut = 0;
  int32_t with_shared_link = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const testing::RandomCase random_case = testing::MakeRandomCase(seed);
    const LeastStep step = LeastStep::Build(random_case.profile, random_case.scenario).value();
    ListSchedule schedule = ListSchedule::Make(step, NeverStop).value();
    if (schedule.downloads().empty()) continue;
    if (schedule.after_cut() > Span{}) ++with_cut;
    if (step.worker_link_binds()) ++with_shared_link;
    Random random({seed, 1});
    for (int32_t i = 0; i < 4; ++i) {
      const std::vector<int32_t> order = AnyOrder(schedule.downloads().size(), random);
      ASSERT_EQ(schedule.Makespan(order), ByTheEngine(step, schedule, order));
    }
  }
  EXPECT_GT(with_cut, 300);
  EXPECT_GT(with_shared_link, 300);
}

TEST(ListScheduleTest, EqualsTheEngineToTheTickOnEveryModelOfTheZoo) {
  for (const std::string_view model : ZooModels()) {
    SCOPED_TRACE(model);
    const Profile profile =
        BuildZooProfile(model, {.platform = {.bandwidth_bytes_per_second = 1.25e9}}).value();
    const LeastStep step = LeastStep::Build(profile, ResolveScenario(profile, {}).value()).value();
    ListSchedule schedule = ListSchedule::Make(step, NeverStop).value();
    // The loss cuts the graph; what is behind it is most of a training step.
    EXPECT_LT(2 * schedule.scheduled().size(), static_cast<size_t>(step.graph().size()));
    Random random({1});
    for (int32_t i = 0; i < 5; ++i) {
      const std::vector<int32_t> order = AnyOrder(schedule.downloads().size(), random);
      EXPECT_EQ(schedule.Makespan(order), ByTheEngine(step, schedule, order));
    }
  }
}

TEST(ListScheduleTest, GivesUpAtTheLimitAndOnlyThere) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const testing::RandomCase random_case = testing::MakeRandomCase(seed);
    const LeastStep step = LeastStep::Build(random_case.profile, random_case.scenario).value();
    ListSchedule schedule = ListSchedule::Make(step, NeverStop).value();
    Random random({seed, 2});
    const std::vector<int32_t> order = AnyOrder(schedule.downloads().size(), random);
    const Span makespan = schedule.Makespan(order);
    EXPECT_EQ(schedule.Makespan(order, makespan), makespan);
    EXPECT_EQ(schedule.Makespan(order, makespan - Span{1}), kNever);
    EXPECT_EQ(schedule.Makespan(order, Span{}), kNever);
    EXPECT_EQ(schedule.Makespan(order), makespan);  // nothing is left of what was given up
  }
}

}  // namespace
}  // namespace stepcast::list_schedule_test
