// The parts of a forward pass between which a pipeline is cut, in traces of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

#include "core/base/index.h"
#include "core/importing/pytorch_trace.h"
#include "tests/core/importing/lone_worker.h"
#include "tests/core/importing/unpacked_file.h"

namespace stepcast::forward_links_test {
namespace {

using ::nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kData[] = STEPCAST_SOURCE_DIR "/tests/data/";

absl::StatusOr<ImportedProfile> Import(const std::string& text) {
  TextSource source(text);
  return ImportPyTorchTrace(source,
                            {.recording = {.model = "m",
                                           .batch_size = 32,
                                           .platform = {.bandwidth_bytes_per_second = 1.25e8}}},
                            {}, NeverStop);
}

// A part of the forward pass, and what of the rest of the step waits for it.
struct Part {
  std::string name;
  int64_t output_bytes = 0;
  int64_t kept_bytes = 0;
  int64_t forward_ns = 0;
  int64_t backward_ns = 0;
  std::vector<int64_t> gradients;  // bytes, in the order of readiness
};

std::vector<Part> PartsOf(const Profile& profile, size_t step) {
  const std::vector<Operation>& operations = profile.operations();
  const RecordedStep& recorded = profile.steps()[step];
  std::vector<Part> parts;
  std::vector<int> part_of(operations.size(), -1);
  for (size_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    const int64_t length = recorded.end_ns[i] - recorded.start_ns[i];
    if (operation.pass == Pass::kForward) {
      part_of[i] = static_cast<int>(parts.size());
      parts.push_back({.name = operation.name,
                       .output_bytes = operation.output_bytes,
                       .kept_bytes = operation.kept_bytes,
                       .forward_ns = length});
    }
    for (const int32_t before : operation.waiting_for) {
      const bool is_undone =
          operation.pass == Pass::kBackward && operations[Index(before)].pass == Pass::kForward;
      const bool is_gradient = operation.resource == Resource::kCollective;
      if (is_undone) {
        part_of[i] = part_of[Index(before)];
        parts[Index(part_of[i])].backward_ns += length;
      }
      if (is_gradient)
        parts[Index(part_of[Index(before)])].gradients.push_back(operation.size_bytes);
    }
  }
  return parts;
}

// Against what the recorder of the measured pipelines said of the same layers.
TEST(ForwardLinksTest, PlainTracesAreTheirLayers) {
  std::ifstream file(std::string(kData) + "pp/plain_and_measured.json");
  const json told = json::parse(file).at("recordings");
  for (const std::string model : {"alexnet_p", "transformer_p"}) {
    const auto imported =
        Import(testing::UnpackedFile(absl::StrCat(kData, "pp/", model, "-plain.json.gz")));
    ASSERT_TRUE(imported.ok()) << imported.status();
    const Profile& profile = imported->profile;
    const json& layers = told.at(model).at("layers");
    ASSERT_EQ(profile.steps().size(), 46U);
    for (size_t s = 0; s < profile.steps().size(); ++s) {
      const std::vector<Part> parts = PartsOf(profile, s);
      // The last one is the loss.
      ASSERT_EQ(parts.size(), layers.size() + 1);
      for (size_t i = 0; i < layers.size(); ++i) {
        const json& layer = layers[i];
        EXPECT_EQ(parts[i].name,
                  absl::StrCat("forward/", i, "/", layer.at("name").get<std::string>()));
        if (i > 0) EXPECT_EQ(parts[i - 1].output_bytes, layer.at("input_bytes").get<int64_t>());
        EXPECT_EQ(parts[i].gradients, layer.at("parameters").get<std::vector<int64_t>>());
        const json& step = told.at(model).at("steps")[s];
        EXPECT_NEAR(parts[i].forward_ns, 1000 * step.at("forward_us")[i].get<int64_t>(), 60'000);
        EXPECT_NEAR(parts[i].backward_ns, 1000 * step.at("backward_us")[i].get<int64_t>(), 60'000);
      }
    }
    EXPECT_THAT(imported->notes, Contains(HasSubstr("a pipeline is cut between them")));
  }
}

}  // namespace
}  // namespace stepcast::forward_links_test
