#include "core/zoo/model_zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace stepcast::model_zoo_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Platform kGigabit{.bandwidth_bytes_per_second = 117.7e6};

// Without variation, so that times are what the arithmetic says.
constexpr StepVariationDraft kExact{.own = 0};

Profile Build(std::string_view model,
              const ZooOptions& options = {.platform = kGigabit, .variation = kExact}) {
  return BuildZooProfile(model, options).value();
}

struct Published {
  std::string model;
  int tensors;
  double mebibytes;             // to two decimals
  double multiply_adds;         // of one forward pass, in 1e9
  double multiply_adds_within;  // relative
};

class PublishedModelTest : public ::testing::TestWithParam<Published> {};

TEST_P(PublishedModelTest, HasTheNumberAndSizeOfItsTensors) {
  const Profile profile = Build(GetParam().model);
  int tensors = 0;
  int64_t bytes = 0;
  for (const Operation& operation : profile.operations()) {
    if (operation.resource != Resource::kDownlink) continue;
    ++tensors;
    bytes += operation.size_bytes;
  }
  EXPECT_EQ(tensors, GetParam().tensors);
  EXPECT_NEAR(static_cast<double>(bytes) / (1 << 20), GetParam().mebibytes, 0.005);
}

TEST_P(PublishedModelTest, ForwardArithmeticIsThatOfThePaperForOneExample) {
  const ZooOptions options{
      .batch_size = 1, .platform = kGigabit, .device_flops_per_second = 1e9, .variation = kExact};
  const Profile profile = Build(GetParam().model, options);
  double seconds = 0;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    if (profile.operations()[i].name.rfind("forward/", 0) != 0) continue;
    seconds +=
        static_cast<double>(profile.steps()[0].end_ns[i] - profile.steps()[0].start_ns[i]) * 1e-9;
  }
  EXPECT_NEAR(seconds / 2, GetParam().multiply_adds,
              GetParam().multiply_adds * GetParam().multiply_adds_within);
}

// Tensors and MiB: TicTac, Table 1, but for googlenet and vgg11 (README.md says why).
// Multiply-adds: the papers' own counts for ResNet (He et al., Table 1: 3.8e9 and 7.6e9) and
// GoogLeNet (1.5e9); for the others the sum over the convolutions and dense layers of their tables,
// by hand.
INSTANTIATE_TEST_SUITE_P(Table1, PublishedModelTest,
                         ::testing::Values(Published{"alexnet", 16, 191.89, 0.737, 0.005},
                                           Published{"vgg11", 22, 506.83, 7.6, 0.02},
                                           Published{"vgg16", 32, 527.79, 15.5, 0.02},
                                           Published{"googlenet", 116, 26.70, 1.5, 0.1},
                                           Published{"inception_v3", 196, 103.54, 5.7, 0.05},
                                           Published{"resnet50", 108, 97.39, 3.8, 0.05},
                                           Published{"resnet101", 210, 169.74, 7.6, 0.05}),
                         [](const auto& published) { return published.param.model; });

TEST(ModelZooTest, NamesAreInAscendingOrderAndAllBuild) {
  const std::vector<std::string_view> names = ZooModels();
  EXPECT_THAT(names, ElementsAre("alexnet", "googlenet", "inception_v3", "resnet101", "resnet50",
                                 "vgg11", "vgg16"));
  for (const std::string_view name : names) {
    const Profile profile = Build(name);
    EXPECT_EQ(profile.model(), name);
    EXPECT_EQ(profile.batch_size(), 32);
    EXPECT_EQ(profile.platform(), kGigabit);
    EXPECT_EQ(profile.steps().size(), 1u);
  }
}

TEST(ModelZooTest, StepsVaryUnlessOneIsAskedFor) {
  EXPECT_EQ(Build("alexnet", {.platform = kGigabit}).steps().size(), 20u);
  EXPECT_EQ(Build("alexnet").steps().size(), 1u);
}

TEST(ModelZooTest, EveryTensorIsReceivedSentAndUpdatedUnderItsParameter) {
  const Profile profile = Build("inception_v3");
  std::map<std::string, std::set<std::string>> of_parameter;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    const Operation& operation = profile.operations()[i];
    if (operation.resource == Resource::kWorker) continue;
    of_parameter[operation.parameter].insert(operation.name);
    EXPECT_EQ(operation.waiting_for.empty(), operation.resource == Resource::kDownlink);
    EXPECT_GT(profile.steps()[0].end_ns[i], profile.steps()[0].start_ns[i]);
  }
  EXPECT_EQ(of_parameter.size(), 196u);
  for (const auto& [parameter, names] : of_parameter)
    EXPECT_EQ(names, (std::set{"recv/" + parameter, "send/" + parameter, "update/" + parameter}));
}

