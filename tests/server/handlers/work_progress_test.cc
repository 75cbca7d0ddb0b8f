#include "server/handlers/work_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/stop_check.h"

namespace stepcast::server::work_progress_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const absl::Status kLate =
    MakeError(absl::StatusCode::kDeadlineExceeded, "late", {.reason = "DEADLINE_EXCEEDED"});

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(WorkProgressTest, WhoGivesUpHearsWhatWasAskedAndHowLongItWouldTake) {
  FakeClock clock;
  const ExpectedWork work{.operations = 340e6};
  const WorkProgress progress(work, clock, Remedy::kStartAJob);
  work.simulated->Add(8'500'000);
  clock.Advance(500'000'000);
  const absl::Status told = progress.Explain(kLate);
  EXPECT_EQ(told.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(told), HasSubstr("late; some 340 million simulated operations were asked "
                                       "for, of which 8.5 million were done in 0.5 s, so all "
                                       "would take about 20 s here; allow more time, "));
  EXPECT_THAT(Message(told), HasSubstr("stepcast job start"));
  const ErrorDetails details = DetailsOf(told);
  EXPECT_EQ(details.reason, "DEADLINE_EXCEEDED");
  EXPECT_EQ(details.metadata.at("expected_operations"), "340000000");
  EXPECT_EQ(details.metadata.at("simulated_operations"), "8500000");
  EXPECT_EQ(details.metadata.at("elapsed_seconds"), "0.5");
  EXPECT_EQ(details.metadata.at("expected_seconds"), "20");
}

TEST(WorkProgressTest, PiecesTellWhileNoRunHasEnded) {
  FakeClock clock;
  WorkProgress progress({.operations = 100.0 * kStopCheckInterval}, clock, Remedy::kAskForLess);
  progress.Count();
  clock.Advance(1'000'000'000);
  const absl::Status told = progress.Explain(kLate);
  EXPECT_EQ(DetailsOf(told).metadata.at("expected_seconds"), "100");
  EXPECT_THAT(Message(told), Not(HasSubstr("job start")));
}

TEST(WorkProgressTest, BeforeAnythingIsDoneNothingIsPromised) {
  const FakeClock clock;
  const WorkProgress progress({.operations = 5000}, clock, Remedy::kStartAJob);
  const absl::Status told = progress.Explain(kLate);
  EXPECT_THAT(
      Message(told),
      HasSubstr("late; some 5 thousand simulated operations were asked for; allow more time"));
  EXPECT_EQ(DetailsOf(told).metadata.count("expected_seconds"), 0U);
  EXPECT_EQ(told, SayWhatWasAsked(kLate, {.operations = 5000}, Remedy::kStartAJob));
}

TEST(WorkProgressTest, AllElseStaysAsItIs) {
  const FakeClock clock;
  WorkProgress progress({.operations = 5000}, clock, Remedy::kStartAJob);
  progress.Count();
  for (const absl::Status& status : {absl::OkStatus(), absl::CancelledError("x")})
    EXPECT_EQ(progress.Explain(status), status);
  EXPECT_EQ(SayWhatWasAsked(kLate, {}, Remedy::kStartAJob), kLate) << "nothing is simulated";
}

}  // namespace
}  // namespace stepcast::server::work_progress_test
