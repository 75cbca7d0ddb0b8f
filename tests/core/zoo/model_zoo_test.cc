#include "core/zoo/model_zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
                                           Published{"vgg19", 38, 548.05, 19.6, 0.02},
                                           Published{"inception_v2", 141, 42.64, 2.0, 0.05},
                                           Published{"inception_v3", 196, 103.54, 5.7, 0.05},
                                           Published{"resnet50", 108, 97.39, 3.8, 0.05},
                                           Published{"resnet101", 210, 169.74, 7.6, 0.05},
                                           Published{"resnet50_v2", 125, 97.45, 3.8, 0.05},
                                           Published{"resnet101_v2", 244, 169.86, 7.6, 0.05}),
                         [](const auto& published) { return published.param.model; });

TEST(ModelZooTest, NamesAreInAscendingOrderAndAllBuild) {
  const std::vector<std::string_view> names = ZooModels();
  EXPECT_THAT(names,
              ElementsAre("alexnet", "googlenet", "inception_v2", "inception_v3", "resnet101",
                          "resnet101_v2", "resnet50", "resnet50_v2", "vgg11", "vgg16", "vgg19"));
  for (const std::string_view name : names) {
    const Profile profile = Build(name);
    EXPECT_EQ(profile.model(), name);
    EXPECT_EQ(profile.batch_size(), 32);
    EXPECT_EQ(profile.platform(), kGigabit);
    EXPECT_EQ(profile.steps().size(), 1u);
  }
}

