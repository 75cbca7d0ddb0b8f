#include "server/jobs/pool_executor.h"

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "core/base/random.h"
#include "tests/server/jobs/gate.h"
#include "tests/support/eventually.h"

namespace stepcast::server::pool_executor_test {
namespace {

// Some work whose result depends on the part, and which takes longer for some parts than for
// others.
uint64_t WorkOf(uint64_t seed, size_t part) {
  Random random({seed, part});
  const uint64_t rounds = random.Below(300);
  uint64_t sum = 0;
  for (uint64_t i = 0; i <= rounds; ++i) sum += random.Below(1000);
  return sum;
}

// The values that ForEach leaves: results of the parts that ran, 0 for others.
std::vector<uint64_t> ResultsOf(const Executor& executor, uint64_t seed, size_t count,
                                const std::set<size_t>& failing) {
  std::vector<uint64_t> results(count);
  executor.ForEach(count, [&](size_t part) {
    results[part] += 1 + WorkOf(seed, part);
    return failing.count(part) == 0;
  });
  return results;
}

// Runs `job` on the pool and returns when it has returned.
template <typename Job>
void RunOn(JobPool& pool, Job job) {
  // Shared: a promise may still be at work when who waits for it has gone on.
  const auto done = std::make_shared<std::promise<void>>();
  ASSERT_TRUE(pool.Submit([&job, done] {
                    job();
                    done->set_value();
                  })
                  .ok());
  done->get_future().wait();
}

// Returns when so many threads have come to it.
class Meeting {
 public:
  explicit Meeting(int expected) : missing_(expected) {}
  // False: a hang.
  bool Come() {
    if (--missing_ == 0) all_.set_value();
    return Eventually(came_);
  }

 private:
  std::atomic<int> missing_;
  std::promise<void> all_;
  std::shared_future<void> came_{all_.get_future()};
};

TEST(PoolExecutorTest, EveryPartRunsOnceWithAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 8}) {
    JobPool pool({.threads = threads, .helpers = threads});
    const PoolExecutor executor(pool);
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      SCOPED_TRACE(::testing::Message() << threads << " threads, seed " << seed);
      const size_t count = Random({seed}).Below(40);
      const std::vector<uint64_t> expected = ResultsOf(InOrder(), seed, count, {});
      RunOn(pool, [&] { EXPECT_EQ(ResultsOf(executor, seed, count, {}), expected); });
      EXPECT_EQ(ResultsOf(executor, seed, count, {}), expected) << "called by a thread of its own";
    }
  }
}

TEST(PoolExecutorTest, AFailureStopsLaterPartsAndNoEarlierOne) {
  JobPool pool({.threads = 4, .helpers = 4});
  const PoolExecutor executor(pool);
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed});
    const size_t count = 1 + random.Below(60);
    const std::set<size_t> failing{random.Below(count), random.Below(count)};
    const std::vector<uint64_t> in_order = ResultsOf(InOrder(), seed, count, failing);
    const std::vector<uint64_t> results = ResultsOf(executor, seed, count, failing);
    bool ended = false;
    for (size_t part = 0; part < count; ++part) {
      if (part <= *failing.begin()) {
        EXPECT_EQ(results[part], in_order[part]) << "part " << part;
      }
      EXPECT_FALSE(ended && results[part] != 0)
          << "part " << part << " began after one that did not";
      ended = results[part] == 0;
    }
  }
}

TEST(PoolExecutorTest, AfterAFailureNothingBegins) {
  JobPool pool({.threads = 2, .helpers = 2});
  std::atomic<int> ran{0};
  PoolExecutor(pool).ForEach(1'000'000, [&](size_t /*part*/) {
    ++ran;
    return false;
  });
  EXPECT_LE(ran, 3);  // the caller's and its helpers'
}

TEST(PoolExecutorTest, IdleThreadsRunPartsToo) {
  constexpr int kThreads = 4;
  JobPool pool({.threads = kThreads, .helpers = kThreads});
  Meeting meeting(kThreads);
  std::atomic<int> met{0};
  RunOn(pool, [&] {
    PoolExecutor(pool).ForEach(kThreads, [&](size_t /*part*/) {
      if (meeting.Come()) ++met;
      return true;
    });
  });
  EXPECT_EQ(met, kThreads);
}

