#include "server/jobs/cancellation.h"

#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "core/base/error.h"

namespace stepcast::server::cancellation_test {
namespace {

TEST(CancellationTest, GoesOnWithoutCancelAndDeadline) {
  FakeClock clock;
  const Cancellation cancellation(clock);
  clock.Advance(int64_t{1} << 60);
  EXPECT_TRUE(cancellation.Check().ok());
}

TEST(CancellationTest, CancelStopsWithItsReason) {
  FakeClock clock;
  Cancellation cancellation(clock);
  cancellation.Cancel();
  const absl::Status status = cancellation.Check();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(DetailsOf(status).reason, "CANCELLED");
}

TEST(CancellationTest, AnOkReasonStillCancels) {
  FakeClock clock;
  Cancellation cancellation(clock);
  cancellation.Cancel(absl::OkStatus());
  EXPECT_EQ(cancellation.Check().code(), absl::StatusCode::kCancelled);
}

TEST(CancellationTest, TheFirstReasonStays) {
  FakeClock clock;
  Cancellation cancellation(clock);
  cancellation.Cancel(absl::UnavailableError("shutting down"));
  cancellation.Cancel();
  EXPECT_EQ(cancellation.Check(), absl::UnavailableError("shutting down"));
}

TEST(CancellationTest, TheDeadlineItselfIsTooLate) {
  FakeClock clock;
  const Cancellation cancellation(clock, clock.MonotonicNs() + 100);
  clock.Advance(99);
  EXPECT_TRUE(cancellation.Check().ok());
  clock.Advance(1);
  const absl::Status status = cancellation.Check();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(DetailsOf(status).reason, "DEADLINE_EXCEEDED");
}

TEST(CancellationTest, TheDeadlineIgnoresTheWallClock) {
  FakeClock clock;
  const Cancellation cancellation(clock, clock.MonotonicNs() + 100);
  clock.SetWall(clock.WallNs() + 1'000'000'000);
  EXPECT_TRUE(cancellation.Check().ok());
}

TEST(CancellationTest, ManyWorkersSeeACancelFromAnotherThread) {
  FakeClock clock;
  const auto cancellation = std::make_shared<Cancellation>(clock);
  constexpr int kWorkers = 4;
  std::vector<std::thread> workers;
  workers.reserve(kWorkers);
  for (int i = 0; i < kWorkers; ++i) {
    workers.emplace_back([cancellation] {
      absl::Status status;
      while (status.ok()) status = cancellation->Check();
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
    });
  }
  cancellation->Cancel();
  for (std::thread& worker : workers) worker.join();
}

}  // namespace
}  // namespace stepcast::server::cancellation_test
