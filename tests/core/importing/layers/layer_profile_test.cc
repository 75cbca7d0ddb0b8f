#include "core/importing/layers/layer_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace stepcast::layer_profile_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Data loading, a convolution, two branches, of which one has parameters, and their sum.
constexpr char kText[] =
    "node1 -- Input -- forward_compute_time=635.9, backward_compute_time=0.0, "
    "activation_size=10.0, parameter_size=0.0\n"
    "node2 -- Conv2d(3, 64) -- forward_compute_time=4.5, backward_compute_time=6.25, "
    "activation_size=10.0, parameter_size=4000.000\n"
    "node3 -- Linear(4, 5) -- forward_compute_time=1.5, backward_compute_time=2.0, "
    "activation_size=10.0, parameter_size=800.000\n"
    "node4 -- ReLU(inplace) -- forward_compute_time=0.5, backward_compute_time=0.25, "
    "activation_size=10.0, parameter_size=0.000\n"
    "node5 -- Add(inplace) -- forward_compute_time=0.0, backward_compute_time=0.0, "
    "activation_size=10.0, parameter_size=0.000\n"
    "\tnode1 -- node2\n"
    "\tnode2 -- node3\n"
    "\tnode2 -- node4\n"
    "\tnode3 -- node5\n"
    "\tnode4 -- node5\n";

LayerProfileOptions Options() {
  return {.model = "small", .batch_size = 16, .platform = {.bandwidth_bytes_per_second = 1e6}};
}

std::vector<std::string> Describe(const Profile& profile) {
  std::vector<std::string> lines;
  for (const Operation& operation : profile.operations()) {
    std::string line = operation.name + "<-";
    for (const int32_t before : operation.waiting_for)
      line += profile.operations()[static_cast<size_t>(before)].name + " ";
    lines.push_back(line);
  }
  return lines;
}

TEST(LayerProfileTest, LayersBecomeTransfersAndComputationsInGraphOrder) {
  const absl::StatusOr<ImportedProfile> imported = ImportLayerProfile(kText, Options());
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(
      Describe(imported->profile),
      ElementsAre(
          "recv/node2/Conv2d<-", "forward/node2/Conv2d<-recv/node2/Conv2d ", "recv/node3/Linear<-",
          "forward/node3/Linear<-recv/node3/Linear forward/node2/Conv2d ",
          "forward/node4/ReLU<-forward/node2/Conv2d ",
          "forward/node5/Add<-forward/node3/Linear forward/node4/ReLU ",
          "backward/node5/Add<-forward/node5/Add ", "backward/node4/ReLU<-backward/node5/Add ",
          "backward/node3/Linear<-backward/node5/Add ", "send/node3/Linear<-backward/node3/Linear ",
          "update/node3/Linear<-send/node3/Linear ",
          "backward/node2/Conv2d<-backward/node3/Linear backward/node4/ReLU ",
          "send/node2/Conv2d<-backward/node2/Conv2d ", "update/node2/Conv2d<-send/node2/Conv2d "));
  EXPECT_EQ(imported->profile.model(), "small");
  EXPECT_EQ(imported->profile.batch_size(), 16);
  EXPECT_EQ(imported->profile.platform(), Options().platform);
}

TEST(LayerProfileTest, TheMadeStepIsTheCriticalPathByHand) {
  LayerProfileOptions exact = Options();
  exact.variation.own = 0;
  const Profile profile = ImportLayerProfile(kText, exact)->profile;
  ASSERT_EQ(profile.steps().size(), 1u);
  const RecordedStep& step = profile.steps()[0];
  // At a byte a microsecond: 4.0 ms of download, 4.5 of node2, 0.5 of node4 (ready at once, and
  // before node3, but in the queue after it), 1.5 of node3; then backward 0.25 + 2.0 + 6.25, 4.0 of
  // upload, and the update of 4000 bytes.
  const int64_t update_ns = 4000 * 3 / 20;
  EXPECT_EQ(*std::max_element(step.end_ns.begin(), step.end_ns.end()), 23'000'000 + update_ns);
}