TEST(PoolExecutorTest, AThreadThatFallsIdleJoinsIn) {
  Gate other_may_end;
  JobPool pool({.threads = 2, .helpers = 2});
  const OpenAtEnd open(other_may_end);
  ASSERT_TRUE(pool.Submit([&] { other_may_end.Wait(); }).ok());
  std::atomic<bool> joined{false};
  RunOn(pool, [&] {
    const std::thread::id caller = std::this_thread::get_id();
    PoolExecutor(pool).ForEach(10'000'000, [&](size_t part) {
      if (std::this_thread::get_id() != caller) joined = true;
      EXPECT_FALSE(joined && part < 100) << "two run where there is one thread";
      if (part == 100) other_may_end.Open();
      std::this_thread::yield();
      return !joined;
    });
  });
  EXPECT_TRUE(joined);
}

TEST(PoolExecutorTest, AFullPoolLeavesAllPartsToTheCaller) {
  JobPool pool({.threads = 1, .queue_max = 1, .helpers = 1});
  std::promise<void> queued;
  std::set<std::thread::id> ran_on;
  std::thread::id job;
  ASSERT_TRUE(pool.Submit([&] {
                    queued.get_future().wait();
                    job = std::this_thread::get_id();
                    PoolExecutor(pool).ForEach(20, [&](size_t /*part*/) {
                      return ran_on.insert(std::this_thread::get_id()), true;
                    });
                  })
                  .ok());
  ASSERT_TRUE(pool.Submit([] {}).ok());
  queued.set_value();
  pool.Drain();
  EXPECT_EQ(ran_on, std::set<std::thread::id>{job});
}

TEST(PoolExecutorTest, AHelperLeavesWhereAJobNeedsItsThread) {
  Gate other_may_end;
  JobPool pool({.threads = 2, .helpers = 2});
  const OpenAtEnd open(other_may_end);
  Meeting both_run(2);
  std::thread::id caller;
  std::thread::id of_last_part;
  RunOn(pool, [&] {
    caller = std::this_thread::get_id();
    PoolExecutor(pool).ForEach(3, [&](size_t part) {
      const bool is_caller = std::this_thread::get_id() == caller;
      if (part == 2) of_last_part = std::this_thread::get_id();
      if (part == 2 || !both_run.Come()) return true;
      if (is_caller) {
        EXPECT_TRUE(pool.Submit([&] { other_may_end.Wait(); }).ok());
        while (pool.IsCrowded()) std::this_thread::yield();  // until the helper has gone
      } else {
        while (!pool.IsCrowded()) std::this_thread::yield();
      }
      return true;
    });
  });
  EXPECT_EQ(of_last_part, caller);
}

TEST(PoolExecutorTest, JobsThatAllSplitTheirWorkDoNotWaitForEachOther) {
  constexpr int kJobs = 64;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    JobPool pool({.threads = 3, .queue_max = kJobs, .helpers = 3});
    const PoolExecutor executor(pool);
    std::atomic<int> right{0};
    for (uint64_t job = 0; job < kJobs; ++job) {
      ASSERT_TRUE(pool.Submit([&, key = seed * kJobs + job] {
                        // Parts that split their own work in turn.
                        executor.ForEach(3, [&](size_t part) {
                          if (ResultsOf(executor, key + part, 7, {}) ==
                              ResultsOf(InOrder(), key + part, 7, {}))
                            ++right;
                          return true;
                        });
                      })
                      .ok());
    }
    pool.Drain();  // while they run
    EXPECT_EQ(right, 3 * kJobs);
  }
}

TEST(PoolExecutorTest, AHelperThatComesTooLateTouchesNothing) {
  JobPool pool({.threads = 4, .helpers = 4});
  const PoolExecutor executor(pool);
  for (int round = 0; round < 20'000; ++round) {
    // Gone as soon as ForEach has returned; parts so short that helpers often find nothing.
    const auto ran = std::make_unique<std::vector<int>>(2);
    executor.ForEach(ran->size(), [&](size_t part) { return ++(*ran)[part] == 1; });
    ASSERT_EQ(*ran, (std::vector<int>{1, 1})) << "round " << round;
  }
}

TEST(PoolExecutorTest, NoPartsAreNoWork) {
  JobPool pool({.threads = 2, .helpers = 2});
  PoolExecutor(pool).ForEach(0, [](size_t /*part*/) {
    ADD_FAILURE() << "ran";
    return true;
  });
}

}  // namespace
}  // namespace stepcast::server::pool_executor_test
