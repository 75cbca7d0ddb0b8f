// The parts of a forward pass between which a pipeline is cut, in traces of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
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
      const bool is_undone = operation.pass == Pass::kBackward &&
                             operations[Index(before)].pass == Pass::kForward;
      const bool is_gradient = operation.resource == Resource::kCollective;
      if (is_undone) {
        part_of[i] = part_of[Index(before)];
        parts[Index(part_of[i])].backward_ns += length;
      }
      if (is_gradient) parts[Index(part_of[Index(before)])].gradients.push_back(operation.size_bytes);
    }
  }
  return parts;
}

// Against what the file of measurements says of the same recordings, made by another reader.
TEST(ForwardLinksTest, PlainTracesAreTheirLayers) {
  for (const std::string model : {"alexnet_p", "transformer_p"}) {
    const auto imported = Import(testing::UnpackedFile(absl::StrCat(kData, "pp/", model, "-plain.json.gz")));
    ASSERT_TRUE(imported.ok()) << imported.status();
    const Profile& profile = imported->profile;
    ASSERT_EQ(profile.steps().size(), 46U);
    const std::vector<Part> parts = PartsOf(profile, 3);
    for (const Part& part : parts) {
      std::cout << part.name << " " << part.output_bytes << " " << part.forward_ns << " " << part.backward_ns << " " << absl::StrJoin(part.gradients, ",") << "\n";
    }
    for (const auto& note : imported->notes) std::cout << note << "\n";
  }
}

}  // namespace
}  // namespace stepcast::forward_links_test
