#include "server/operations/operation_runner.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "server/base/clock.h"
#include "server/store/memory_stores.h"
#include "tests/server/jobs/gate.h"
#include "tests/server/store/shard_board.h"

namespace stepcast::server::operation_runner_test {
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

using testing::ElementsAre;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kLease = 30 * kSecond;

class Outcomes final : public OperationObserver {
 public:
  void OnAttempt() override { ++attempts; }
  void OnAttemptEnd(std::string_view outcome) override { ended.emplace_back(outcome); }

  int attempts = 0;
  std::vector<std::string> ended;
};

// A store that can be away.
class FlakyStore final : public OperationStore {
 public:
  explicit FlakyStore(OperationStore& store) : store_(store) {}

  absl::StatusOr<OperationRecord> Start(const NewOperation& operation) override {
    return store_.Start(operation);
  }
  absl::StatusOr<StoredOperation> Get(const std::string& id) override { return store_.Get(id); }
  absl::StatusOr<OperationPage> List(const OperationQuery& query) override {
    return store_.List(query);
  }
  absl::StatusOr<std::optional<ClaimedOperation>> Claim(const OperationClaim& claim) override {
    if (is_away) return Away();
    return store_.Claim(claim);
  }
  absl::StatusOr<HeartbeatAnswer> Heartbeat(const OperationAttempt& attempt,
                                            const OperationProgress& progress,
                                            int64_t lease_ns) override {
    if (is_away) return Away();
    return store_.Heartbeat(attempt, progress, lease_ns);
  }
  absl::Status Finish(const OperationAttempt& attempt, const OperationResult& result) override {
    if (is_away) return Away();
    if (result.bytes.size() > max_result_bytes)
      return MakeError(absl::StatusCode::kResourceExhausted, "too large", {.reason = "STORE_FULL"});
    return store_.Finish(attempt, result);
  }
  absl::Status Release(const OperationAttempt& attempt) override {
    return is_away ? Away() : store_.Release(attempt);
  }
  absl::StatusOr<OperationRecord> RequestCancel(const std::string& id) override {
    return store_.RequestCancel(id);
  }
  absl::Status Delete(const std::string& id) override { return store_.Delete(id); }
  absl::StatusOr<int64_t> Expire() override { return store_.Expire(); }
  absl::StatusOr<OperationCounts> Count() override { return store_.Count(); }

  bool is_away = false;
  size_t max_result_bytes = 1000;

 private:
  static absl::Status Away() { return absl::UnavailableError("away"); }
  OperationStore& store_;
};

// A replica: pools of one thread each, and a runner whose Ticks the test makes.
class Replica {
 public:
  Replica(const std::string& name, OperationStore& store, const Clock& clock, int max_running = 1,
          ShardStore* shards = nullptr)
      : store_(store),
        runner_({.replica = name,
                 .max_running = max_running,
                 .lease_ns = kLease,
                 .patience_ns = 10 * kSecond,
                 .help_again_ns = 10 * kSecond,
                 .expire_every_ns = kSecond},
                {.store = store_,
                 .shards = shards,
                 .checking = checking_,
                 .computing = computing_,
                 .clock = clock,
                 .observer = outcomes,
                 .has_capacity = [this] { return has_capacity; },
                 .check = [this](const std::string& request) { return Check(request); },
                 .error_bytes =
                     [](const absl::Status& status) {
                       return absl::StrCat("error ", status.message());
                     },
                 .wake = [this] { woken_.release(); },
                 .ended = [this] { ++told_of_ends; }}) {}

  void Tick() { runner_.Tick(); }

  // Ticks until the job of an attempt has ended, and its end is in the store.
  void TickUntilSettled(size_t ends) {
    while (outcomes.ended.size() < ends) {
      woken_.acquire();
      runner_.Tick();
    }
  }

  OperationRunner& runner() { return runner_; }
  FlakyStore& store() { return store_; }

  Outcomes outcomes;
  int told_of_ends = 0;
  bool has_capacity = true;
  // The answers to requests; by default the response is "done " and the request.
  std::map<std::string, std::function<absl::StatusOr<std::string>(StopCheck, AttemptProgress&,
                                                                  const OperationShare&)>>
      works;

