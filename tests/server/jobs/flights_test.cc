#include "server/jobs/flights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace stepcast::server::flights_test {
namespace {

using Ints = Flights<int, const std::string>;

class Passenger final : public Waiter<int> {
 public:
  absl::Status Check() const override {
    return gone_ ? absl::DeadlineExceededError("late") : absl::OkStatus();
  }
  void Tell(const absl::StatusOr<int>& result, bool is_first) override {
    ASSERT_FALSE(told_.has_value());
    told_ = result;
    was_first_ = is_first;
  }

  std::atomic<bool> gone_{false};
  std::optional<absl::StatusOr<int>> told_;
  bool was_first_ = false;
};

// The flight that has to be landed by whoever boards it now.
std::shared_ptr<Ints::Flight> Board(Ints& flights, const std::string& key, Passenger& passenger) {
  const Ints::Boarding boarding = flights.Board(key, passenger, nullptr);
  return boarding.is_first ? boarding.flight : nullptr;
}

TEST(FlightsTest, AFlightHasThePlanOfTheFirst) {
  Ints flights;
  Passenger first;
  Passenger second;
  const auto plan = std::make_shared<const std::string>("a");
  const auto flight = flights.Board("key", first, plan);
  EXPECT_TRUE(flight.is_first);
  const auto same = flights.Board("key", second, std::make_shared<const std::string>("b"));
  EXPECT_FALSE(same.is_first);
  EXPECT_EQ(same.flight->plan(), "a");
  flight.flight->Land(1);
}

TEST(FlightsTest, AllWhoAskTheSameGetOneAnswer) {
  Ints flights;
  Passenger first;
  Passenger second;
  Passenger other;
  const auto flight = Board(flights, "key", first);
  ASSERT_NE(flight, nullptr);
  EXPECT_EQ(Board(flights, "key", second), nullptr);
  const auto another = Board(flights, "other key", other);
  ASSERT_NE(another, nullptr);
  flight->Land(5);
  EXPECT_EQ(first.told_->value(), 5);
  EXPECT_EQ(second.told_->value(), 5);
  EXPECT_TRUE(first.was_first_);
  EXPECT_FALSE(second.was_first_);
  EXPECT_FALSE(other.told_.has_value());
  another->Land(absl::InternalError("broken"));
  EXPECT_EQ(other.told_->status(), absl::InternalError("broken"));
}

TEST(FlightsTest, WhoGivesUpIsToldWhatCanBeSaidOfIt) {
  Ints flights;
  Passenger first;
  Passenger second;
  const auto flight = Board(flights, "key", first);
  Board(flights, "key", second);
  first.gone_ = true;
  const absl::Status going_on = flight->Check(
      [](const absl::Status& status) { return absl::Status(status.code(), "half way"); });
  EXPECT_TRUE(going_on.ok()) << going_on;
  EXPECT_EQ(first.told_->status(), absl::DeadlineExceededError("half way"));
  EXPECT_FALSE(second.told_.has_value());
  flight->Land(1);
}

TEST(FlightsTest, WhoComesAfterTheLandingFliesAnew) {
  Ints flights;
  Passenger first;
  Passenger late;
  Board(flights, "key", first)->Land(1);
  const auto flight = Board(flights, "key", late);
  ASSERT_NE(flight, nullptr);
  flight->Land(2);
  EXPECT_EQ(late.told_->value(), 2);
}

TEST(FlightsTest, OnesDeadlineDoesNotEndTheOthersFlight) {
  Ints flights;
  Passenger first;
  Passenger second;
  const auto flight = Board(flights, "key", first);
  Board(flights, "key", second);
  first.gone_ = true;
  EXPECT_TRUE(flight->Check().ok());
  EXPECT_EQ(first.told_->status(), absl::DeadlineExceededError("late"));
  EXPECT_FALSE(second.told_.has_value());
  flight->Land(3);
  EXPECT_EQ(second.told_->value(), 3);
  EXPECT_TRUE(second.was_first_);
}

TEST(FlightsTest, AFlightThatNobodyWaitsOnEndsAndTakesNobodyMore) {
  Ints flights;
  Passenger first;
  Passenger late;
  const auto flight = Board(flights, "key", first);
  first.gone_ = true;
  EXPECT_EQ(flight->Check().code(), absl::StatusCode::kCancelled);
  const auto next = Board(flights, "key", late);
  ASSERT_NE(next, nullptr) << "would share the fate of a computation that was told to stop";
  flight->Land(flight->Check());
  EXPECT_FALSE(late.told_.has_value());
  next->Land(4);
  EXPECT_EQ(late.told_->value(), 4);
}

// Threads board, give up and land all at once. Each passenger is told exactly once (Tell asserts
// it), and nobody gets another key's answer.
TEST(FlightsTest, EveryPassengerIsToldOnceWhateverHappensAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 2000;
  Ints flights;
  std::atomic<int> flown{0};
  std::vector<std::deque<Passenger>> passengers(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        Passenger& passenger = passengers[static_cast<size_t>(t)].emplace_back();
        passenger.gone_ = (i + t) % 7 == 0;
        const int key = i % 3;
        if (const auto flight = Board(flights, std::to_string(key), passenger)) {
          ++flown;
          const absl::Status status = flight->Check();
          flight->Land(status.ok() ? absl::StatusOr<int>(key) : status);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::deque<Passenger>& all : passengers) {
    for (int i = 0; i < kRounds; ++i) {
      const Passenger& passenger = all[static_cast<size_t>(i)];
      ASSERT_TRUE(passenger.told_.has_value());
      if (passenger.told_->ok()) {
        ASSERT_EQ(**passenger.told_, i % 3);
      } else {
        ASSERT_TRUE(passenger.gone_) << passenger.told_->status();
      }
    }
  }
  EXPECT_LE(flown, kThreads * kRounds);
}

}  // namespace
}  // namespace stepcast::server::flights_test
