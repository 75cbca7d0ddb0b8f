#include "server/jobs/fair_queue.h"

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stepcast::server::fair_queue_test {
namespace {

using testing::ElementsAre;

TEST(FairQueueTest, OfOneClientTheFirstComesFirst) {
  FairQueue<int> queue;
  queue.Push("a", 5, 1);
  queue.Push("a", 1, 2);
  queue.Push("a", 3, 3);
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_EQ(queue.Pop(), 3);
  EXPECT_TRUE(queue.empty());
}

TEST(FairQueueTest, WhoComesLateIsNotBehindAllThatAnotherHasWaiting) {
  FairQueue<std::string> queue;
  for (int i = 0; i < 100; ++i) queue.Push("greedy", 1, "greedy");
  EXPECT_EQ(queue.Pop(), "greedy");
  queue.Push("modest", 1, "modest");
  std::vector<std::string> next;
  for (int i = 0; i < 3; ++i) next.push_back(queue.Pop());
  EXPECT_THAT(next, testing::Contains("modest"));
}

TEST(FairQueueTest, ClientsWithWorkWaitingGetTheSameShareWithinTheirLargestJobs) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    FairQueue<std::pair<std::string, double>> queue;
    const std::map<std::string, double> largest{{"a", 1.0}, {"b", 10.0}, {"c", 3.0}};
    for (const auto& [client, most] : largest) {
      for (int i = 0; i < 300; ++i) {
        const double cost = std::uniform_real_distribution<>(0.01, most)(random);
        queue.Push(client, cost, {client, cost});
      }
    }
    std::map<std::string, double> served;
    // As long as all three have something waiting; the cheapest client's 300 are about 150.
    while (served["a"] < 100) {
      const auto [client, cost] = queue.Pop();
      served[client] += cost;
    }
    for (const auto& [client, most] : largest)
      EXPECT_NEAR(served[client], 100, 1 + most + 1) << client << ", seed " << seed;
  }
}

TEST(FairQueueTest, WhatLeavesBeforeANewEntryIsWhatItsClientIsTold) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    FairQueue<std::pair<int, double>> queue;
    for (int i = 0; i < 30; ++i) {
      const double cost = 1 + static_cast<double>(random() % 5);
      queue.Push(std::string(1, static_cast<char>('a' + random() % 4)), cost, {i, cost});
      if (random() % 3 == 0) queue.Pop();
    }
    const double expected = queue.CostBefore("b");
    queue.Push("b", 1, {-1, 1});
    double before = 0;
    for (auto [number, cost] = queue.Pop(); number != -1; std::tie(number, cost) = queue.Pop())
      before += cost;
    EXPECT_DOUBLE_EQ(before, expected) << "seed " << seed;
  }
}

TEST(FairQueueTest, WhatIsTakenOutIsNotHeldAgainstItsClient) {
  FairQueue<int> queue;
  queue.Push("a", 100, 1);
  queue.Push("b", 1, 2);
  queue.Push("b", 1, 3);
  EXPECT_THAT(queue.ExtractIf([](int value) { return value == 1; }), ElementsAre(1));
  queue.Push("a", 1, 4);
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_EQ(queue.Pop(), 4);
  EXPECT_EQ(queue.Pop(), 3);
}

TEST(FairQueueTest, TheNewestOfTheLongestGoesFirst) {
  FairQueue<int> queue;
  queue.Push("a", 1, 1);
  queue.Push("b", 1, 2);
  queue.Push("b", 1, 3);
  EXPECT_FALSE(queue.HasLongerThan(2));
  EXPECT_EQ(queue.TakeFromLongest(2), std::nullopt);
  EXPECT_TRUE(queue.HasLongerThan(1));
  EXPECT_EQ(queue.TakeFromLongest(1), 3);
  EXPECT_EQ(queue.SizeOf("b"), 1);
  EXPECT_DOUBLE_EQ(queue.cost(), 2);
}

// The same rules, over one list.
class PlainFairQueue {
 public:
  void Push(const std::string& client, double cost, int value) {
    const double start = std::max(now_, finish_[client]);
    finish_[client] = start + cost;
    entries_.push_back({client, start, cost, value});
  }
  int Pop() {
    auto first = entries_.begin();
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      if (at->start < first->start) first = at;
    }
    const int value = first->value;
    now_ = first->start;
    entries_.erase(first);
    return value;
  }
  std::vector<int> values() const {
    std::vector<int> values;
    for (const Entry& entry : entries_) values.push_back(entry.value);
    return values;
  }

 private:
  struct Entry {
    std::string client;
    double start;
    double cost;
    int value;
  };
  std::vector<Entry> entries_;  // by age
  std::map<std::string, double> finish_;
  double now_ = 0;
};

TEST(FairQueueTest, LeavesInTheOrderOfTheRulesOverOneList) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    FairQueue<int> queue;
    PlainFairQueue plain;
    for (int i = 0; i < 400; ++i) {
      if (queue.empty() || random() % 5 < 3) {
        const std::string client(1, static_cast<char>('a' + random() % 6));
        const double cost = 1 + static_cast<double>(random() % 4);
        queue.Push(client, cost, i);
        plain.Push(client, cost, i);
      } else {
        ASSERT_EQ(queue.Pop(), plain.Pop()) << "seed " << seed << ", step " << i;
      }
      ASSERT_EQ(queue.size(), plain.values().size());
    }
  }
}

}  // namespace
}  // namespace stepcast::server::fair_queue_test
