// Traces of PyTorch that were really recorded. All but one are no part of the tree: their tests
// skip where they are absent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "nlohmann/json.hpp"

#include "core/importing/pytorch/gradient_buckets.h"
#include "core/importing/pytorch/pytorch_trace.h"
#include "tests/core/importing/lone_worker.h"
#include "tests/core/importing/random_training.h"
#include "tests/core/importing/unpacked_file.h"
#include "tests/support/recorded_data.h"

namespace stepcast::recorded_pytorch_traces_test {
namespace {

using ::stepcast::testing::LoneStepNs;
using ::stepcast::testing::Told;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<ImportedProfile> Import(const std::string& text) {
  TextSource source(text);
  return ImportPyTorchTrace(source,
                            {.recording = {.model = "m",
                                           .batch_size = 32,
                                           .platform = {.bandwidth_bytes_per_second = 1.25e8}}},
                            {}, NeverStop);
}

std::vector<int64_t> GradientsOf(const Profile& profile) {
  std::vector<int64_t> sizes;
  for (const Operation& operation : profile.operations()) {
    if (operation.collective == Collective::kAllReduce) sizes.push_back(operation.size_bytes);
  }
  return sizes;
}

// The lengths of the ProfilerSteps that the host recorded, but the first two.
std::vector<int64_t> HostStepsNs(const std::string& text) {
  std::map<double, int64_t> steps;
  const nlohmann::json trace = nlohmann::json::parse(text);
  for (const auto& event : trace.at("traceEvents")) {
    if (event.value("ph", "") != "X" || event.value("cat", "") == "gpu_user_annotation") continue;
    if (event.value("name", "").rfind("ProfilerStep#", 0) != 0) continue;
    steps[event.at("ts").get<double>()] = std::llround(1000 * event.at("dur").get<double>());
  }
  std::vector<int64_t> lengths;
  for (const auto& [start, length] : steps) lengths.push_back(length);
  return {lengths.begin() + 2, lengths.end()};
}

void ExpectLoneStepsOf(const std::string& text, const Profile& profile) {
  const std::vector<int64_t> recorded = HostStepsNs(text);
  ASSERT_EQ(profile.steps().size(), recorded.size());
  for (size_t i = 0; i < recorded.size(); ++i)
    EXPECT_EQ(LoneStepNs(profile, profile.steps()[i]), recorded[i]) << "step " << i;
}

TEST(PyTorchTraceOfTheTreeTest, OneWorkerTakesAsLongAsEachRecordedStep) {
  const std::string text =
      testing::UnpackedFile(STEPCAST_SOURCE_DIR "/tests/data/pytorch/alexnet_s-25.json.gz");
  const absl::StatusOr<ImportedProfile> imported = Import(text);
  ASSERT_TRUE(imported.ok()) << imported.status();
  ExpectLoneStepsOf(text, imported->profile);
  EXPECT_EQ(GradientsOf(imported->profile).size(), 16U);
  EXPECT_THAT(imported->profile.content().buckets->sizes_bytes, ElementsAre(5'219'304, 10'409'344));
  EXPECT_THAT(imported->notes,
              Contains(HasSubstr("as DistributedDataParallel makes them by default")));
}

TEST(PyTorchTraceOfTheTreeTest, CutShortItIsRefused) {
  const std::string text =
      testing::UnpackedFile(STEPCAST_SOURCE_DIR "/tests/data/pytorch/alexnet_s-25.json.gz");
  for (const size_t left : {text.size() - 3, text.size() / 2, size_t{1000}}) {
    const absl::StatusOr<ImportedProfile> imported = Import(text.substr(0, left));
    EXPECT_THAT(Told(imported.status()), HasSubstr("no JSON, or one that is cut short"));
  }
}

class RecordedPyTorchTracesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(testing::RecordedDataFolder() / "kineto")) {
      GTEST_SKIP() << "no traces in " << testing::RecordedDataFolder()
                   << "; set STEPCAST_SHARED_DATA to the folder that has kineto and ddp";
    }
  }

  static std::string Text(const std::string& name) {
    return testing::UnpackedFile(testing::RecordedDataFolder() / (name + ".json.gz"));
  }
};

// The instants at which the last gradient of each bucket by DDP's rule is ready, in
// milliseconds from the first kernel of a step.
std::vector<double> ReadyMs(const Profile& profile, size_t step) {
  const std::vector<size_t> counts = AssignBuckets(GradientsOf(profile), {});
  const RecordedStep& recorded = profile.steps()[step];
  // The host's work on the step begins with the first computation behind data loading.
  size_t first = 0;
  while (profile.operations()[first].pass == Pass::kDataLoading) ++first;
  std::vector<double> ready;
  size_t gradient = 0;
  size_t bucket = 0;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    if (profile.operations()[i].collective != Collective::kAllReduce) continue;
    if (++gradient < counts[bucket]) continue;
    ready.push_back(static_cast<double>(recorded.end_ns[i] - recorded.end_ns[first]) / 1e6);
    gradient = 0;
    ++bucket;
  }
  return ready;
}

