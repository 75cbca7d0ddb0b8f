// Every store of operations against an obvious model, over random calls of several replicas on a
// fake clock: no operation has two ends, none is lost.
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "server/base/clock.h"
#include "server/store/operation_store.h"
#include "tests/server/store/operation_stores.h"

namespace stepcast::server::operation_store_model_test {
namespace {

constexpr int64_t kLease = 100;
constexpr int64_t kMaxAttempts = 3;

// The state of one operation, in words: "queued", "running", or its end, "succeeded by 2",
// "cancelled", "exhausted".
struct Modelled {
  std::string state = "queued";
  int64_t attempts = 0;
  int64_t lost = 0;  // attempts that ran out
  int64_t lease_until = 0;
  std::string holder;
  bool cancel = false;

  bool IsOpen() const { return state == "queued" || state == "running"; }
};

class Play {
 public:
  Play(const OperationStoreKind& kind, uint64_t seed)
      : random_(seed), stores_(kind.make({.max_attempts = kMaxAttempts}, clock_)) {}

  void Step() {
    clock_.Advance(1 + static_cast<int64_t>(random_() % 12));
    switch (random_() % 12) {
      case 0:
      case 1:
        return Start();
      case 2:
      case 3:
      case 4:
        return Claim(absl::StrCat("r", random_() % 3));
      case 5:
      case 6:
        return Beat(AnyAttempt());
      case 7:
      case 8:
        return Finish(AnyAttempt());
      case 9:
        return Release(AnyAttempt());
      case 10:
        return Cancel();
      default:
        clock_.Advance(static_cast<int64_t>(random_() % (2 * kLease)));
    }
  }

  // Each is at an end once nobody dies any more.
  void RunOut() {
    clock_.Advance(kLease);
    for (int i = 0; i < 1000; ++i) {
      Claim("last");
      if (attempts_.empty() || testing::Test::HasFatalFailure()) break;
      const OperationAttempt newest = attempts_.back();
      if (model_[newest.id].state != "running" || model_[newest.id].attempts != newest.number)
        break;
      Finish(newest);
    }
    for (const auto& [id, expected] : model_)
      ASSERT_FALSE(expected.IsOpen()) << id << " was lost: " << expected.state;
    Compare();
  }

  void Compare() {
    for (const auto& [id, expected] : model_) {
      const absl::StatusOr<StoredOperation> got = store().Get(id);
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_EQ(InWords(*got), expected.state) << id;
      ASSERT_EQ(got->record.attempts, expected.attempts) << id;
    }
  }

 private:
  OperationStore& store() { return stores_->operations(); }

  static std::string InWords(const StoredOperation& operation) {
    switch (operation.record.state) {
      case OperationState::kQueued:
        return "queued";
      case OperationState::kRunning:
        return "running";
      case OperationState::kSucceeded:
        return absl::StrCat("succeeded by ", operation.result);
      case OperationState::kFailed:
        return absl::StrCat("failed by ", operation.result);
      case OperationState::kCancelled:
        return "cancelled";
      case OperationState::kExhausted:
        return "exhausted";
    }
    return "?";
  }

  void Start() {
    const absl::StatusOr<OperationRecord> started =
        store().Start({.method = "m", .request_digest = "d", .request = "request"});
    ASSERT_TRUE(started.ok()) << started.status();
    ASSERT_TRUE(model_.emplace(started->id, Modelled()).second);
  }

  void Claim(const std::string& replica) {
    const int64_t now = clock_.MonotonicNs();
    const absl::StatusOr<std::optional<ClaimedOperation>> claimed =
        store().Claim({.replica = replica, .lease_ns = kLease});
    ASSERT_TRUE(claimed.ok()) << claimed.status();
    std::string taken;
    for (auto& [id, expected] : model_) {
      const bool is_lapsed = expected.state == "running" && expected.lease_until <= now;
      if (!is_lapsed && expected.state != "queued") continue;
      if (is_lapsed) ++expected.lost;
      if (expected.cancel || expected.lost >= kMaxAttempts) {
        expected.state = expected.cancel ? "cancelled" : "exhausted";
        continue;
      }
      ++expected.attempts;
      expected.state = "running";
      expected.holder = replica;
      expected.lease_until = now + kLease;
      taken = id;
      break;
    }
    ASSERT_EQ(claimed->has_value() ? (*claimed)->record.id : "", taken);
    if (claimed->has_value())
      attempts_.push_back({.id = taken, .replica = replica, .number = (*claimed)->record.attempts});
  }

