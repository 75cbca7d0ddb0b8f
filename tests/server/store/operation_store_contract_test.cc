// The promises of OperationStore, asked of every implementation.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "server/base/clock.h"
#include "server/store/operation_store.h"
#include "tests/server/store/operation_stores.h"

namespace stepcast::server::operation_store_contract_test {
namespace {

using testing::ElementsAre;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kLease = 30 * kSecond;

class OperationStoreTest : public testing::TestWithParam<OperationStoreKind> {
 protected:
  void SetUp() override {
    if (const std::string missing = GetParam().missing(); !missing.empty()) GTEST_SKIP() << missing;
    Restart({});
  }

  // An empty store with these limits.
  void Restart(const OperationLimits& limits) {
    stores_ = GetParam().make(limits, clock_);
    ASSERT_NE(stores_, nullptr);
  }

  OperationStore& store() { return stores_->operations(); }

  std::string MustStart(const std::string& request = "request", const std::string& request_id = "",
                        const std::string& owner = "") {
    clock_.Advance(1);
    const absl::StatusOr<OperationRecord> started =
        store().Start({.method = "Method",
                       .owner = owner,
                       .request_id = request_id,
                       .request_digest = absl::StrCat("digest of ", request),
                       .request = request});
    EXPECT_TRUE(started.ok()) << started.status();
    return started.ok() ? started->id : "";
  }

  // The id of what `replica` got; empty: nothing.
  OperationAttempt Claim(const std::string& replica) {
    const absl::StatusOr<std::optional<ClaimedOperation>> claimed =
        store().Claim({.replica = replica, .lease_ns = kLease});
    EXPECT_TRUE(claimed.ok()) << claimed.status();
    if (!claimed.ok() || !claimed->has_value()) return {};
    const OperationRecord& record = (*claimed)->record;
    return {.id = record.id, .replica = record.replica, .number = record.attempts};
  }

  HeartbeatAnswer Beat(const OperationAttempt& attempt, int64_t progress = 0) {
    const absl::StatusOr<HeartbeatAnswer> answer =
        store().Heartbeat(attempt, {.done = progress, .expected = 2 * progress}, kLease);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(HeartbeatAnswer::kLost);
  }

  StoredOperation MustGet(const std::string& id) {
    const absl::StatusOr<StoredOperation> got = store().Get(id);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.value_or(StoredOperation());
  }

  OperationState StateOf(const std::string& id) { return MustGet(id).record.state; }

  FakeClock clock_;
  std::unique_ptr<OperationStores> stores_;
};

void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& reason) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(DetailsOf(status).reason, reason) << status;
}

TEST_P(OperationStoreTest, AStartedOperationWaitsAndIsGivenOutWithItsRequest) {
  const std::string request("\0\xff bytes", 8);
  const std::string id = MustStart(request, "", "somebody");
  const OperationRecord queued = MustGet(id).record;
  EXPECT_EQ(queued.state, OperationState::kQueued);
  EXPECT_EQ(queued.method, "Method");
  EXPECT_EQ(queued.owner, "somebody");
  EXPECT_EQ(queued.create_time_ns, clock_.WallNs());
  EXPECT_EQ(queued.attempts, 0);
  clock_.Advance(kSecond);
  const absl::StatusOr<std::optional<ClaimedOperation>> claimed =
      store().Claim({.replica = "r1", .lease_ns = kLease});
  ASSERT_TRUE(claimed.ok() && claimed->has_value()) << claimed.status();
  EXPECT_EQ((*claimed)->request, request);
  const OperationRecord running = MustGet(id).record;
  EXPECT_EQ(running, (*claimed)->record);
  EXPECT_EQ(running.state, OperationState::kRunning);
  EXPECT_EQ(running.replica, "r1");
  EXPECT_EQ(running.attempts, 1);
  EXPECT_EQ(running.start_time_ns, clock_.WallNs());
  EXPECT_EQ(Claim("r2").id, "");
}

