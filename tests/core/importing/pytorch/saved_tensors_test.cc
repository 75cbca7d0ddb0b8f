#include "core/importing/pytorch/saved_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <string>

#include "nlohmann/json.hpp"

#include "core/importing/common/byte_source.h"
#include "core/importing/pytorch/pytorch_trace.h"

namespace stepcast::saved_tensors_test {
namespace {

using Shape = std::vector<int64_t>;

// A forward pass, operation by operation, each of a microsecond and with a node of its own.
class Pass {
 public:
  Pass& Add(const std::string& name, std::initializer_list<Shape> inputs, int16_t bytes = 4) {
    return AddWithin(name, inputs, now_ns_, now_ns_ + 1000, ++sequence_, bytes);
  }
  // Within the operation before, of the same node.
  Pass& AddInside(const std::string& name, std::initializer_list<Shape> inputs) {
    const TensorOperation outer = tensors_.operations.back();
    return AddWithin(name, inputs, outer.start_ns + 10, outer.end_ns - 10, outer.sequence, 4);
  }
  // That autograd has no node of, before the next one.
  Pass& AddWithoutNode(const std::string& name, std::initializer_list<Shape> inputs) {
    return AddWithin(name, inputs, now_ns_, now_ns_ + 1000, sequence_ + 1, 4);
  }

  int64_t Saved(const absl::flat_hash_set<int64_t>& parameters = {},
                const absl::flat_hash_set<int64_t>& without = {}) const {
    std::vector<BackwardNode> nodes;
    int64_t at_ns = now_ns_;
    for (int64_t node = sequence_; node >= 1; --node, at_ns += 1000) {
      if (without.contains(node)) continue;
      nodes.push_back({.start_ns = at_ns, .end_ns = at_ns + 1000, .sequence = node});
    }
    return FindSavedTensors(tensors_, 0, now_ns_, nodes, parameters).bytes;
  }

 private:
  Pass& AddWithin(const std::string& name, std::initializer_list<Shape> inputs, int64_t start_ns,
                  int64_t end_ns, int64_t sequence, int16_t bytes) {
    const std::optional<uint8_t> rule = RuleOfTensorOperation("aten::" + name);
    EXPECT_TRUE(rule.has_value()) << name;
    TensorOperation operation{
        .start_ns = start_ns, .end_ns = end_ns, .sequence = sequence, .rule = rule.value_or(0)};
    operation.shapes.fill(-1);
    size_t at = 0;
    for (const Shape& shape : inputs) {
      auto place = std::find(tensors_.shapes.begin(), tensors_.shapes.end(), shape);
      operation.shapes[at] = static_cast<int32_t>(place - tensors_.shapes.begin());
      operation.element_bytes[at++] = bytes;
      if (place == tensors_.shapes.end()) tensors_.shapes.push_back(shape);
    }
    tensors_.operations.push_back(operation);
    now_ns_ = std::max(now_ns_, end_ns);
    return *this;
  }