  // One that was once begun: most are over.
  OperationAttempt AnyAttempt() {
    if (attempts_.empty()) return {.id = "o-none", .replica = "r0", .number = 1};
    const size_t last = attempts_.size() - 1;
    return attempts_[last - std::min<size_t>(last, random_() % 6)];
  }

  bool HasIt(const OperationAttempt& attempt) {
    const auto found = model_.find(attempt.id);
    return found != model_.end() && found->second.state == "running" &&
           found->second.attempts == attempt.number && found->second.holder == attempt.replica;
  }

  void Beat(const OperationAttempt& attempt) {
    const absl::StatusOr<HeartbeatAnswer> answer = store().Heartbeat(attempt, {.done = 7}, kLease);
    ASSERT_TRUE(answer.ok()) << answer.status();
    if (!HasIt(attempt)) {
      ASSERT_EQ(*answer, HeartbeatAnswer::kLost);
      return;
    }
    Modelled& expected = model_[attempt.id];
    expected.lease_until = clock_.MonotonicNs() + kLease;
    ASSERT_EQ(*answer, expected.cancel ? HeartbeatAnswer::kCancelled : HeartbeatAnswer::kGoOn);
  }

  void Finish(const OperationAttempt& attempt) {
    const bool is_error = random_() % 4 == 0;
    const absl::Status status =
        store().Finish(attempt, {.is_error = is_error, .bytes = absl::StrCat(attempt.number)});
    if (!HasIt(attempt)) {
      // Nothing must have changed, which Compare sees; OK is said to the attempt that ended it,
      // again.
      ASSERT_TRUE(status.ok() || DetailsOf(status).reason == "OPERATION_LOST" ||
                  attempt.id == "o-none")
          << status;
      return;
    }
    ASSERT_TRUE(status.ok()) << status;
    Modelled& expected = model_[attempt.id];
    expected.state = expected.cancel
                         ? "cancelled"
                         : absl::StrCat(is_error ? "failed by " : "succeeded by ", attempt.number);
  }

  void Release(const OperationAttempt& attempt) {
    const absl::Status status = store().Release(attempt);
    ASSERT_EQ(status.ok(), HasIt(attempt)) << status;
    if (!status.ok()) return;
    Modelled& expected = model_[attempt.id];
    expected.state = expected.cancel ? "cancelled" : "queued";
  }

  void Cancel() {
    if (model_.empty()) return;
    auto at = model_.begin();
    std::advance(at, random_() % model_.size());
    ASSERT_TRUE(store().RequestCancel(at->first).ok());
    if (!at->second.IsOpen()) return;
    at->second.cancel = true;
    if (at->second.state == "queued") at->second.state = "cancelled";
  }

  std::mt19937_64 random_;
  FakeClock clock_;
  std::unique_ptr<OperationStores> stores_;
  std::map<std::string, Modelled> model_;
  std::vector<OperationAttempt> attempts_;
};

class OperationStoreModelTest : public testing::TestWithParam<OperationStoreKind> {};

TEST_P(OperationStoreModelTest, HasAtMostOneEndAndLosesNone) {
  if (const std::string missing = GetParam().missing(); !missing.empty()) GTEST_SKIP() << missing;
  for (uint64_t seed = 1; seed <= GetParam().seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Play play(GetParam(), seed);
    for (int step = 0; step < 250; ++step) {
      play.Step();
      if (step % 10 == 0) play.Compare();
      ASSERT_FALSE(HasFatalFailure()) << "step " << step;
    }
    play.RunOut();
    ASSERT_FALSE(HasFatalFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, OperationStoreModelTest, testing::ValuesIn(OperationStoreKinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace stepcast::server::operation_store_model_test
