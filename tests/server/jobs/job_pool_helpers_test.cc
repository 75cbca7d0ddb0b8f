// The threads that a job pool lends while they are idle.
#include <atomic>
#include <future>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

#include "server/jobs/job_pool.h"
#include "tests/server/jobs/counting_observer.h"
#include "tests/server/jobs/gate.h"

namespace stepcast::server::job_pool_helpers_test {
namespace {

TEST(JobPoolHelpersTest, AHelperIsTakenOnlyIfAThreadIsIdle) {
  Gate gate;
  CountingObserver observer;
  std::atomic<int> helped{0};
  JobPool pool({.threads = 3, .queue_max = 0, .helpers = 3, .observer = &observer});
  const OpenAtEnd open(gate);
  const auto help = [&] {
    gate.Wait();
    ++helped;
  };
  ASSERT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  EXPECT_TRUE(pool.SubmitIfIdle(help));
  EXPECT_TRUE(pool.HasIdle());
  EXPECT_TRUE(pool.SubmitIfIdle(help));
  EXPECT_FALSE(pool.HasIdle());
  EXPECT_FALSE(pool.SubmitIfIdle(help));
  EXPECT_FALSE(pool.IsCrowded());
  gate.Open();
  pool.Drain();
  EXPECT_FALSE(pool.HasIdle());
  EXPECT_EQ(helped, 2);
  EXPECT_EQ(observer.queued, 1);
  EXPECT_EQ(observer.started, 1);
  EXPECT_EQ(observer.done, 1);
  EXPECT_EQ(observer.refused, 0);
}

TEST(JobPoolHelpersTest, APoolWithoutHelpersTakesNone) {
  JobPool pool({.threads = 2});
  EXPECT_FALSE(pool.SubmitIfIdle([] { FAIL() << "ran"; }));
}

TEST(JobPoolHelpersTest, NoJobIsRefusedForAHelperOrWaitsForOne) {
  Gate gate;
  Gate helper_may_end;
  JobPool pool({.threads = 2, .queue_max = 1, .helpers = 2});
  const OpenAtEnd open(gate);
  const OpenAtEnd open_helper(helper_may_end);
  ASSERT_TRUE(pool.SubmitIfIdle([&] { helper_may_end.Wait(); }));
  ASSERT_TRUE(pool.SubmitIfIdle([&] { helper_may_end.Wait(); }));
  std::vector<std::promise<void>> runs(2);
  for (std::promise<void>& run : runs) {
    ASSERT_TRUE(pool.Submit([&] {
                      run.set_value();
                      gate.Wait();
                    })
                    .ok());
  }
  for (std::promise<void>& run : runs) run.get_future().wait();
  EXPECT_TRUE(pool.IsCrowded());
  EXPECT_TRUE(pool.Submit([] {}).ok());
  EXPECT_FALSE(pool.Submit([] {}).ok());
  EXPECT_FALSE(pool.SubmitIfIdle([] { FAIL() << "ran though no thread was idle"; }));
}

TEST(JobPoolHelpersTest, DrainWaitsForHelpersAndTakesNoMore) {
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = held;
  JobPool pool({.threads = 2, .helpers = 2});
  ASSERT_TRUE(pool.SubmitIfIdle([held] {}));
  held.reset();
  pool.Drain();
  EXPECT_TRUE(watched.expired());
  EXPECT_FALSE(pool.SubmitIfIdle([] { FAIL() << "ran after Drain"; }));
}

}  // namespace
}  // namespace stepcast::server::job_pool_helpers_test