 private:
  absl::StatusOr<OperationWork> Check(const std::string& request) {
    if (request == "bad") return absl::InvalidArgumentError("bad request");
    const auto known = works.find(request);
    if (known != works.end()) return OperationWork(known->second);
    return OperationWork([request](StopCheck, AttemptProgress&,
                                   const OperationShare&) -> absl::StatusOr<std::string> {
      return "done " + request;
    });
  }

  FlakyStore store_;
  std::counting_semaphore<> woken_{0};
  OperationRunner runner_;
  // Jobs of the second pool submit to the first.
  JobPool computing_{{.threads = 2}};
  JobPool checking_{{.threads = 1}};
};

class OperationRunnerTest : public testing::Test {
 protected:
  std::string Start(const std::string& request) {
    clock_.Advance(1);
    return store_.Start({.method = "m", .request_digest = request, .request = request})->id;
  }
  StoredOperation Get(const std::string& id) { return *store_.Get(id); }
  OperationState StateOf(const std::string& id) { return Get(id).record.state; }

  FakeClock clock_;
  MemoryOperationStore store_{{.max_attempts = 3}, clock_};
};

// Computes until it is stopped.
absl::StatusOr<std::string> UntilStopped(StopCheck stop) {
  while (true) {
    if (absl::Status status = stop(); !status.ok()) return status;
    std::this_thread::yield();
  }
}

TEST_F(OperationRunnerTest, TakesWhatIsQueuedAndKeepsItsResult) {
  Replica replica("r1", store_, clock_);
  const std::string first = Start("one");
  const std::string second = Start("two");
  replica.Tick();
  replica.TickUntilSettled(2);
  EXPECT_EQ(Get(first).result, "done one");
  EXPECT_EQ(Get(second).result, "done two");
  EXPECT_EQ(StateOf(second), OperationState::kSucceeded);
  EXPECT_EQ(Get(first).record.replica, "r1");
  EXPECT_EQ(replica.outcomes.attempts, 2);
  EXPECT_THAT(replica.outcomes.ended, ElementsAre("succeeded", "succeeded"));
  EXPECT_EQ(replica.told_of_ends, 2);
}

TEST_F(OperationRunnerTest, ARequestThatIsWrongAndAComputationThatFailsEndWithTheirErrors) {
  Replica replica("r1", store_, clock_);
  replica.works["fails"] = [](StopCheck, AttemptProgress&, const OperationShare&) {
    return absl::FailedPreconditionError("no room");
  };
  const std::string bad = Start("bad");
  const std::string fails = Start("fails");
  replica.Tick();
  replica.TickUntilSettled(2);
  EXPECT_EQ(StateOf(bad), OperationState::kFailed);
  EXPECT_EQ(Get(bad).result, "error bad request");
  EXPECT_EQ(Get(fails).result, "error no room");
}

TEST_F(OperationRunnerTest, RenewsItsLeaseAtAThirdAndTellsHowFarItIs) {
  Replica replica("r1", store_, clock_);
  Gate gate;
  const OpenAtEnd open(gate);
  std::binary_semaphore begun(0);
  replica.works["long"] = [&](StopCheck, AttemptProgress& progress, const OperationShare&) {
    progress.done = 42;
    progress.expected = 99;
    begun.release();
    gate.Wait();
    return "end";
  };
  const std::string id = Start("long");
  replica.Tick();
  begun.acquire();
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(kLease / 3);
    replica.Tick();
  }
  EXPECT_EQ(Get(id).record.progress, 42);
  EXPECT_EQ(Get(id).record.expected, 99);
  EXPECT_FALSE(store_.Claim({.replica = "r2", .lease_ns = kLease})->has_value());
  gate.Open();
  replica.TickUntilSettled(1);
  EXPECT_EQ(Get(id).record.attempts, 1);
  EXPECT_EQ(Get(id).result, "end");
}

TEST_F(OperationRunnerTest, ACancelledComputationIsStopped) {
  Replica replica("r1", store_, clock_);
  replica.works["long"] = [](StopCheck stop, AttemptProgress&, const OperationShare&) {
    return UntilStopped(stop);
  };
  const std::string id = Start("long");
  replica.Tick();
  ASSERT_TRUE(store_.RequestCancel(id).ok());
  replica.runner().BeatSoon();
  replica.TickUntilSettled(1);
  EXPECT_EQ(StateOf(id), OperationState::kCancelled);
  EXPECT_THAT(replica.outcomes.ended, ElementsAre("cancelled"));
}