  TensorOperations tensors_;
  int64_t now_ns_ = 0;
  int64_t sequence_ = 0;
};

const Shape kImage = {2, 3, 8, 8};
const Shape kMap = {2, 16, 8, 8};
const Shape kWeights = {16, 3, 3, 3};
constexpr int64_t kImageBytes = 2 * 3 * 64 * 4;
constexpr int64_t kMapBytes = 2 * 16 * 64 * 4;

TEST(SavedTensorsTest, ATensorThatTwoOperationsKeepCountsOnce) {
  // The image, the convolution's output, and that of the ReLU, which the next convolution reads.
  Pass out_of_place;
  out_of_place.Add("convolution", {kImage, kWeights})
      .Add("native_batch_norm", {kMap})
      .Add("relu", {kMap})
      .Add("convolution", {kMap, {16, 16, 3, 3}});
  EXPECT_EQ(out_of_place.Saved(), kImageBytes + 2 * kMapBytes);
  // In place the batch norm's output is the ReLU's.
  Pass in_place;
  in_place.Add("cudnn_convolution", {kImage, kWeights})
      .Add("cudnn_batch_norm", {kMap})
      .Add("relu_", {kMap})
      .Add("cudnn_convolution", {kMap, {16, 16, 3, 3}});
  EXPECT_EQ(in_place.Saved(), kImageBytes + 2 * kMapBytes);
  // In half precision, half of it.
  Pass half;
  half.Add("convolution", {kImage, kWeights}, 2).Add("relu", {kMap}, 2);
  EXPECT_EQ(half.Saved(), (kImageBytes + kMapBytes) / 2);
}

TEST(SavedTensorsTest, OfABatchNormItsStatisticsAreKeptToo) {
  Pass pass;
  pass.Add("native_batch_norm", {kMap, {16}, {16}, {16}});
  EXPECT_EQ(pass.Saved(), kMapBytes + 2 * 16 * 4);
  // A batch's without weights are of its channels, a layer's of its last dimension.
  Pass without;
  without.Add("native_batch_norm", {kMap, {}, {}}).Add("native_layer_norm", {{5, 7}, {}, {}});
  EXPECT_EQ(without.Saved(), kMapBytes + 2 * 16 * 4 + 5 * 7 * 4 + 5 * 2 * 4);
}

TEST(SavedTensorsTest, AnOperationWithinAnotherIsPartOfIt) {
  Pass pass;
  pass.Add("convolution", {kImage, kWeights})
      .AddInside("_convolution", {kImage, kWeights})
      .AddInside("mkldnn_convolution", {kImage, kWeights});
  EXPECT_EQ(pass.Saved(), kImageBytes);
}

TEST(SavedTensorsTest, OnlyWhatTheBackwardPassUndoesKeepsAnything) {
  Pass pass;
  // The loader's division has the number of the convolution's node, which is made later.
  pass.AddWithoutNode("div_", {{3, 8, 8}, {3, 1, 1}})
      .Add("convolution", {kImage, kWeights})
      .Add("native_batch_norm", {kMap});
  EXPECT_EQ(pass.Saved(), kImageBytes + kMapBytes);
  EXPECT_EQ(pass.Saved({}, /*without=*/{1}), kMapBytes);
  EXPECT_EQ(pass.Saved({}, /*without=*/{1, 2}), 0);
}

TEST(SavedTensorsTest, AShortcutIsReadAgainAndKeptOnce) {
  Pass pass;
  pass.Add("convolution", {kMap, {16, 16, 1, 1}})
      .Add("native_batch_norm", {kMap})
      .Add("relu_", {kMap})
      .Add("convolution", {kMap, {32, 16, 1, 1}})
      .Add("native_batch_norm", {{2, 32, 8, 8}})
      // The shortcut's convolution reads the first one's input.
      .Add("convolution", {kMap, {32, 16, 1, 1}})
      .Add("native_batch_norm", {{2, 32, 8, 8}})
      .Add("add_", {{2, 32, 8, 8}, {2, 32, 8, 8}})
      .Add("relu_", {{2, 32, 8, 8}});
  // Its input, two outputs of convolutions of each width, the ReLUs' outputs.
  EXPECT_EQ(pass.Saved(), 3 * kMapBytes + 3 * 2 * kMapBytes);
}

TEST(SavedTensorsTest, APoolKeepsItsInputAndThePlacesOfTheMaxima) {
  Pass pass;
  pass.Add("convolution", {kImage, kWeights})
      .Add("relu_", {kMap})
      .Add("max_pool2d_with_indices", {kMap})
      .Add("convolution", {{2, 16, 4, 4}, {16, 16, 3, 3}});
  const int64_t pooled = 2 * 16 * 16;
  EXPECT_EQ(pass.Saved(), kImageBytes + kMapBytes + pooled * 8 + pooled * 4);
}

TEST(SavedTensorsTest, AMeanIsNotTakenForTheWeightsThatAreReadNext) {
  Pass pass;
  pass.Add("mean", {{4, 7, 32}}).Add("t", {{32, 32}}).Add("addmm", {{32}, {4, 32}, {32, 32}});
  EXPECT_EQ(pass.Saved({32 * 32}), 4 * 7 * 32 * 4 + 4 * 32 * 4);
}

TEST(SavedTensorsTest, AFactorThatIsChangedInPlaceIsKeptAsACopy) {
  Pass pass;
  pass.Add("sigmoid", {kMap}).Add("mul_", {kMap, kMap}).AddInside("clone", {kMap});
  EXPECT_EQ(pass.Saved(), 2 * kMapBytes);
}

TEST(SavedTensorsTest, WeightsAreParametersAndViewsAreWhatTheyAreOf) {
  Pass pass;
  pass.Add("native_layer_norm", {{2, 5, 8}, {}, {8}})
      .Add("t", {{24, 8}})
      .Add("view", {{2, 5, 8}})
      .Add("addmm", {{24}, {10, 8}, {8, 24}})
      .Add("view", {{10, 24}})
      .Add("split", {{2, 5, 24}})
      .Add("transpose", {{2, 5, 8}})
      .Add("transpose", {{2, 5, 8}})
      // Two parts of the product's output, which is kept as a whole.
      .Add("bmm", {{2, 5, 8}, {2, 8, 5}});
  // The norm's input, means and deviations, its output, and the product.
  EXPECT_EQ(pass.Saved({24 * 8}), 80 * 4 + 10 * 8 + 80 * 4 + 240 * 4);
}

TEST(SavedTensorsTest, ADropoutKeepsItsMask) {
  Pass of_bytes;
  of_bytes.Add("dropout", {kMap}).AddInside("native_dropout", {kMap});
  EXPECT_EQ(of_bytes.Saved(), kMapBytes / 4);
  Pass of_floats;
  of_floats.Add("dropout", {kMap}).AddInside("mul", {kMap, kMap});
  EXPECT_EQ(of_floats.Saved(), kMapBytes);
}

TEST(SavedTensorsTest, ScalarsAndShapesThatAreNoneKeepNothing) {
  Pass pass;
  pass.Add("mul", {kMap, {}}).Add("mul", {{}, {}}).Add("pow", {{1}}).Add("exp", {{}});
  EXPECT_EQ(pass.Saved(), 0);
  Pass hostile;
  hostile.Add("gelu", {{int64_t{1} << 62, 4}})
      .Add("gelu", {{-5, 4}})
      .Add("gelu", {{0, 4}})
      .Add("mm", {{}, {3, 4}})
      .Add("addmm", {})
      .Add("embedding", {{}, {}})
      .Add("cat", {})
      .Add("convolution", {{7}, {}})
      .Add("max_pool2d_with_indices", {{7}});
  EXPECT_EQ(hostile.Saved(), 2 * 7 * 4 + 3 * 4 * 4);
  EXPECT_FALSE(RuleOfTensorOperation("aten::conv2d").has_value());
  EXPECT_FALSE(RuleOfTensorOperation("relu").has_value());
}

// A million operations whose outputs nothing reads take no more than a scan of the latest each.
TEST(SavedTensorsTest, TensorsThatNothingReadsAreForgotten) {
  Pass pass;
  for (int i = 0; i < 200'000; ++i) pass.Add("relu", {kMap});
  EXPECT_EQ(pass.Saved(), int64_t{200'000} * kMapBytes);
}

// Held to real autograd, as its hooks saw it: tests/data/saved_tensors. Not inferred are the loss's
// weight, of 4 bytes, and a mask of an attention.
TEST(SavedTensorsTest, RecordedNetworksKeepWhatAutogradKept) {
  const std::string folder = STEPCAST_SOURCE_DIR "/tests/data/saved_tensors/";
  std::ifstream told(folder + "saved.json");
  const auto saved = nlohmann::json::parse(told).get<std::map<std::string, int64_t>>();
  ASSERT_EQ(saved.size(), 9U);
  for (const auto& [name, bytes] : saved) {
    std::ifstream file(folder + name + ".json.gz", std::ios::binary);
    const std::string packed{std::istreambuf_iterator<char>(file), {}};
    TextSource source(packed);
    GunzipSource unpacked(
        source,
        {.admit = [](int64_t) { return absl::OkStatus(); },
         .damaged = [](const std::string& why) { return absl::InvalidArgumentError(why); }});
    const absl::StatusOr<ImportedProfile> imported = ImportPyTorchTrace(
        unpacked, {.recording = {.batch_size = 2, .platform = {.bandwidth_bytes_per_second = 1e9}}},
        {}, NeverStop);
    ASSERT_TRUE(imported.ok()) << imported.status();
    int64_t kept = 0;
    for (const Operation& operation : imported->profile.operations()) {
      EXPECT_TRUE(operation.kept_bytes == 0 || operation.pass == ::stepcast::Pass::kForward)
          << operation.name;
      kept += operation.kept_bytes;
    }
    std::printf("%-9s autograd kept %7ld bytes, inferred %7ld (%+.2f %%)\n", name.c_str(),
                static_cast<long>(bytes), static_cast<long>(kept),
                100 * (static_cast<double>(kept) / static_cast<double>(bytes) - 1));
    EXPECT_NEAR(static_cast<double>(kept), static_cast<double>(bytes),
                0.003 * static_cast<double>(bytes) + 4)
        << name;
  }
}

}  // namespace
}  // namespace stepcast::saved_tensors_test