TEST(ModelZooTest, ForwardAndBackwardFollowTheLayers) {
  const Profile profile = Build("alexnet");
  std::map<std::string, const Operation*> by_name;
  for (const Operation& operation : profile.operations()) by_name[operation.name] = &operation;
  const auto before = [&](const std::string& name) {
    std::vector<std::string> names;
    for (const int32_t index : by_name.at(name)->waiting_for)
      names.push_back(profile.operations()[static_cast<size_t>(index)].name);
    return names;
  };
  EXPECT_THAT(before("forward/conv1"), ElementsAre("recv/conv1/weights", "recv/conv1/biases"));
  EXPECT_THAT(before("forward/conv2"),
              ElementsAre("recv/conv2/weights", "recv/conv2/biases", "forward/pool1"));
  EXPECT_THAT(before("backward/loss"), ElementsAre("forward/loss"));
  EXPECT_THAT(before("backward/fc8"), ElementsAre("backward/loss"));
  EXPECT_THAT(before("send/fc8/biases"), ElementsAre("backward/fc8"));
  EXPECT_THAT(before("update/fc8/biases"), ElementsAre("send/fc8/biases"));
}

// Seconds of a step that one resource is in use.
double BusySeconds(const Profile& profile, Resource resource) {
  double ns = 0;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    if (profile.operations()[i].resource == resource)
      ns += static_cast<double>(profile.steps()[0].end_ns[i] - profile.steps()[0].start_ns[i]);
  }
  return ns * 1e-9;
}

TEST(ModelZooTest, ComputationIsArithmeticOverTheDevicesRate) {
  const double base = BusySeconds(Build("resnet50"), Resource::kWorker);
  EXPECT_NEAR(
      BusySeconds(Build("resnet50", {.batch_size = 64, .platform = kGigabit, .variation = kExact}),
                  Resource::kWorker) /
          base,
      2, 1e-4);
  EXPECT_NEAR(BusySeconds(Build("resnet50", {.platform = kGigabit,
                                             .device_flops_per_second = 1e13,
                                             .variation = kExact}),
                          Resource::kWorker) /
                  base,
              0.5, 1e-4);
}

TEST(ModelZooTest, VariationMakesTheStepsAskedForAndFollowsTheSeed) {
  const ZooOptions options{.platform = kGigabit, .variation = {.own = 0.1, .steps = 7, .seed = 3}};
  const Profile profile = Build("alexnet", options);
  EXPECT_EQ(profile.steps().size(), 7u);
  EXPECT_NE(profile.steps()[0], profile.steps()[1]);
  EXPECT_EQ(Build("alexnet", options).content(), profile.content());
  ZooOptions other = options;
  other.variation.seed = 4;
  EXPECT_NE(Build("alexnet", other).steps(), profile.steps());
}

std::vector<std::string> Paths(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(DetailsOf(status).reason, "IMPORT_INVALID");
  std::vector<std::string> paths;
  for (const Fault& fault : DetailsOf(status).faults) paths.push_back(fault.field);
  return paths;
}

TEST(ModelZooTest, EveryBadOptionIsReportedAtOnce) {
  const ZooOptions options{.batch_size = 0,
                           .platform = {.window_bytes = -1},
                           .device_flops_per_second = std::numeric_limits<double>::quiet_NaN(),
                           .variation = {.own = 0.6, .steps = 1001}};
  const absl::Status status = BuildZooProfile("lenet", options).status();
  EXPECT_THAT(Paths(status),
              ElementsAre("model", "batch_size", "platform.bandwidth_bytes_per_second",
                          "platform.window_bytes", "device_flops_per_second", "step_time_variation",
                          "steps"));
  EXPECT_THAT(DetailsOf(status).faults[0].description,
              HasSubstr("\"lenet\" is none of alexnet, googlenet"));
}

TEST(ModelZooTest, OptionsThatMakeAnEndlessStepAreRefused) {
  EXPECT_THAT(
      Paths(BuildZooProfile("vgg16", {.platform = kGigabit, .device_flops_per_second = 1e-300})
                .status()),
      ElementsAre("device_flops_per_second"));
  EXPECT_THAT(
      Paths(BuildZooProfile("vgg16", {.batch_size = 1'000'000'001, .platform = kGigabit}).status()),
      ElementsAre("batch_size"));
  // A byte a second: the downloads alone take years.
  const std::vector<std::string> slow =
      Paths(BuildZooProfile("vgg16", {.platform = {.bandwidth_bytes_per_second = 1}}).status());
  EXPECT_THAT(slow, ::testing::Each(::testing::StartsWith("steps[")));
  EXPECT_THAT(slow, ::testing::Not(::testing::IsEmpty()));
}

TEST(ModelZooTest, TheLimitsAreTheCallers) {
  const ZooOptions varied{.platform = kGigabit, .variation = {.own = 0.1, .steps = 20}};
  EXPECT_THAT(Paths(BuildZooProfile("alexnet", varied, {.max_recorded_times = 1000}).status()),
              ElementsAre("steps"));
  EXPECT_THAT(
      Paths(BuildZooProfile("alexnet", {.platform = kGigabit}, {.max_operations = 10}).status()),
      ElementsAre("operations"));
}

}  // namespace
}  // namespace stepcast::model_zoo_test