TEST_P(OperationStoreTest, TheyAreTakenInTheOrderTheyWereStarted) {
  const std::string first = MustStart();
  const std::string second = MustStart();
  const std::string third = MustStart();
  EXPECT_LT(first, second);
  EXPECT_EQ(Claim("a").id, first);
  EXPECT_EQ(Claim("b").id, second);
  EXPECT_EQ(Claim("a").id, third);
}

TEST_P(OperationStoreTest, AResultIsKeptAndTheOperationIsDone) {
  for (const bool is_error : {false, true}) {
    const std::string id = MustStart();
    const OperationAttempt attempt = Claim("r1");
    clock_.Advance(kSecond);
    const std::string bytes("\0 result", 8);
    ASSERT_TRUE(store().Finish(attempt, {.is_error = is_error, .bytes = bytes}).ok());
    const StoredOperation done = MustGet(id);
    EXPECT_EQ(done.record.state, is_error ? OperationState::kFailed : OperationState::kSucceeded);
    EXPECT_EQ(done.record.end_time_ns, clock_.WallNs());
    EXPECT_EQ(done.record.replica, "r1");
    EXPECT_EQ(done.result, bytes);
    EXPECT_EQ(Claim("r2").id, "");
  }
}

TEST_P(OperationStoreTest, ALeaseThatIsRenewedHoldsAndOneThatIsNotIsTaken) {
  const std::string id = MustStart();
  const OperationAttempt first = Claim("r1");
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(kLease - 1);
    EXPECT_EQ(Claim("r2").id, "");
    EXPECT_EQ(Beat(first, i), HeartbeatAnswer::kGoOn);
    EXPECT_EQ(MustGet(id).record.progress, i);
  }
  clock_.Advance(kLease);
  const OperationAttempt second = Claim("r2");
  EXPECT_EQ(second.id, id);
  EXPECT_EQ(second.number, 2);
  EXPECT_EQ(MustGet(id).record.progress, 0);
  EXPECT_EQ(Beat(first), HeartbeatAnswer::kLost);
  ExpectError(store().Finish(first, {.bytes = "late"}), absl::StatusCode::kAborted,
              "OPERATION_LOST");
  ExpectError(store().Release(first), absl::StatusCode::kAborted, "OPERATION_LOST");
  ASSERT_TRUE(store().Finish(second, {.bytes = "right"}).ok());
  EXPECT_EQ(MustGet(id).result, "right");
}

TEST_P(OperationStoreTest, ALeaseDoesNotDependOnTheTimeOfDay) {
  if (!GetParam().has_steady_leases) GTEST_SKIP() << "its leases run on the database's time of day";
  MustStart();
  Claim("r1");
  clock_.SetWall(clock_.WallNs() + 1000 * kLease);
  EXPECT_EQ(Claim("r2").id, "");
}

TEST_P(OperationStoreTest, AnAttemptThatRanOutAndWasNotTakenMayStillFinish) {
  const std::string id = MustStart();
  const OperationAttempt attempt = Claim("r1");
  clock_.Advance(2 * kLease);
  ASSERT_TRUE(store().Finish(attempt, {.bytes = "result"}).ok());
  EXPECT_EQ(MustGet(id).result, "result");
}

TEST_P(OperationStoreTest, TheSameReplicaTakingAgainIsAnotherAttempt) {
  const std::string id = MustStart();
  const OperationAttempt first = Claim("r1");
  clock_.Advance(kLease);
  const OperationAttempt second = Claim("r1");
  ASSERT_EQ(second.id, id);
  ExpectError(store().Finish(first, {.bytes = "late"}), absl::StatusCode::kAborted,
              "OPERATION_LOST");
  EXPECT_TRUE(store().Finish(second, {.bytes = "right"}).ok());
}

TEST_P(OperationStoreTest, ARepeatedFinishIsOkAndTheFirstEndStays) {
  const std::string id = MustStart();
  const OperationAttempt attempt = Claim("r1");
  ASSERT_TRUE(store().Finish(attempt, {.bytes = "first"}).ok());
  EXPECT_TRUE(store().Finish(attempt, {.is_error = true, .bytes = "second"}).ok());
  EXPECT_EQ(StateOf(id), OperationState::kSucceeded);
  EXPECT_EQ(MustGet(id).result, "first");
}