// Of ResNet-50 and 32 images in float32, layer by layer: the image, each convolution's output, what
// it is normalized and rectified to, the pool and its places, means and deviations, the loss.
TEST_F(RecordedPyTorchTracesTest, AForwardPassKeepsWhatItsLayersAddUpTo) {
  int64_t elements = 3 * 224 * 224;
  int64_t channels = 0;
  const auto convolution = [&](int64_t width, int64_t size, bool is_shortcut = false) {
    elements += (is_shortcut ? 1 : 2) * width * size * size;
    channels += width;
  };
  convolution(64, 112);
  elements += 64 * 56 * 56;
  for (const auto& [width, size, blocks] : {std::tuple(64, 56, 3), std::tuple(128, 28, 4),
                                            std::tuple(256, 14, 6), std::tuple(512, 7, 3)}) {
    for (int block = 0; block < blocks; ++block) {
      convolution(width, block == 0 && width > 64 ? 2 * size : size);
      convolution(width, size);
      convolution(4 * width, size);
      if (block == 0) convolution(4 * width, size, /*is_shortcut=*/true);
    }
  }
  elements += 2048 + 1000;
  const int64_t by_hand = 32 * (4 * elements + 8 * 64 * 56 * 56 + 8) + 8 * channels;
  const absl::StatusOr<ImportedProfile> imported = Import(Text("kineto/resnet50_1gpu_v100"));
  ASSERT_TRUE(imported.ok()) << imported.status();
  int64_t kept = 0;
  for (const Operation& operation : imported->profile.operations()) kept += operation.kept_bytes;
  EXPECT_EQ(kept, by_hand);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("the forward pass keeps 2749 MB")));
  // Recorded without shapes, it is not known.
  const absl::StatusOr<ImportedProfile> without = Import(Text("kineto/resnet50_ddp_1worker_v100"));
  ASSERT_TRUE(without.ok()) << without.status();
  for (const Operation& operation : without->profile.operations())
    EXPECT_EQ(operation.kept_bytes, 0) << operation.name;
}

TEST_F(RecordedPyTorchTracesTest, ResNet50OnAGpuHasItsGradientsAndTheirReadyTimes) {
  const absl::StatusOr<ImportedProfile> imported = Import(Text("kineto/resnet50_1gpu_v100"));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Profile& profile = imported->profile;
  const std::vector<int64_t> gradients = GradientsOf(profile);
  EXPECT_EQ(gradients.size(), 161U);
  EXPECT_EQ(std::accumulate(gradients.begin(), gradients.end(), int64_t{0}), 102'228'128);
  EXPECT_FALSE(profile.content().buckets.has_value());
  ASSERT_EQ(profile.operations()[0].name, "data_loading");
  const std::vector<double> ready = ReadyMs(profile, 1);
  const double expected[] = {50.9, 55.4, 60.6, 77.4, 116.6};
  ASSERT_EQ(ready.size(), 5U);
  for (size_t i = 0; i < ready.size(); ++i) EXPECT_NEAR(ready[i], expected[i], 0.06);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("The recording is bound by the host")));
  EXPECT_NEAR(profile.content().device_idle_fraction.value(), 0.427, 0.001);
  EXPECT_THAT(imported->notes,
              Contains(HasSubstr("they would be 5 of 8196000 (51.1 ms), 31502336 (55.6 ms), "
                                 "26255360 (60.8 ms), 26550272 (77.6 ms), 9724160 (116.8 ms)")));
}

TEST_F(RecordedPyTorchTracesTest, DistributedRecordingsHaveTheBucketsThatWereMade) {
  const std::map<std::string, std::vector<int64_t>> buckets = {
      {"kineto/resnet50_ddp_1worker_v100", {8196000, 31502336, 26255360, 26550272, 9724160}},
      {"kineto/mi300x_resnet18_ddp_rank0_of8", {5746640, 17632384}},
      {"ddp/alexnet_s/alexnet_s-25", {5219304, 10409344}},
      {"ddp/resnet50_s/resnet50_s-25", {4096000, 23574560}},
      {"ddp/resnet50_s/resnet50_s-5-w2-rank0",
       {4096000, 5529504, 5517312, 5330944, 5600256, 1596544}},
      {"ddp/resnet50_s/resnet50_s-5", {4096000, 5529504, 5517312, 5330944, 5600256, 1596544}}};
  for (const auto& [name, sizes] : buckets) {
    const absl::StatusOr<ImportedProfile> imported = Import(Text(name));
    ASSERT_TRUE(imported.ok()) << name << imported.status();
    EXPECT_EQ(imported->profile.content().buckets->sizes_bytes, sizes) << name;
  }
}

