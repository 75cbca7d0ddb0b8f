// Timelines that others recorded. They are no part of the tree: the tests skip where they are
// absent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "core/importing/tensorflow/tensorflow_profile.h"
#include "tests/core/importing/random_training.h"
#include "tests/support/recorded_data.h"

namespace stepcast::recorded_timelines_test {
namespace {

using ::stepcast::testing::Told;
using ::testing::Contains;
using ::testing::HasSubstr;

// Three layers, of 784 x 256, 256 x 128 and 128 x 10 floats by the look of it; the timelines
// themselves do not say.
std::map<std::string, int64_t> Sizes() {
  std::map<std::string, int64_t> sizes;
  const int64_t shapes[][2] = {{784, 256}, {256, 128}, {128, 10}};
  for (int layer = 1; layer <= 3; ++layer) {
    const std::string scope = "layer_" + std::to_string(layer) + "/fully_connected/";
    sizes[scope + "weights"] = 4 * shapes[layer - 1][0] * shapes[layer - 1][1];
    sizes[scope + "biases"] = 4 * shapes[layer - 1][1];
  }
  return sizes;
}

class RecordedTimelinesTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path File() const {
    return stepcast::testing::RecordedDataFolder() / "tf_timeline" / (GetParam() + ".json");
  }

  void SetUp() override {
    if (!std::filesystem::exists(File())) {
      GTEST_SKIP() << "no timeline " << File()
                   << "; set STEPCAST_SHARED_DATA to the folder that has tf_timeline";
    }
  }

  absl::StatusOr<ImportedProfile> Import(const TimelineOptions& options) const {
    std::ifstream file(File(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    TextSource source(text);
    return ImportTimeline(source, nullptr, options, {}, NeverStop);
  }

  static TimelineOptions Options(std::map<std::string, int64_t> sizes) {
    return {.recording = {.model = "mnist",
                          .batch_size = 100,
                          .platform = {.bandwidth_bytes_per_second = 1e8}},
            .variable_bytes = std::move(sizes)};
  }
};

class TrainingTimelinesTest : public RecordedTimelinesTest {};
class OtherTimelinesTest : public RecordedTimelinesTest {};

TEST_P(TrainingTimelinesTest, AreImportedWithTheSizesOfTheirVariables) {
  const absl::StatusOr<ImportedProfile> imported = Import(Options(Sizes()));
  ASSERT_TRUE(imported.ok()) << imported.status();
  std::map<Resource, int> count;
  for (const Operation& operation : imported->profile.operations()) ++count[operation.resource];
  EXPECT_EQ(count[Resource::kDownlink], 6);
  EXPECT_EQ(count[Resource::kUplink], 6);
  EXPECT_EQ(count[Resource::kParameterServer], 6);
  // All rows of the operations' devices but the variables, their updates and the executor's own.
  EXPECT_EQ(count[Resource::kWorker], GetParam()[0] == 'G' ? 67 : 54);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("6 variables of 0.90 MiB")));
  // The times of its transfers are made.
  EXPECT_FALSE(imported->profile.knows_transfer_order());
}

TEST_P(TrainingTimelinesTest, AreRefusedWithoutSizesAndNameTheVariables) {
  EXPECT_THAT(Told(Import(Options({})).status()),
              AllOf(HasSubstr("IMPORT_INVALID variable_bytes: required, or a graph"),
                    HasSubstr("\"layer_3/fully_connected/weights\"")));
  EXPECT_THAT(Told(Import(Options({{"layer_4/weights", 4}})).status()),
              HasSubstr("variable_bytes[\"layer_4/weights\"]: no variable of this name ran"));
}

TEST_P(RecordedTimelinesTest, AreRefusedWithoutBatchSizeAndBandwidth) {
  EXPECT_THAT(Told(Import({}).status()), AllOf(HasSubstr("batch_size: 0 is below 1"),
                                               HasSubstr("platform.bandwidth_bytes_per_second")));
}

TEST_P(OtherTimelinesTest, WithoutAVariableAreRefused) {
  EXPECT_THAT(Told(Import(Options({})).status()),
              HasSubstr("IMPORT_INVALID recording: no variable ran"));
}

INSTANTIATE_TEST_SUITE_P(Ikhlestov, RecordedTimelinesTest,
                         ::testing::Values("CPU_timeline_01", "CPU_timeline_02_step_0",
                                           "GPU_timeline_01", "GPU_timeline_02_step_0"),
                         [](const auto& file) { return file.param; });
INSTANTIATE_TEST_SUITE_P(Ikhlestov, TrainingTimelinesTest,
                         ::testing::Values("CPU_timeline_02_step_0", "GPU_timeline_02_step_0"),
                         [](const auto& file) { return file.param; });
INSTANTIATE_TEST_SUITE_P(Ikhlestov, OtherTimelinesTest,
                         ::testing::Values("CPU_timeline_01", "GPU_timeline_01"),
                         [](const auto& file) { return file.param; });

}  // namespace
}  // namespace stepcast::recorded_timelines_test
