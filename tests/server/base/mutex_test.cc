#include "server/base/mutex.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace stepcast::server::mutex_test {
namespace {

TEST(MutexTest, OneThreadAtATimeIsInside) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20'000;
  Mutex mutex;
  int64_t count = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const MutexLock lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, int64_t{kThreads} * kRounds);
}

TEST(CondVarTest, TwoThreadsTakeTurns) {
  constexpr int kTurns = 1000;
  Mutex mutex;
  CondVar changed;
  int turn = 0;
  const auto take_turns = [&](int parity) {
    for (int i = 0; i < kTurns; ++i) {
      const MutexLock lock(mutex);
      while (turn % 2 != parity) changed.Wait(mutex);
      ++turn;
      changed.NotifyAll();
    }
  };
  std::thread odd([&] { take_turns(1); });
  take_turns(0);
  odd.join();
  EXPECT_EQ(turn, 2 * kTurns);
}

TEST(CondVarTest, AWaitWithALimitEndsWithoutANotification) {
  Mutex mutex;
  CondVar changed;
  const MutexLock lock(mutex);
  changed.WaitFor(mutex, std::chrono::nanoseconds(1));
}

}  // namespace
}  // namespace stepcast::server::mutex_test
