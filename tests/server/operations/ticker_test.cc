#include "server/operations/ticker.h"

#include <chrono>
#include <cstdint>
#include <future>
#include <semaphore>

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
  std::promise<void> begun;
  std::promise<void> go_on;
  int calls = 0;
  Ticker ticker;
  ticker.Start([&] {
    if (++calls == 1) {
      begun.set_value();
      go_on.get_future().wait();
    }
    return int64_t{0};
  });
  begun.get_future().wait();
  std::future<void> stopped = std::async(std::launch::async, [&] { ticker.Stop(); });
  // A Stop that did not wait would be back at once.
  EXPECT_EQ(stopped.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  go_on.set_value();
  stopped.wait();
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
