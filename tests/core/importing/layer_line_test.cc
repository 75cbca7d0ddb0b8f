#include "core/importing/layer_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace stepcast::layer_line_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LayerLineTest, ALayerHasItsNumberTypeTimesAndSize) {
  std::vector<std::string> wrong;
  const MeasuredLayer layer = ParseLayerLine(
      "node10 -- Conv2d(3, 64, kernel_size=(3, 3)) -- forward_compute_time=4.423, "
      "backward_compute_time=7.197, activation_size=9.0, "
      "parameter_size=6912.000",
      {}, wrong);
  EXPECT_THAT(wrong, IsEmpty());
  EXPECT_EQ(layer.number, 10);
  EXPECT_EQ(layer.type, "Conv2d");
  EXPECT_EQ(layer.name(), "node10/Conv2d");
  EXPECT_EQ(layer.forward_ms, 4.423);
  EXPECT_EQ(layer.backward_ms, 7.197);
  EXPECT_EQ(layer.parameter_bytes, 6912);
  EXPECT_FALSE(layer.is_input());
}

TEST(LayerLineTest, NodesAreNumbered) {
  EXPECT_EQ(ParseNode("node0"), 0);
  EXPECT_EQ(ParseNode("node9223372036854775807"), 9223372036854775807);
  for (const char* bad : {"", "node", "node-1", "node+1", "node 1", "node1 ", "Node1", "nod",
                          "node9223372036854775808", "node1.5", "1"}) {
    EXPECT_EQ(ParseNode(bad), std::nullopt) << bad;
  }
}

struct BadLine {
  std::string title;
  std::string line;
  std::string says;
};

class BadLineTest : public ::testing::TestWithParam<BadLine> {};

TEST_P(BadLineTest, SaysWhatIsWrong) {
  std::vector<std::string> wrong;
  ParseLayerLine(GetParam().line, {}, wrong);
  EXPECT_THAT(wrong, ElementsAre(HasSubstr(GetParam().says)));
}

const std::string& Good() {
  static const std::string good =
      "forward_compute_time=1, backward_compute_time=2, parameter_size=4";
  return good;
}

INSTANTIATE_TEST_SUITE_P(
    Lines, BadLineTest,
    ::testing::ValuesIn(std::vector<BadLine>{
        {"Words", "hello", "\"hello\" is neither"},
        {"TooFewFields", "node1 -- ReLU", "is neither"},
        {"TooManyFields", "node1 -- ReLU -- " + Good() + " -- stage_id=0", "is neither"},
        {"NoNode", "layer1 -- ReLU -- " + Good(), "\"layer1\" is not of the form nodeK"},
        {"NoType", "node1 -- (3) -- " + Good(), "\"(3)\" does not begin with a word"},
        {"LongType", "node1 -- " + std::string(129, 'a') + " -- " + Good(),
         "does not begin with a word"},
        {"NoPairs", "node1 -- ReLU -- fast", "\"fast\" is not of the form key=value"},
        {"NoKey", "node1 -- ReLU -- =3", "is not of the form key=value"},
        {"MissingForward", "node1 -- ReLU -- backward_compute_time=2, parameter_size=4",
         "forward_compute_time is missing"},
        {"MissingBackward", "node1 -- ReLU -- forward_compute_time=2, parameter_size=4",
         "backward_compute_time is missing"},
        {"MissingSize", "node1 -- ReLU -- forward_compute_time=1, backward_compute_time=2",
         "parameter_size is missing"},
        {"Twice", "node1 -- ReLU -- " + Good() + ", parameter_size=4",
         "parameter_size is there twice"},
        {"Negative",
         "node1 -- ReLU -- forward_compute_time=-1, backward_compute_time=2, parameter_size=4",
         "forward_compute_time = \"-1\" is negative"},
        {"Nan",
         "node1 -- ReLU -- forward_compute_time=nan, backward_compute_time=2, parameter_size=4",
         "\"nan\" is not a finite number"},
        {"Infinite",
         "node1 -- ReLU -- forward_compute_time=1, backward_compute_time=1e999, parameter_size=4",
         "\"1e999\" is not a finite number"},
        {"NoNumber",
         "node1 -- ReLU -- forward_compute_time=1ms, backward_compute_time=2, parameter_size=4",
         "\"1ms\" is not a finite number"},
        {"OverADay",
         "node1 -- ReLU -- forward_compute_time=86400001, backward_compute_time=2, "
         "parameter_size=4",
         "\"86400001\" is above the limit of 8.64e+07"},
        {"Fraction",
         "node1 -- ReLU -- forward_compute_time=1, backward_compute_time=2, parameter_size=4.5",
         "parameter_size = 4.5 is not a whole number"},
        {"HugeSize",
         "node1 -- ReLU -- forward_compute_time=1, backward_compute_time=2, parameter_size=1e300",
         "is above the limit"},
    }),
    [](const auto& bad) { return bad.param.title; });

}  // namespace
}  // namespace stepcast::layer_line_test