TEST_P(OperationStoreTest, WhatIsReleasedIsTakenAtOnceAndDoesNotCountAsAnAttempt) {
  Restart({.max_attempts = 2});
  const std::string id = MustStart();
  for (int i = 1; i <= 10; ++i) {
    const OperationAttempt attempt = Claim("r1");
    ASSERT_EQ(attempt.id, id);
    EXPECT_EQ(attempt.number, i);
    ASSERT_TRUE(store().Release(attempt).ok());
    EXPECT_EQ(StateOf(id), OperationState::kQueued);
    EXPECT_EQ(MustGet(id).record.replica, "");
    EXPECT_EQ(Beat(attempt), HeartbeatAnswer::kLost);
  }
}

TEST_P(OperationStoreTest, AfterItsLastAttemptItIsExhaustedAndTheLastHolderHasLostIt) {
  Restart({.max_attempts = 3});
  const std::string id = MustStart();
  OperationAttempt last;
  for (int i = 0; i < 3; ++i) {
    last = Claim("r1");
    ASSERT_EQ(last.id, id);
    clock_.Advance(kLease);
  }
  EXPECT_EQ(Claim("r2").id, "");
  EXPECT_EQ(StateOf(id), OperationState::kExhausted);
  EXPECT_EQ(MustGet(id).record.attempts, 3);
  EXPECT_EQ(MustGet(id).result, "");
  ExpectError(store().Finish(last, {.bytes = "late"}), absl::StatusCode::kAborted,
              "OPERATION_LOST");
  EXPECT_EQ(StateOf(id), OperationState::kExhausted);
}

TEST_P(OperationStoreTest, WhatIsRefusedIsNotStartedUnlessItWasBefore) {
  NewOperation operation{.method = "Method",
                         .request_id = "id",
                         .request_digest = "d",
                         .request = "r",
                         .refusal = absl::NotFoundError("gone")};
  EXPECT_EQ(store().Start(operation).status(), operation.refusal);
  EXPECT_EQ(Claim("r1").id, "");
  operation.refusal = absl::OkStatus();
  const absl::StatusOr<OperationRecord> started = store().Start(operation);
  ASSERT_TRUE(started.ok()) << started.status();
  operation.refusal = absl::NotFoundError("gone");
  EXPECT_EQ(store().Start(operation)->id, started->id);
}

TEST_P(OperationStoreTest, CancellingWhatWaitsEndsIt) {
  const std::string id = MustStart();
  const absl::StatusOr<OperationRecord> cancelled = store().RequestCancel(id);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state, OperationState::kCancelled);
  EXPECT_EQ(MustGet(id).record, *cancelled);
  EXPECT_EQ(MustGet(id).record.end_time_ns, clock_.WallNs());
  EXPECT_EQ(Claim("r1").id, "");
}

TEST_P(OperationStoreTest, CancellingWhatRunsIsToldToItsHolderAndIsItsEnd) {
  const std::string id = MustStart();
  const OperationAttempt attempt = Claim("r1");
  ASSERT_TRUE(store().RequestCancel(id).ok());
  EXPECT_EQ(StateOf(id), OperationState::kRunning);
  EXPECT_TRUE(MustGet(id).record.cancel_requested);
  EXPECT_EQ(Beat(attempt), HeartbeatAnswer::kCancelled);
  ASSERT_TRUE(store().Finish(attempt, {.bytes = "too late"}).ok());
  EXPECT_EQ(StateOf(id), OperationState::kCancelled);
  EXPECT_EQ(MustGet(id).result, "");
  EXPECT_TRUE(store().Finish(attempt, {.bytes = "again"}).ok());
  EXPECT_EQ(MustGet(id).result, "");
}

TEST_P(OperationStoreTest, WhatWasToBeCancelledEndsEvenIfItsHolderIsGoneOrGivesItBack) {
  const std::string gone = MustStart();
  Claim("r1");
  ASSERT_TRUE(store().RequestCancel(gone).ok());
  clock_.Advance(kLease);
  EXPECT_EQ(Claim("r2").id, "");
  EXPECT_EQ(StateOf(gone), OperationState::kCancelled);
  const std::string given_back = MustStart();
  const OperationAttempt attempt = Claim("r1");
  ASSERT_TRUE(store().RequestCancel(given_back).ok());
  ASSERT_TRUE(store().Release(attempt).ok());
  EXPECT_EQ(StateOf(given_back), OperationState::kCancelled);
}

