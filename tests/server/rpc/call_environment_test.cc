#include "server/rpc/call_environment.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/base/error.h"

namespace stepcast::server::call_environment_test {
namespace {

TEST(ByteBudgetTest, WhatIsNotThereIsRefusedAndNotTaken) {
  ByteBudget budget(100);
  ByteBudget::Share first(budget);
  ByteBudget::Share second(budget);
  EXPECT_TRUE(first.Add(60).ok());
  const absl::Status status = second.Add(41);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailsOf(status).reason, "MEMORY_EXHAUSTED");
  EXPECT_EQ(DetailsOf(status).quota_subject, "max_pending_bytes");
  EXPECT_GT(DetailsOf(status).retry_delay_ms, 0);
  EXPECT_TRUE(second.Add(40).ok());
}

TEST(ByteBudgetTest, AShareIsGivenBackOnce) {
  ByteBudget budget(100);
  {
    ByteBudget::Share share(budget);
    EXPECT_TRUE(share.Add(50).ok());
    EXPECT_TRUE(share.Add(50).ok());
    share.Release();
    share.Release();
  }
  ByteBudget::Share share(budget);
  EXPECT_TRUE(share.Add(100).ok());
  EXPECT_FALSE(share.Add(1).ok());
}

TEST(ByteBudgetTest, ManyThreadsNeverHoldMoreThanThereIs) {
  ByteBudget budget(1000);
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> held{0};
  std::atomic<int> most{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10'000; ++round) {
        ByteBudget::Share share(budget);
        if (!share.Add(400).ok()) continue;
        const int now = ++held;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        --held;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 2);
  EXPECT_TRUE(ByteBudget::Share(budget).Add(1000).ok());
}

}  // namespace
}  // namespace stepcast::server::call_environment_test
