#include "core/importing/layers/layer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "core/base/error.h"
#include "core/importing/layers/layer_profile.h"
#include "core/model/stage_map.h"
#include "tests/core/importing/random_training.h"

namespace stepcast::layer_table_test {
namespace {

using ::stepcast::testing::Told;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<ImportedProfile> Import(std::string_view text) {
  return ImportLayerProfile(
      text, {.model = "m", .batch_size = 4, .platform = {.bandwidth_bytes_per_second = 1e9}});
}

constexpr char kTable[] =
    "# of one micro-batch\r\n\n"
    "name,forward_ms,backward_ms,activation_bytes,parameter_bytes,kept_bytes,optimizer_ms\r\n"
    "embedding,0.5,0.25,4096,8000,16,0.125\n"
    "\"block, the first\",2,4.5,4096,1200,,\n";

TEST(LayerTableTest, ATableIsAStepThatAPipelineCanBeCutFrom) {
  std::string filled = kTable;
  filled.replace(filled.rfind(",,"), 2, ",0,0");
  for (const char separator : {',', ';', '\t'}) {
    std::string text = filled;
    // But for the one in quotes.
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == ',' && text.compare(i, 5, ", the") != 0) text[i] = separator;
    const absl::StatusOr<ImportedProfile> imported = Import(text);
    ASSERT_TRUE(imported.ok()) << imported.status();
    const std::vector<Operation>& operations = imported->profile.operations();
    ASSERT_EQ(operations.size(), 8U);
    const std::vector<std::tuple<std::string, Pass, int64_t, int64_t>> expected = {
        {"forward/embedding", Pass::kForward, 4096, 500'000},
        {"forward/block, the first", Pass::kForward, 4096, 2'000'000},
        {"backward/block, the first", Pass::kBackward, 0, 4'500'000},
        {"all_reduce/block, the first", Pass::kUnspecified, 0, 0},
        {"backward/embedding", Pass::kBackward, 0, 250'000},
        {"all_reduce/embedding", Pass::kUnspecified, 0, 0},
        {"optimizer/embedding", Pass::kOptimizer, 0, 125'000},
        {"optimizer/block, the first", Pass::kOptimizer, 0, 0}};
    const RecordedStep& step = imported->profile.steps().front();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(std::tuple(operations[i].name, operations[i].pass, operations[i].output_bytes,
                           step.end_ns[i] - step.start_ns[i]),
                expected[i]);
    }
    EXPECT_EQ(operations[0].kept_bytes, 16);
    EXPECT_EQ(operations[5].size_bytes, 8000);
    EXPECT_TRUE(imported->profile.has_collectives());
    FaultList faults;
    EXPECT_EQ(MapStages(imported->profile, "pipeline", faults).recorded_ranks, 0);
  }
}

TEST(LayerTableTest, AQuoteThatIsWrittenTwiceIsOne) {
  const auto names = [](const std::string& cell) {
    const auto imported = Import("name,forward_ms,backward_ms\n" + cell + ",1,2\n");
    return imported.ok() ? imported->profile.operations()[0].name
                         : std::string(DetailsOf(imported.status()).faults.at(0).description);
  };
  EXPECT_EQ(names("\"the \"\"large\"\", one\""), "forward/the \"large\", one");
  EXPECT_EQ(names(" \"\"\"a\"\"\" "), "forward/\"a\"");
  EXPECT_EQ(names("\"\""), "forward/0");
  EXPECT_EQ(names("5\" wide"), "forward/5\" wide");
  EXPECT_EQ(names("\"a"), "a quote is not closed: a cell ends on its line");
}

TEST(LayerTableTest, BackwardTimesMayStandApart) {
  const auto imported = Import(
      "forward_ms,backward_input_ms,backward_weight_ms,parameter_bytes\n"
      "1,2,3,8\n1,2,4,0\n");
  ASSERT_TRUE(imported.ok()) << imported.status();
  std::vector<std::tuple<std::string, Pass>> backward;
  for (const Operation& operation : imported->profile.operations())
    if (operation.name.starts_with("backward"))
      backward.emplace_back(operation.name, operation.pass);
  EXPECT_THAT(backward, ElementsAre(std::tuple("backward_input/1", Pass::kBackwardInput),
                                    std::tuple("backward_weight/1", Pass::kBackwardWeight),
                                    std::tuple("backward_input/0", Pass::kBackwardInput),
                                    std::tuple("backward_weight/0", Pass::kBackwardWeight)));
}

TEST(LayerTableTest, EachFaultNamesItsLine) {
  const std::string header = "name,forward_ms,backward_ms,parameter_bytes\n";
  for (const auto& [text, line, why] :
       {std::tuple<std::string, std::string, std::string>{
            "name,forward_ms,backwards_ms\n", "line 1", "\"backwards_ms\" is none of name"},
        {"name,forward_ms,backwards_ms\n", "line 1", "no column backward_ms"},
        {"forward_ms,forward_ms,backward_ms\n", "line 1", "is there twice"},
        {header, "line 2", "has no layer"},
        {header + "a,1,2\n", "line 2", "3 cells, where the first line has 4"},
        {header + "a,1,2,3\n\na,1,2,3\n", "line 4", "\"a\" is already on line 2"},
        {header + "a,x,2,3\n", "line 2", "forward_ms is \"x\""},
        {header + "a,1,-2,3\n", "line 2", "backward_ms is \"-2\""},
        {header + "a,1,nan,3\n", "line 2", "backward_ms is \"nan\""},
        {header + "a,1,2,1e30\n", "line 2", "parameter_bytes is \"1e30\""},
        {header + "a,1,2,\n", "line 2", "parameter_bytes is \"\""},
        {header + "a,1e12,2,3\n", "line 2", "forward_ms is \"1e12\""},
        {header + std::string(600, 'n') + ",1,2,3\n", "line 2", "max_name_bytes"}}) {
    EXPECT_THAT(Told(Import(text).status()), AllOf(HasSubstr(line), HasSubstr(why))) << text;
  }
}

// Of two blocks between an embedding and a head.
constexpr char kSailor[] =
    R"({"4": {"2": {"0": [0.001, 0, 0.01], "1": [0.002, 0.004, 0.01], "2": [0.002, 0.005, 0.01],
                    "3": [0.003, 0.006, 0.02]},
              "1": {"0": [1, 1, 1]}},
        "8": {"2": {"0": [1, 1, 1], "2": [0.001, 0.003, 7]}}})";
