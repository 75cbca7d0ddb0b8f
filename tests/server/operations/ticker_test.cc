#include "server/operations/ticker.h"

#include <atomic>
#include <cstdint>
#include <future>
#include <semaphore>
#include <thread>

#include "gtest/gtest.h"

namespace stepcast::server::ticker_test {
namespace {

constexpr int64_t kNever = int64_t{3600} * 1'000'000'000;

TEST(TickerTest, CallsAtOnceAndThenWhenItIsWoken) {
  std::counting_semaphore calls(0);
  Ticker ticker;
  ticker.Start([&] {
    calls.release();
    return kNever;
  });
  for (int i = 0; i < 3; ++i) {
    calls.acquire();
    ticker.Wake();
  }
  calls.acquire();
}

TEST(TickerTest, CallsAgainByItselfAfterTheTimeItWasTold) {
  std::counting_semaphore calls(0);
  Ticker ticker;
  ticker.Start([&] {
    calls.release();
    return int64_t{1};
  });
  for (int i = 0; i < 3; ++i) calls.acquire();
}

TEST(TickerTest, StopWaitsForTheCallThatRunsAndIsTheLast) {
  constexpr int kTurns = 1000;  // in each of which a Stop that did not wait would be back
  std::promise<void> begun;
  std::promise<void> stopping;
  std::atomic<bool> is_over = false;
  int calls = 0;
  Ticker ticker;
  ticker.Start([&] {
    if (++calls == 1) {
      begun.set_value();
      stopping.get_future().wait();
      for (int turn = 0; turn < kTurns; ++turn) std::this_thread::yield();
      is_over = true;
    }
    return int64_t{0};
  });
  begun.get_future().wait();
  stopping.set_value();
  ticker.Stop();
  EXPECT_TRUE(is_over) << "it came back in the middle of a call";
  const int at_stop = calls;
  ticker.Wake();
  ticker.Stop();
  EXPECT_EQ(calls, at_stop);
}

TEST(TickerTest, OneThatWasNeverStartedStops) {
  Ticker ticker;
  ticker.Wake();
  ticker.Stop();
}

}  // namespace
}  // namespace stepcast::server::ticker_test
