#include "core/importing/layer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "core/importing/layer_profile.h"
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
    ASSERT_EQ(operations.size(), 7U);
    const std::vector<std::tuple<std::string, Pass, int64_t, int64_t>> expected = {
        {"forward/embedding", Pass::kForward, 4096, 500'000},
        {"forward/block, the first", Pass::kForward, 4096, 2'000'000},
        {"backward/block, the first", Pass::kBackward, 0, 4'500'000},
        {"all_reduce/block, the first", Pass::kUnspecified, 0, 0},
        {"backward/embedding", Pass::kBackward, 0, 250'000},
        {"all_reduce/embedding", Pass::kUnspecified, 0, 0},
        {"optimizer", Pass::kOptimizer, 0, 125'000}};
    const RecordedStep& step = imported->profile.steps().front();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(std::tuple(operations[i].name, operations[i].pass, operations[i].output_bytes,
                           step.end_ns[i] - step.start_ns[i]),
                expected[i]);
    }
    EXPECT_EQ(operations[0].kept_bytes, 16);
    EXPECT_EQ(operations[5].size_bytes, 8000);
    EXPECT_TRUE(imported->profile.has_collectives());
  }
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

TEST(LayerTableTest, OtherTextIsNoTable) {
  for (const char* const text :
       {"", "\n\n", "node1 -- Linear -- forward_compute_time=1, backward_compute_time=2\n",
        "kind,workers,size_bytes,seconds\n", "forward_ms\n", "{\"forward_ms\": 1, \"b\": 2}"})
    EXPECT_FALSE(IsLayerTable(text)) << text;
  EXPECT_TRUE(IsLayerTable("\n# times\n BACKWARD_MS ;Forward_ms\n"));
}

}  // namespace
}  // namespace stepcast::layer_table_test