TEST(LayerProfileTest, NotesSayWhatWasFoundLeftOutAndAssumed) {
  const std::vector<std::string> notes = ImportLayerProfile(kText, Options())->notes;
  EXPECT_THAT(notes, Contains("Found 4 layers, 2 of them with parameters, 0.00 MiB in all."));
  EXPECT_THAT(notes,
              Contains("Found 6.500 ms of forward and 8.500 ms of backward computation a step."));
  EXPECT_THAT(notes, Contains("Left out: data loading (node1), 635.900 ms a step, which is not a "
                              "computation of the model."));
  EXPECT_THAT(notes, Contains(HasSubstr("one variable")));
  EXPECT_THAT(notes, Contains(HasSubstr("2e+10 bytes per second")));
  EXPECT_THAT(notes, Contains(HasSubstr("Made: one step. Nothing shows how steps vary")));
}

TEST(LayerProfileTest, VariationMakesTheStepsAskedForAndFollowsTheSeed) {
  LayerProfileOptions options = Options();
  options.variation.own = 0.1;
  options.variation.steps = 6;
  const Profile first = ImportLayerProfile(kText, options)->profile;
  EXPECT_EQ(first.steps().size(), 6u);
  EXPECT_NE(first.steps()[0], first.steps()[1]);
  EXPECT_EQ(ImportLayerProfile(kText, options)->profile.content(), first.content());
  options.variation.seed = 2;
  EXPECT_NE(ImportLayerProfile(kText, options)->profile.steps(), first.steps());
}

std::vector<std::string> Paths(const absl::StatusOr<ImportedProfile>& imported) {
  EXPECT_EQ(imported.status().code(), absl::StatusCode::kInvalidArgument) << imported.status();
  const ErrorDetails details = DetailsOf(imported.status());
  EXPECT_EQ(details.reason, "IMPORT_INVALID");
  std::vector<std::string> paths;
  for (const Fault& fault : details.faults) paths.push_back(fault.field);
  return paths;
}

TEST(LayerProfileTest, FaultsOfOptionsAndTextAreReportedTogether) {
  const LayerProfileOptions bad{
      .model = std::string(300, 'm'), .batch_size = 0, .variation = {.own = 0.9, .steps = 0}};
  EXPECT_THAT(Paths(ImportLayerProfile("nonsense", bad)),
              ElementsAre("model", "batch_size", "platform.bandwidth_bytes_per_second",
                          "step_time_variation", "steps", "line 1"));
}

TEST(LayerProfileTest, TheBatchSizeMustBeGiven) {
  LayerProfileOptions options = Options();
  options.batch_size = LayerProfileOptions{}.batch_size;
  EXPECT_THAT(Paths(ImportLayerProfile(kText, options)), ElementsAre("batch_size"));
}

TEST(LayerProfileTest, DataLoadingAloneIsNoProfile) {
  const std::string text(kText);
  EXPECT_THAT(Paths(ImportLayerProfile(text.substr(0, text.find('\n')), Options())),
              ElementsAre("line 1"));
}

TEST(LayerProfileTest, TheLimitsAreTheCallers) {
  EXPECT_THAT(Paths(ImportLayerProfile(kText, Options(), {.max_operations = 13})),
              ElementsAre("operations"));
  EXPECT_TRUE(ImportLayerProfile(kText, Options(), {.max_operations = 14}).ok());
  LayerProfileOptions varied = Options();
  varied.variation = {.own = 0.1, .steps = 20};
  EXPECT_THAT(Paths(ImportLayerProfile(kText, varied, {.max_recorded_times = int64_t{14} * 19})),
              ElementsAre("steps"));
}

}  // namespace
}  // namespace stepcast::layer_profile_test