// The operation stays the other's, whose lease and end are none of the helper's.
TEST_F(OperationRunnerTest, WithNothingToTakeItHelpsWithAnothersUntilThatIsOver) {
  const std::string id = Start("long");
  ASSERT_TRUE(store_.Claim({.replica = "owner", .lease_ns = kLease})->has_value());
  const OperationRecord before = Get(id).record;
  ShardBoard board;
  board.to_help = ShardStore::Shared{.operation = id, .request = "long"};
  Replica helper("r1", store_, clock_, 1, &board);
  std::atomic<bool> began = false;
  helper.works["long"] = [&](StopCheck stop, AttemptProgress&, const OperationShare& share) {
    EXPECT_EQ(share.operation, id);
    EXPECT_EQ(share.shards, &board);
    EXPECT_TRUE(share.helps);
    began = true;
    return UntilStopped(stop);
  };
  helper.Tick();
  while (!began) std::this_thread::yield();
  // It is asked for once, and what is queued meanwhile is taken.
  const std::string other = Start("other");
  helper.Tick();
  EXPECT_EQ(helper.outcomes.attempts, 2);
  EXPECT_EQ(StateOf(other), OperationState::kRunning);
  EXPECT_EQ(Get(id).record, before);
  ASSERT_TRUE(store_.Finish({.id = id, .replica = "owner", .number = 1}, {.bytes = "end"}).ok());
  clock_.Advance(kSecond);
  helper.Tick();
  helper.TickUntilSettled(2);
  // Not again at once, though the store still names it.
  for (int i = 0; i < 5; ++i) helper.Tick();
  EXPECT_THAT(helper.outcomes.ended, testing::UnorderedElementsAre("helped", "succeeded"));
  EXPECT_EQ(Get(id).result, "end");
}

TEST_F(OperationRunnerTest, AReplicaThatSleptThroughItsLeaseStopsAndChangesNothing) {
  Replica sleeper("r1", store_, clock_);
  Replica other("r2", store_, clock_);
  sleeper.works["long"] = [](StopCheck stop, AttemptProgress&, const OperationShare&) {
    return UntilStopped(stop);
  };
  const std::string id = Start("long");
  sleeper.Tick();
  clock_.Advance(kLease);
  other.Tick();
  other.TickUntilSettled(1);
  const StoredOperation done = Get(id);
  EXPECT_EQ(done.result, "done long");
  sleeper.Tick();
  sleeper.TickUntilSettled(1);
  EXPECT_THAT(sleeper.outcomes.ended, ElementsAre("lost"));
  EXPECT_EQ(Get(id).record, done.record);
  EXPECT_EQ(Get(id).result, done.result);
}

TEST_F(OperationRunnerTest, WhatADeadReplicaHadIsBegunAnewAndAfterSoManyDeathsGivenUp) {
  Replica survivor("r1", store_, clock_);
  const std::string once = Start("once");
  ASSERT_TRUE(store_.Claim({.replica = "dead", .lease_ns = kLease})->has_value());
  survivor.Tick();
  EXPECT_EQ(StateOf(once), OperationState::kRunning);
  clock_.Advance(kLease);
  survivor.Tick();
  survivor.TickUntilSettled(1);
  EXPECT_EQ(Get(once).result, "done once");
  EXPECT_EQ(Get(once).record.attempts, 2);

  const std::string poison = Start("poison");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(store_.Claim({.replica = "dies of it", .lease_ns = kLease})->has_value());
    clock_.Advance(kLease);
  }
  survivor.Tick();
  EXPECT_EQ(StateOf(poison), OperationState::kExhausted);
  EXPECT_EQ(survivor.outcomes.attempts, 1);
}