TEST(ModelZooTest, StepsVaryWhereThatIsAskedFor) {
  EXPECT_EQ(Build("alexnet", {.platform = kGigabit}).steps().size(), 1u);
  EXPECT_EQ(Build("alexnet", {.platform = kGigabit, .variation = {.own = 0.05}}).steps().size(),
            20u);
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

Profile BuildAllReduce(std::string_view model) {
  return Build(
      model,
      {.platform = kGigabit, .variation = kExact, .communication = ZooCommunication::kAllReduce});
}

TEST(AllReduceZooTest, NamesAreInAscendingOrderAndAllBuild) {
  const std::vector<std::string_view> names = ZooModels(ZooCommunication::kAllReduce);
  EXPECT_THAT(names,
              ElementsAre("bert_base", "gpt2_small", "inception_v3", "resnet101", "resnet152",
                          "resnet18", "resnet18_cifar", "resnet50", "vgg16", "vgg19", "xception"));
  for (const std::string_view name : names) {
    const Profile profile = BuildAllReduce(name);
    EXPECT_EQ(profile.model(), name);
    EXPECT_TRUE(profile.has_collectives());
    ASSERT_TRUE(profile.content().buckets.has_value());
    EXPECT_EQ(profile.content().buckets->rule, Buckets{});
  }
}

// DistributedDataParallel's rule, as plainly as it can be said.
std::vector<int64_t> BucketsOf(const std::vector<int64_t>& gradients, const Buckets& limits) {
  std::vector<int64_t> buckets;
  int64_t filled = 0;
  for (const int64_t bytes : gradients) {
    filled += bytes;
    if (filled < (buckets.empty() ? limits.first_bytes : limits.cap_bytes)) continue;
    buckets.push_back(filled);
    filled = 0;
  }
  if (filled > 0) buckets.push_back(filled);
  return buckets;
}

std::vector<int64_t> GradientsOf(const Profile& profile) {
  std::vector<int64_t> sizes;
  for (const Operation& operation : profile.operations()) {
    if (operation.collective == Collective::kAllReduce) sizes.push_back(operation.size_bytes);
  }
  return sizes;
}

// Of the rule and real parameter lists; README.md of core/zoo says which were seen in real jobs.
struct GoldenBuckets {
  std::string model;
  Buckets limits;
  std::vector<int64_t> sizes;
};

class GoldenBucketsTest : public ::testing::TestWithParam<GoldenBuckets> {};

TEST_P(GoldenBucketsTest, AreWhatTheGradientsAddUpTo) {
  EXPECT_EQ(BucketsOf(GradientsOf(BuildAllReduce(GetParam().model)), GetParam().limits),
            GetParam().sizes);
}

constexpr int64_t kMebibyte = 1 << 20;

// A first and a last bucket around eleven of a layer's gradients each.
std::vector<int64_t> OfTwelveLayers(int64_t first, int64_t last) {
  std::vector<int64_t> sizes(13, 28'351'488);
  sizes.front() = first;
  sizes.back() = last;
  return sizes;
}

INSTANTIATE_TEST_SUITE_P(
    Real, GoldenBucketsTest,
    ::testing::Values(
        GoldenBuckets{"resnet18", {}, {2'052'000, 28'852'224, 15'853'824}},
        GoldenBuckets{
            "resnet18", {.cap_bytes = 35 * kMebibyte}, {2'052'000, 38'297'600, 6'408'448}},
        GoldenBuckets{"resnet50", {}, {8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160}},
        GoldenBuckets{
            "vgg16", {}, {16'388'000, 67'125'248, 411'058'176, 28'317'696, 28'319'744, 2'221'312}},
        GoldenBuckets{"vgg16",
                      {.first_bytes = 100 * kMebibyte, .cap_bytes = 100 * kMebibyte},
                      {494'571'424, 58'858'752}},
        GoldenBuckets{"bert_base", {}, OfTwelveLayers(9'452'552, 114'253'824)},
        GoldenBuckets{"gpt2_small", {}, OfTwelveLayers(9'446'400, 176'446'464)}),
    [](const auto& golden) {
      return golden.param.model + "_" + std::to_string(golden.param.limits.cap_bytes / kMebibyte);
    });

TEST(AllReduceZooTest, GradientsFollowTheirLayersBackwardFromTheLastToTheFirst) {
  const Profile profile = BuildAllReduce("vgg16");
  const std::vector<Operation>& operations = profile.operations();
  std::map<std::string, const Operation*> by_name;
  for (const Operation& operation : operations) by_name[operation.name] = &operation;
  const auto before = [&](const std::string& name) {
    std::vector<std::string> names;
    for (const int32_t index : by_name.at(name)->waiting_for)
      names.push_back(operations[static_cast<size_t>(index)].name);
    return names;
  };
  EXPECT_THAT(before("forward/features.0"), ElementsAre());
  EXPECT_THAT(before("forward/features.2"), ElementsAre("forward/features.1"));
  EXPECT_THAT(before("backward/loss"), ElementsAre("forward/loss"));
  EXPECT_THAT(before("backward/classifier.3"), ElementsAre("backward/classifier.4"));
  EXPECT_THAT(before("all_reduce/classifier.3.bias"), ElementsAre("backward/classifier.3"));
  EXPECT_THAT(before("all_reduce/classifier.3.weight"), ElementsAre("backward/classifier.3"));
  EXPECT_EQ(by_name.at("all_reduce/classifier.3.weight")->parameter, "classifier.3.weight");
  std::vector<std::string> gradients;
  for (const Operation& operation : operations) {
    if (operation.resource == Resource::kCollective) gradients.push_back(operation.parameter);
  }
  ASSERT_EQ(gradients.size(), 32u);
  EXPECT_THAT(std::vector(gradients.begin(), gradients.begin() + 3),
              ElementsAre("classifier.6.bias", "classifier.6.weight", "classifier.3.bias"));
  EXPECT_EQ(gradients.back(), "features.0.weight");
  EXPECT_EQ(operations.back().name, "optimizer");
  EXPECT_EQ(operations.back().waiting_for.size(), 33u) << "all gradients, and the last computation";
}

// One worker alone: computations one after the other, gradients as soon as they are computed.
// A stage of a pipeline sends what its last layer hands on, which is what that layer keeps.
TEST(AllReduceZooTest, ForwardOperationsHandOnTheirOutputs) {
  const Profile profile = BuildAllReduce("resnet50");
  for (const Operation& operation : profile.operations()) {
    const bool is_forward = operation.pass == Pass::kForward;
    EXPECT_EQ(operation.output_bytes > 0, is_forward) << operation.name;
    EXPECT_EQ(operation.output_bytes, operation.kept_bytes) << operation.name;
  }
  EXPECT_EQ(profile.operations().front().output_bytes,
            int64_t{4} * 64 * 112 * 112 * profile.batch_size());
}

TEST(AllReduceZooTest, OneWorkersStepIsItsComputation) {
  const Profile profile = BuildAllReduce("bert_base");
  const RecordedStep& step = profile.steps()[0];
  int64_t computed = 0;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    const Operation& operation = profile.operations()[i];
    if (operation.resource == Resource::kWorker) {
      EXPECT_EQ(step.start_ns[i], computed) << operation.name;
      computed = step.end_ns[i];
    } else {
      EXPECT_EQ(step.end_ns[i], step.start_ns[i]) << operation.name;
    }
  }
  EXPECT_EQ(step.end_ns.back(), computed);
  // SGD with momentum or Adam moves the parameters a few times, which takes a fixed share of the
  // device's rate and does not depend on the batch.
  EXPECT_EQ(step.end_ns.back() - step.start_ns.back(),
            std::llround(108'893'186.0 * 4 * 7 * 12 / 5e12 * 1e9));
}

TEST(AllReduceZooTest, AModelOfTheOtherJobsIsNamedAsOne) {
  const absl::Status servers = BuildZooProfile("bert_base", {.platform = kGigabit}).status();
  EXPECT_THAT(Paths(servers), ElementsAre("model"));
  EXPECT_THAT(DetailsOf(servers).faults[0].description, HasSubstr("it is one of all-reduce jobs"));
  const absl::Status all_reduce =
      BuildZooProfile("alexnet",
                      {.platform = kGigabit, .communication = ZooCommunication::kAllReduce})
          .status();
  EXPECT_THAT(Paths(all_reduce), ElementsAre("model"));
  EXPECT_THAT(DetailsOf(all_reduce).faults[0].description,
              HasSubstr("\"alexnet\" is none of bert_base, gpt2_small"));
  EXPECT_THAT(DetailsOf(all_reduce).faults[0].description,
              HasSubstr("it is one of parameter-server jobs"));
}

TEST(AllReduceZooTest, OptionsThatMakeAnEndlessStepAreRefused) {
  EXPECT_THAT(Paths(BuildZooProfile("vgg16", {.platform = kGigabit,
                                              .device_flops_per_second = 1e-300,
                                              .communication = ZooCommunication::kAllReduce})
                        .status()),
              ElementsAre("device_flops_per_second"));
}

}  // namespace
}  // namespace stepcast::model_zoo_test