TEST_P(OperationStoreTest, CancellingWhatIsDoneChangesNothing) {
  const std::string id = MustStart();
  ASSERT_TRUE(store().Finish(Claim("r1"), {.bytes = "result"}).ok());
  const StoredOperation before = MustGet(id);
  clock_.Advance(kSecond);
  ASSERT_TRUE(store().RequestCancel(id).ok());
  EXPECT_EQ(MustGet(id).record, before.record);
  EXPECT_EQ(MustGet(id).result, "result");
}

TEST_P(OperationStoreTest, OnlyWhatIsDoneIsDeleted) {
  const std::string id = MustStart();
  ExpectError(store().Delete(id), absl::StatusCode::kFailedPrecondition, "OPERATION_NOT_DONE");
  const OperationAttempt attempt = Claim("r1");
  ExpectError(store().Delete(id), absl::StatusCode::kFailedPrecondition, "OPERATION_NOT_DONE");
  ASSERT_TRUE(store().Finish(attempt, {.bytes = "result"}).ok());
  ASSERT_TRUE(store().Delete(id).ok());
  for (const absl::Status& status :
       {store().Get(id).status(), store().Delete(id), store().RequestCancel(id).status(),
        store().Finish(attempt, {}), store().Release(attempt)}) {
    ExpectError(status, absl::StatusCode::kNotFound, "OPERATION_NOT_FOUND");
    EXPECT_EQ(DetailsOf(status).resource.name, absl::StrCat("operations/", id));
  }
  EXPECT_EQ(Beat(attempt), HeartbeatAnswer::kLost);
}

TEST_P(OperationStoreTest, ARepeatedRequestIsTheFirstOperationWhileThatIsKept) {
  const std::string first = MustStart("request", "id");
  EXPECT_EQ(MustStart("request", "id"), first);
  ExpectError(
      store().Start({.request_id = "id", .request_digest = "another", .request = "x"}).status(),
      absl::StatusCode::kInvalidArgument, "REQUEST_ID_REUSED");
  EXPECT_NE(MustStart("request", "id", "another owner"), first);
  EXPECT_NE(MustStart("request", ""), MustStart("request", ""));
  ASSERT_TRUE(store().Finish(Claim("r1"), {.bytes = "result"}).ok());
  EXPECT_EQ(MustStart("request", "id"), first);
  ASSERT_TRUE(store().Delete(first).ok());
  EXPECT_NE(MustStart("request", "id"), first);
}

TEST_P(OperationStoreTest, OpenOperationsAreLimitedAndOneThatEndsMakesRoom) {
  Restart({.max_open_operations = 2});
  MustStart();
  const std::string second = MustStart();
  Claim("r1");
  const absl::Status full = store().Start({.request_digest = "d", .request = "x"}).status();
  ExpectError(full, absl::StatusCode::kResourceExhausted, "STORE_FULL");
  EXPECT_EQ(DetailsOf(full).quota_subject, "max_open_operations");
  EXPECT_GT(DetailsOf(full).retry_delay_ms, 0);
  ASSERT_TRUE(store().RequestCancel(second).ok());
  EXPECT_NE(MustStart(), "");
}

TEST_P(OperationStoreTest, BytesOfOpenRequestsAndOfResultsAreLimited) {
  Restart({.max_operation_store_bytes = 10});
  const std::string first = MustStart("12345678");
  ExpectError(store().Start({.request_digest = "d", .request = "123"}).status(),
              absl::StatusCode::kResourceExhausted, "STORE_FULL");
  ASSERT_TRUE(store().Finish(Claim("r1"), {.bytes = "1234"}).ok());
  const std::string second = MustStart("123456");
  EXPECT_EQ(
      DetailsOf(store().Start({.request_digest = "d", .request = "1"}).status()).quota_subject,
      "max_operation_store_bytes");
  ASSERT_TRUE(store().RequestCancel(second).ok());
  MustStart("123456");
  ASSERT_TRUE(store().Delete(first).ok());
  MustStart("1234");
}