constexpr char kSizes[] = R"({"hidden_size": 16, "sequence_length": 8, "num_layers": 2,
                              "vocab_size": 100, "max_position_embeddings": 8, "model": "m"})";

absl::StatusOr<ImportedProfile> ImportSailor(std::string_view text, int32_t batch_size,
                                             int32_t width, const std::string& sizes = kSizes) {
  return ImportLayerProfile(text, {.model = "m",
                                   .batch_size = batch_size,
                                   .platform = {.bandwidth_bytes_per_second = 1e9},
                                   .tensor_parallel = width,
                                   .sizes = sizes});
}

TEST(LayerTableTest, AProfileOfSailorsHasTheSizesOfItsConfiguration) {
  const auto imported = ImportSailor(kSailor, 4, 2);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Profile& profile = imported->profile;
  EXPECT_EQ(profile.devices_per_worker(), 2);
  std::vector<int64_t> outputs;
  std::vector<int64_t> gradients;
  for (const Operation& operation : profile.operations()) {
    if (operation.pass == Pass::kForward) outputs.push_back(operation.output_bytes);
    if (operation.resource == Resource::kCollective) gradients.push_back(operation.size_bytes);
  }
  // 4 examples of 8 positions of 16 floats; halves of 102, and of 108, x 16 floats, and of blocks
  // of 12 x 16^2 + 13 x 16.
  EXPECT_THAT(outputs, ElementsAre(2048, 2048, 2048, 0));
  EXPECT_THAT(gradients, ElementsAre(3264, 6560, 6560, 3456));
  // Layers of 1, 6, 7 and 9 ms, the third 4 with 8 examples; of optimizers the longest.
  EXPECT_EQ(profile.steps().front().end_ns.back(), 40'000'000);
  EXPECT_THAT(imported->notes,
              ::testing::Contains(HasSubstr("Found 1 of 4 layers that took longer")));
}

TEST(LayerTableTest, FaultsOfAProfileOfSailorsNameWhatThereIs) {
  for (const auto& [status, field, why] :
       {std::tuple<absl::Status, std::string, std::string>{ImportSailor(kSailor, 2, 2).status(),
                                                           "batch_size", "micro-batches of 4, 8"},
        {ImportSailor(kSailor, 4, 0).status(), "tensor_parallel",
         "not given, and of that micro-batch the profile has tensor widths of 1, 2"},
        {ImportSailor(kSailor, 4, 3).status(), "tensor_parallel", "tensor widths of 1, 2"},
        {ImportSailor(kSailor, 8, 0).status(), "recording", "2 layers"},
        {ImportSailor(kSailor, 4, 2, "").status(), "graph", "not given"},
        {ImportSailor(kSailor, 4, 2, "{}").status(), "graph", "hidden_size"},
        {ImportSailor(kSailor, 4, 2, "no").status(), "graph", "vocab_size"},
        {ImportSailor("{\"4\": 7}", 4, 2).status(), "tensor_parallel", "tensor widths of "},
        {ImportSailor("{", 4, 2).status(), "recording", "no JSON"},
        {ImportSailor("forward_ms,backward_ms\n1,2\n", 4, 2, "").status(), "tensor_parallel",
         "only a profile of Sailor's"},
        {ImportSailor("forward_ms,backward_ms\n1,2\n", 4, 0).status(), "graph",
         "only a profile of Sailor's"}}) {
    EXPECT_THAT(Told(status), AllOf(HasSubstr(field), HasSubstr(why)));
  }
  std::string broken = kSailor;
  broken.replace(broken.find("0.005"), 5, "-0.05");
  EXPECT_THAT(Told(ImportSailor(broken, 4, 2).status()), HasSubstr("layer 2 is not a list"));
}

TEST(LayerTableTest, OtherTextIsNoTable) {
  for (const char* const text :
       {"", "\n\n", "node1 -- Linear -- forward_compute_time=1, backward_compute_time=2\n",
        "kind,workers,size_bytes,seconds\n", "forward_ms\n", "{\"forward_ms\": 1, \"b\": 2}"})
    EXPECT_FALSE(IsLayerTable(text)) << text;
  EXPECT_TRUE(IsLayerTable("\n# times\n BACKWARD_MS ;Forward_ms\n"));
}

}  // namespace
}  // namespace stepcast::layer_table_test
