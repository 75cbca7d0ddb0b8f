#include "core/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stepcast::error_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Fault> Faults(size_t count, size_t description_bytes) {
  std::vector<Fault> faults;
  for (size_t i = 0; i < count; ++i)
    faults.push_back(
        {.field = "f" + std::to_string(i), .description = std::string(description_bytes, 'd')});
  return faults;
}

TEST(ErrorTest, EveryDetailTravelsInTheStatus) {
  const ErrorDetails details{
      .reason = "QUEUE_FULL",
      .metadata = {{"limit", "64"}, {"text", "with: colons, 12:digits and\nlines"}, {"", ""}},
      .faults = {{.field = "a[0].b", .description = std::string("zero \0 inside", 13)},
                 {.field = "", .description = ""}},
      .faults_left_out = 3,
      .resource = {.type = "Profile", .name = "profiles/x"},
      .retry_delay_ms = 500,
      .quota_subject = "queue_max"};
  const absl::Status status =
      MakeError(absl::StatusCode::kResourceExhausted, "the queue is full", details);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "the queue is full");
  EXPECT_EQ(DetailsOf(status), details);
}

TEST(ErrorTest, AStatusMadeElsewhereHasNoDetails) {
  EXPECT_EQ(DetailsOf(absl::InternalError("x")), ErrorDetails{});
  EXPECT_EQ(DetailsOf(absl::OkStatus()), ErrorDetails{});
}

TEST(FaultsErrorTest, TheMessageNamesTheFirstAndCountsTheRest) {
  const absl::Status one =
      FaultsError("PROFILE_INVALID", {{.field = "steps", .description = "none"}});
  EXPECT_EQ(one.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(one.message(), "steps: none");
  EXPECT_EQ(DetailsOf(one).reason, "PROFILE_INVALID");
  EXPECT_EQ(FaultsError("X", Faults(3, 1)).message(), "f0: d (and 2 more)");
  EXPECT_EQ(FaultsError("X", {{.field = "", .description = "whole input"}}).message(),
            "whole input");
}

TEST(FaultsErrorTest, AtMostTwentyFaultsAreKeptAndTheOthersCounted) {
  const ErrorDetails details = DetailsOf(FaultsError("X", Faults(25, 1)));
  EXPECT_EQ(details.faults.size(), kMaxFaults);
  EXPECT_EQ(details.faults[19].field, "f19");
  EXPECT_EQ(details.faults_left_out, 5u);
}

TEST(FaultsErrorTest, AtMostFourKibibytesOfFaultsAreKept) {
  const ErrorDetails details = DetailsOf(FaultsError("X", Faults(10, 1000)));
  EXPECT_EQ(details.faults.size(), 4u);
  EXPECT_EQ(details.faults_left_out, 6u);
}

TEST(FaultsErrorTest, ASingleHugeFaultIsShortenedNotDropped) {
  const absl::Status status = FaultsError("X", Faults(2, 1 << 20));
  const ErrorDetails details = DetailsOf(status);
  ASSERT_EQ(details.faults.size(), 1u);
  EXPECT_EQ(details.faults[0].field, "f0");
  EXPECT_EQ(details.faults[0].description.size(), kMaxFaultBytes / 2);
  EXPECT_LE(status.message().size(), kMaxFaultBytes + 100);
}

TEST(FaultsErrorTest, ShorteningKeepsUtf8Whole) {
  std::string text = "x";
  while (text.size() < 2 * kMaxFaultBytes) text += "\xe2\x82\xac";  // three bytes a character
  const absl::Status status = FaultsError("X", {{.field = "", .description = text}});
  const std::string kept = DetailsOf(status).faults.at(0).description;
  EXPECT_LE(kept.size(), kMaxFaultBytes / 2);
  EXPECT_EQ((kept.size() - 1) % 3, 0u);
  EXPECT_EQ((status.message().size() - 1) % 3, 0u);
}

TEST(UnderPathTest, EveryFaultAndTheMessageMoveBelowThePath) {
  const absl::Status status =
      UnderPath("profile", FaultsError("X", {{.field = "steps[0]", .description = "bad"},
                                             {.field = "", .description = "worse"}}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "profile.steps[0]: bad (and 1 more)");
  EXPECT_EQ(DetailsOf(status).reason, "X");
  EXPECT_THAT(DetailsOf(status).faults,
              ElementsAre(Fault{.field = "profile.steps[0]", .description = "bad"},
                          Fault{.field = "profile", .description = "worse"}));
}

TEST(UnderPathTest, TheNumberLeftOutIsKept) {
  EXPECT_EQ(DetailsOf(UnderPath("p", FaultsError("X", Faults(25, 1)))).faults_left_out, 5u);
}

TEST(UnderPathTest, AStatusWithoutFaultsIsReturnedAsItIs) {
  const absl::Status status =
      MakeError(absl::StatusCode::kNotFound, "gone", {.reason = "PROFILE_NOT_FOUND"});
  EXPECT_EQ(UnderPath("profile", status), status);
  EXPECT_EQ(UnderPath("profile", absl::OkStatus()), absl::OkStatus());
  EXPECT_THAT(DetailsOf(status).faults, IsEmpty());
}

}  // namespace
}  // namespace stepcast::error_test
