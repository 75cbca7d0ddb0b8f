#include "core/orders/forward_pass.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "core/zoo/model_zoo.h"
#include "tests/core/predict/example_profiles.h"

namespace stepcast::forward_pass_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> NamesOf(const Profile& profile) {
  std::vector<std::string> names;
  for (const Operation& operation : profile.operations()) names.push_back(operation.name);
  return names;
}

using Examples = std::vector<testing::ExampleOperation>;

Examples OneLayer() {
  return {
      {.name = "recv", .resource = Resource::kDownlink, .time_ns = 10},
      {.name = "batch", .time_ns = 3},
      {.name = "forward", .time_ns = 5, .waiting_for = {0, 1}},
      {.name = "accuracy", .time_ns = 1, .waiting_for = {2}},
      {.name = "backward", .time_ns = 7, .waiting_for = {2}},
      {.name = "send", .resource = Resource::kUplink, .time_ns = 10, .waiting_for = {4}},
      {.name = "update", .resource = Resource::kParameterServer, .time_ns = 2, .waiting_for = {5}}};
}

Profile ProfileOfExamples(const Examples& examples) {
  return Profile::Create(testing::DraftOf(examples)).value();
}

TEST(ForwardPassTest, EndsWhereGradientsBegin) {
  const Profile whole = ProfileOfExamples(OneLayer());
  const Profile forward = ForwardPass(whole).value();
  EXPECT_THAT(NamesOf(forward), ElementsAre("recv", "batch", "forward"));
  EXPECT_THAT(forward.operations()[2].waiting_for, ElementsAre(0, 1));
  EXPECT_THAT(forward.steps()[0].end_ns[2] - forward.steps()[0].start_ns[2], 5);
  EXPECT_EQ(forward.batch_size(), whole.batch_size());
}

// A gradient needs what its layer computed forward, and the parameter, too.
TEST(ForwardPassTest, DependenciesMayPassOverTheLoss) {
  const Profile whole = ProfileOfExamples(
      {{.name = "recv0", .resource = Resource::kDownlink, .time_ns = 10},
       {.name = "recv1", .resource = Resource::kDownlink, .time_ns = 10},
       {.name = "forward0", .time_ns = 5, .waiting_for = {0}},
       {.name = "forward1", .time_ns = 5, .waiting_for = {1, 2}},
       {.name = "backward1", .time_ns = 5, .waiting_for = {1, 2, 3}},
       {.name = "send1", .resource = Resource::kUplink, .time_ns = 10, .waiting_for = {4}},
       {.name = "backward0", .time_ns = 5, .waiting_for = {0, 4}},
       {.name = "send0", .resource = Resource::kUplink, .time_ns = 10, .waiting_for = {6}}});
  EXPECT_THAT(NamesOf(ForwardPass(whole).value()),
              ElementsAre("recv0", "recv1", "forward0", "forward1"));
}

TEST(ForwardPassTest, OfEveryModelOfTheZooIsAllItsForwardOperationsAndDownloads) {
  for (const std::string_view model : ZooModels()) {
    SCOPED_TRACE(model);
    const Profile whole =
        BuildZooProfile(model, {.platform = {.bandwidth_bytes_per_second = 1e9}}).value();
    const Profile forward = ForwardPass(whole).value();
    std::vector<std::string> expected;
    for (const std::string& name : NamesOf(whole)) {
      if (name.starts_with("recv/") || name.starts_with("forward/")) expected.push_back(name);
    }
    std::vector<std::string> found = NamesOf(forward);
    // A loss behind the last parameter is left out; one that joins several outputs is the cut.
    EXPECT_GE(found.size() + 1, expected.size());
    expected.resize(found.size());
    EXPECT_EQ(found, expected);
  }
}

TEST(ForwardPassTest, IsTheWholeWhereNothingIsUploaded) {
  const Profile whole = testing::NetworkProfile(1, {.training = false});
  EXPECT_EQ(ForwardPass(whole)->content(), whole.content());
}

TEST(ForwardPassTest, WhatCannotBeToldIsRefusedWithTheReason) {
  const auto refusal = [](const Examples& examples) {
    const absl::Status status = ForwardPass(ProfileOfExamples(examples)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(DetailsOf(status).reason, "FORWARD_PASS_UNKNOWN");
    return std::string(status.message());
  };
  Examples no_downloads = OneLayer();
  no_downloads[0].resource = Resource::kWorker;
  EXPECT_THAT(refusal(no_downloads), HasSubstr("no downloads"));

  Examples early_upload = OneLayer();
  early_upload[5].waiting_for = {1};
  EXPECT_THAT(refusal(early_upload), HasSubstr("upload \"send\" waits for no download"));

  Examples two_losses = OneLayer();
  for (testing::ExampleOperation operation : OneLayer()) {
    operation.name += "/other";
    for (int32_t& before : operation.waiting_for) before += 7;
    two_losses.push_back(operation);
  }
  EXPECT_THAT(refusal(two_losses), HasSubstr("no computation waits for all 2 downloads"));

  Examples download_behind_upload = OneLayer();
  download_behind_upload.push_back(
      {.name = "again", .resource = Resource::kDownlink, .time_ns = 10, .waiting_for = {6}});
  EXPECT_THAT(refusal(download_behind_upload), HasSubstr("a download waits for upload \"send\""));
}

}  // namespace
}  // namespace stepcast::forward_pass_test
