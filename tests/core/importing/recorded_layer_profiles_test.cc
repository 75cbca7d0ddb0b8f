// Layer profiles that others measured. They are no part of the tree: the tests skip where they are
// absent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/importing/layers/layer_profile.h"
#include "tests/support/recorded_data.h"

namespace stepcast::recorded_layer_profiles_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

struct Measured {
  std::string model;
  size_t layers;           // without data loading
  size_t with_parameters;  // of them
  double mebibytes;
  double forward_ms;
  double backward_ms;
  std::string note;
};

// Counts and sums were made apart from the importer. The sizes are those of the architectures in
// float32, so parameter_size is in bytes: VGG-16 527.79 MiB (138,357,544 parameters),
// ResNet-50 97.49 (25,557,032), ResNet-18 44.59 (11,689,512), AlexNet (torchvision's) 233.08
// (61,100,840).
class RecordedLayerProfileTest : public ::testing::TestWithParam<Measured> {
 protected:
  std::filesystem::path File() const {
    return stepcast::testing::RecordedDataFolder() / "layer_profiles" /
           (GetParam().model + ".graph.txt");
  }

  void SetUp() override {
    if (!std::filesystem::exists(File()))
      GTEST_SKIP() << "no layer profile " << File()
                   << "; set STEPCAST_SHARED_DATA to the folder that has layer_profiles";
  }

  ImportedProfile Import(double bandwidth) const {
    std::ifstream file(File(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return ImportLayerProfile(text, {.model = GetParam().model,
                                     .batch_size = 64,
                                     .platform = {.bandwidth_bytes_per_second = bandwidth},
                                     .variation = {.own = 0}})
        .value();
  }
};

TEST_P(RecordedLayerProfileTest, HasTheOperationsTimesAndBytesOfItsLayers) {
  const ImportedProfile imported = Import(125e6);
  const Profile& profile = imported.profile;
  EXPECT_EQ(profile.operations().size(), 2 * GetParam().layers + 3 * GetParam().with_parameters);
  double bytes_down = 0;
  double bytes_up = 0;
  double forward_ms = 0;
  double backward_ms = 0;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    const Operation& operation = profile.operations()[i];
    const double ms =
        static_cast<double>(profile.steps()[0].end_ns[i] - profile.steps()[0].start_ns[i]) * 1e-6;
    if (operation.resource == Resource::kDownlink)
      bytes_down += static_cast<double>(operation.size_bytes);
    if (operation.resource == Resource::kUplink)
      bytes_up += static_cast<double>(operation.size_bytes);
    if (operation.name.rfind("forward/", 0) == 0) forward_ms += ms;
    if (operation.name.rfind("backward/", 0) == 0) backward_ms += ms;
    EXPECT_THAT(operation.name, ::testing::Not(HasSubstr("Input")));
  }
  EXPECT_NEAR(bytes_down / (1 << 20), GetParam().mebibytes, 0.005);
  EXPECT_EQ(bytes_up, bytes_down);
  EXPECT_NEAR(forward_ms, GetParam().forward_ms, 1e-6);
  EXPECT_NEAR(backward_ms, GetParam().backward_ms, 1e-6);
  EXPECT_THAT(imported.notes, Contains(HasSubstr(GetParam().note)));
}

TEST_P(RecordedLayerProfileTest, AStepIsBetweenItsBusiestResourceAndTheSumOfAll) {
  for (const double bandwidth : {125e6, 1250e6}) {
    const Profile profile = Import(bandwidth).profile;
    const RecordedStep& step = profile.steps()[0];
    const double link_ms = GetParam().mebibytes * (1 << 20) / bandwidth * 1e3;
    const double worker_ms = GetParam().forward_ms + GetParam().backward_ms;
    const double update_ms = GetParam().mebibytes * (1 << 20) * 3 / 20e9 * 1e3;
    const double step_ms =
        static_cast<double>(*std::max_element(step.end_ns.begin(), step.end_ns.end())) * 1e-6;
    EXPECT_GE(step_ms, std::max(link_ms, worker_ms));
    EXPECT_LE(step_ms, (2 * link_ms + worker_ms + update_ms) * 1.0001);
  }
}

INSTANTIATE_TEST_SUITE_P(
    PipeDream, RecordedLayerProfileTest,
    ::testing::Values(Measured{"alexnet", 22, 8, 233.08, 44.801, 40.520, "node1), 635.902 ms"},
                      Measured{"vgg16", 40, 16, 527.79, 233.902, 438.633, "node1), 17.972 ms"},
                      Measured{"resnet50", 176, 107, 97.49, 182.488, 260.931, "node1), 18.962 ms"},
                      Measured{"resnet18", 70, 41, 44.59, 107.446, 152.296, "node1), 473.625 ms"}),
    [](const auto& measured) { return measured.param.model; });

}  // namespace
}  // namespace stepcast::recorded_layer_profiles_test
