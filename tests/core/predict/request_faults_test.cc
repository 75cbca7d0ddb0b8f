#include "core/predict/request_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "core/base/error.h"

namespace stepcast::request_faults_test {
namespace {

using ::testing::ElementsAre;

std::vector<Fault> FaultsOf(RequestFaults faults) {
  return DetailsOf(std::move(faults).ToStatus("REQUEST_INVALID")).faults;
}

TEST(RequestFaultsTest, NothingAddedIsOk) {
  RequestFaults faults;
  faults.AddPart("options", absl::OkStatus());
  EXPECT_TRUE(std::move(faults).ToStatus("REQUEST_INVALID").ok());
}

TEST(RequestFaultsTest, FaultsOfAllPartsAreTogetherUnderTheirPaths) {
  RequestFaults faults;
  faults.AddPart("options", FaultsError("OPTIONS_INVALID", {{"replications", "is 0"}}));
  faults.AddPart(
      "scenarios[3]",
      FaultsError("SCENARIO_INVALID", {{"workers", "is -1"}, {"worker_groups[0].count", "is 0"}}));
  faults.Add("worker_counts", "must be empty");
  const absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(status).reason, "REQUEST_INVALID");
  EXPECT_THAT(
      DetailsOf(status).faults,
      ElementsAre(Fault{"options.replications", "is 0"}, Fault{"scenarios[3].workers", "is -1"},
                  Fault{"scenarios[3].worker_groups[0].count", "is 0"},
                  Fault{"worker_counts", "must be empty"}));
}

TEST(RequestFaultsTest, APathThatTheRequestCallsOtherwiseIsRenamed) {
  RequestFaults faults;
  faults.AddPart("scenario", FaultsError("SCENARIO_INVALID", {{"workers", "is 0"}}),
                 {{"scenario.workers", "worker_counts[2]"}});
  EXPECT_THAT(FaultsOf(std::move(faults)), ElementsAre(Fault{"worker_counts[2]", "is 0"}));
}

TEST(RequestFaultsTest, TheSameFaultIsSaidOnce) {
  RequestFaults faults;
  for (int i = 0; i < 3; ++i) faults.Add("scenario.workers", "is 0");
  faults.Add("scenario.workers", "is 1");
  EXPECT_EQ(FaultsOf(std::move(faults)).size(), 2U);
}

TEST(RequestFaultsTest, AnotherFailureIsGivenOnlyWithoutFaults) {
  const absl::Status unsupported =
      MakeError(absl::StatusCode::kUnimplemented, "not yet", {.reason = "SCENARIO_UNSUPPORTED"});
  RequestFaults alone;
  alone.AddPart("scenario", unsupported);
  alone.AddPart("options", MakeError(absl::StatusCode::kUnimplemented, "neither",
                                     {.reason = "OPTIONS_UNSUPPORTED"}));
  const absl::Status status = std::move(alone).ToStatus("REQUEST_INVALID");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(DetailsOf(status).reason, "SCENARIO_UNSUPPORTED");
  RequestFaults both;
  both.AddPart("scenario", unsupported);
  both.Add("worker_counts", "must be empty");
  EXPECT_EQ(std::move(both).ToStatus("REQUEST_INVALID").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stepcast::request_faults_test