TEST_P(OperationStoreTest, ListsAllPageByPage) {
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(MustStart());
  ASSERT_TRUE(store().Finish(Claim("r1"), {.bytes = "result"}).ok());
  std::vector<std::string> listed;
  OperationQuery query{.limit = 2};
  for (bool more = true; more;) {
    const absl::StatusOr<OperationPage> page = store().List(query);
    ASSERT_TRUE(page.ok()) << page.status();
    more = page->more;
    EXPECT_EQ(page->operations.size(), more ? 2 : 1);
    for (const StoredOperation& operation : page->operations) {
      listed.push_back(operation.record.id);
      EXPECT_EQ(operation.record, MustGet(operation.record.id).record);
      EXPECT_EQ(operation.result, operation.record.id == ids[0] ? "result" : "");
    }
    query.after = listed.back();
  }
  EXPECT_EQ(listed, ids);
  EXPECT_FALSE(store().List({.limit = 5})->more);
}

TEST_P(OperationStoreTest, APageEndsBeforeItHasTooManyBytes) {
  for (int i = 0; i < 4; ++i) {
    MustStart();
    ASSERT_TRUE(store().Finish(Claim("r1"), {.bytes = std::string(60, 'x')}).ok());
  }
  EXPECT_EQ(store().List({.max_bytes = 130})->operations.size(), 2);
  EXPECT_TRUE(store().List({.max_bytes = 130})->more);
  EXPECT_EQ(store().List({.max_bytes = 1})->operations.size(), 1);
}

TEST_P(OperationStoreTest, WhatWasDoneLongAgoOrIsTooMuchExpires) {
  Restart({.max_done_operations = 2, .retention_ns = 100 * kSecond});
  const auto done = [&] {
    std::string id = MustStart();
    EXPECT_TRUE(store().Finish(Claim("r1"), {.bytes = "result"}).ok());
    return id;
  };
  const std::string old = done();
  clock_.Advance(99 * kSecond);
  EXPECT_EQ(*store().Expire(), 0);
  const std::string next = done();
  clock_.Advance(kSecond);
  const std::string open = MustStart();
  EXPECT_EQ(*store().Expire(), 1);
  ExpectError(store().Get(old).status(), absl::StatusCode::kNotFound, "OPERATION_NOT_FOUND");
  ASSERT_TRUE(store().RequestCancel(open).ok());
  const std::string waiting = MustStart();
  const std::string last = MustStart();
  ASSERT_TRUE(store().RequestCancel(last).ok());
  EXPECT_EQ(*store().Expire(), 1);
  std::vector<std::string> left;
  const OperationPage page = *store().List({});
  for (const StoredOperation& operation : page.operations) left.push_back(operation.record.id);
  EXPECT_THAT(left, ElementsAre(open, waiting, last));
  clock_.Advance(1000 * kSecond);
  EXPECT_EQ(*store().Expire(), 2);
  EXPECT_EQ(StateOf(waiting), OperationState::kQueued);
}

TEST_P(OperationStoreTest, CountsByStateAndKnowsHowLongTheFirstWaits) {
  const std::string first = MustStart();
  clock_.Advance(kSecond);
  MustStart();
  clock_.Advance(kSecond);
  OperationCounts counts = *store().Count();
  EXPECT_EQ(counts.by_state[static_cast<int>(OperationState::kQueued)], 2);
  EXPECT_EQ(counts.oldest_queued_ns, 2 * kSecond + 1);
  ASSERT_TRUE(store().Finish(Claim("r1"), {.bytes = "result"}).ok());
  Claim("r1");
  counts = *store().Count();
  EXPECT_THAT(counts.by_state, ElementsAre(0, 1, 1, 0, 0, 0));
  EXPECT_EQ(counts.oldest_queued_ns, 0);
}

INSTANTIATE_TEST_SUITE_P(Stores, OperationStoreTest, testing::ValuesIn(OperationStoreKinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace stepcast::server::operation_store_contract_test