// Its GPU is idle for 1.5 % of a step among eight, and would be for half of one alone.
TEST_F(RecordedPyTorchTracesTest, ARankThatHidesItsHostIsBoundByItAlone) {
  const absl::StatusOr<ImportedProfile> imported =
      Import(Text("kineto/mi300x_resnet18_ddp_rank0_of8"));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->notes, Contains(HasSubstr("A worker alone is bound by the host")));
  EXPECT_NEAR(imported->profile.content().device_idle_fraction.value(), 0.554, 0.002);
}

TEST_F(RecordedPyTorchTracesTest, OneWorkerTakesAsLongAsEachRecordedStep) {
  for (const char* name :
       {"alexnet_s/alexnet_s-25", "alexnet_s/alexnet_s-5", "alexnet_s/alexnet_s-plain",
        "resnet50_s/resnet50_s-1", "resnet50_s/resnet50_s-5", "resnet50_s/resnet50_s-25",
        "resnet50_s/resnet50_s-plain"}) {
    const std::string text = Text(std::string("ddp/") + name);
    const absl::StatusOr<ImportedProfile> imported = Import(text);
    ASSERT_TRUE(imported.ok()) << name << imported.status();
    ExpectLoneStepsOf(text, imported->profile);
    // Among them up to 107 parts of the forward pass.
    EXPECT_LE(imported->profile.operations().size(), 600U) << name;
  }
}

// Of the GPU's recordings a step is from the end of one to the end of the next, so all together
// are what the GPU took from the second's end to the last's.
TEST_F(RecordedPyTorchTracesTest, AGpusStepsAddUpToWhatItTook) {
  const std::pair<const char*, double> spans[] = {{"kineto/resnet50_1gpu_v100", 702.454},
                                                  {"kineto/resnet50_ddp_1worker_v100", 286.629}};
  for (const auto& [name, span_ms] : spans) {
    const absl::StatusOr<ImportedProfile> imported = Import(Text(name));
    ASSERT_TRUE(imported.ok()) << name << imported.status();
    int64_t sum = 0;
    for (const RecordedStep& step : imported->profile.steps())
      sum += LoneStepNs(imported->profile, step);
    EXPECT_NEAR(static_cast<double>(sum) / 1e6, span_ms, 0.002) << name;
  }
}

TEST_F(RecordedPyTorchTracesTest, ARankOfTwoIsTheWorkerThatItIsWithoutTheOther) {
  const absl::StatusOr<ImportedProfile> alone = Import(Text("ddp/resnet50_s/resnet50_s-5"));
  const absl::StatusOr<ImportedProfile> rank = Import(Text("ddp/resnet50_s/resnet50_s-5-w2-rank0"));
  ASSERT_TRUE(alone.ok() && rank.ok()) << alone.status() << rank.status();
  const auto mean = [](const Profile& profile) {
    int64_t sum = 0;
    for (const RecordedStep& step : profile.steps()) sum += LoneStepNs(profile, step);
    return static_cast<double>(sum) / static_cast<double>(profile.steps().size());
  };
  // Steps vary by 5 %, and there are six of the one and ten of the other.
  EXPECT_NEAR(mean(rank->profile) / mean(alone->profile), 1, 0.02);
  EXPECT_THAT(rank->notes, Contains(HasSubstr("waited for collectives of 2 workers")));
}

TEST_F(RecordedPyTorchTracesTest, AllOthersAreRefusedWithWhatIsMissing) {
  const std::pair<const char*, const char*> refused[] = {
      {"kineto/alexnet_1gpu_a100",
       "it has no ProfilerStep, and no torch::autograd::AccumulateGrad"},
      {"kineto/simple_add_kineto",
       "it has no ProfilerStep, and no torch::autograd::AccumulateGrad"},
      {"kineto/simple_add_et", "it is an execution trace"},
      {"chakra/resnet_2gpu_pytorch_et", "it is an execution trace"},
      {"ddp/alexnet_s-25.legacy", "PyTorch is built without Kineto"}};
  for (const auto& [name, why] : refused)
    EXPECT_THAT(Told(Import(Text(name)).status()), HasSubstr(why)) << name;
}

}  // namespace
}  // namespace stepcast::recorded_pytorch_traces_test