TEST_F(OperationRunnerTest, OneThatLeavesGivesBackWhatItHasForAnotherToTakeAtOnce) {
  Replica leaving("r1", store_, clock_);
  Replica staying("r2", store_, clock_);
  leaving.works["long"] = [](StopCheck stop, AttemptProgress&, const OperationShare&) {
    return UntilStopped(stop);
  };
  const std::string id = Start("long");
  leaving.Tick();
  EXPECT_FALSE(leaving.runner().HasLeft());
  leaving.runner().Leave();
  leaving.Tick();
  leaving.TickUntilSettled(1);
  EXPECT_TRUE(leaving.runner().HasLeft());
  leaving.runner().WaitUntilLeft();
  EXPECT_THAT(leaving.outcomes.ended, ElementsAre("released"));
  EXPECT_EQ(StateOf(id), OperationState::kQueued);
  leaving.Tick();
  EXPECT_EQ(StateOf(id), OperationState::kQueued);
  staying.Tick();
  staying.TickUntilSettled(1);
  EXPECT_EQ(Get(id).result, "done long");
  EXPECT_EQ(Get(id).record.released, 1);
}

TEST_F(OperationRunnerTest, AResultWaitsForAStoreThatIsAway) {
  Replica replica("r1", store_, clock_);
  const std::string id = Start("one");
  replica.Tick();
  replica.store().is_away = true;
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(kLease / 3);
    replica.Tick();
  }
  EXPECT_EQ(StateOf(id), OperationState::kRunning);
  replica.store().is_away = false;
  replica.TickUntilSettled(1);
  EXPECT_EQ(Get(id).result, "done one");
  EXPECT_EQ(Get(id).record.attempts, 1);
}

TEST_F(OperationRunnerTest, WhatTheStoreDoesNotTakeIsAnErrorOfTheOperation) {
  Replica replica("r1", store_, clock_);
  replica.works["large"] = [](StopCheck, AttemptProgress&, const OperationShare&) {
    return std::string(2000, 'x');
  };
  const std::string id = Start("large");
  replica.Tick();
  replica.TickUntilSettled(1);
  EXPECT_EQ(StateOf(id), OperationState::kFailed);
  EXPECT_EQ(Get(id).result, "error too large");
}

TEST_F(OperationRunnerTest, WhatMayPassIsTriedAgainWhenTheLeaseHasRunOut) {
  Replica replica("r1", store_, clock_);
  int tries = 0;
  replica.works["flaky"] = [&](StopCheck, AttemptProgress&,
                               const OperationShare&) -> absl::StatusOr<std::string> {
    if (++tries == 1) return absl::UnavailableError("the profiles are away");
    return "end";
  };
  const std::string id = Start("flaky");
  replica.Tick();
  replica.TickUntilSettled(1);
  EXPECT_EQ(StateOf(id), OperationState::kRunning);
  clock_.Advance(kLease);
  replica.Tick();
  replica.TickUntilSettled(2);
  EXPECT_EQ(Get(id).result, "end");
  EXPECT_THAT(replica.outcomes.ended, ElementsAre("retried", "succeeded"));
}

TEST_F(OperationRunnerTest, CallsGoFirstUntilThePatienceIsOver) {
  Replica replica("r1", store_, clock_);
  replica.has_capacity = false;
  const std::string id = Start("one");
  replica.Tick();
  EXPECT_EQ(StateOf(id), OperationState::kQueued);
  clock_.Advance(10 * kSecond);
  replica.Tick();
  replica.TickUntilSettled(1);
  EXPECT_EQ(Get(id).result, "done one");
  Start("two");
  replica.Tick();
  EXPECT_EQ(replica.outcomes.attempts, 1);
}

TEST_F(OperationRunnerTest, OneThatMayRunNoneTakesNone) {
  Replica replica("r1", store_, clock_, 0);
  const std::string id = Start("one");
  clock_.Advance(100 * kSecond);
  replica.Tick();
  EXPECT_EQ(StateOf(id), OperationState::kQueued);
}

TEST_F(OperationRunnerTest, WhatIsOldExpires) {
  const std::string id = Start("one");
  ASSERT_TRUE(store_.RequestCancel(id).ok());
  Replica replica("r1", store_, clock_);
  replica.Tick();
  EXPECT_TRUE(store_.Get(id).ok());
  clock_.Advance(OperationLimits().retention_ns);
  replica.Tick();
  EXPECT_TRUE(absl::IsNotFound(store_.Get(id).status()));
}

}  // namespace
}  // namespace stepcast::server::operation_runner_test
