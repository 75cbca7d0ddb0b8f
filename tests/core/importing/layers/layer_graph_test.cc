#include "core/importing/layers/layer_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"

namespace stepcast::layer_graph_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string LayerLine(int number, const std::string& type = "ReLU(inplace)", int bytes = 0) {
  return "node" + std::to_string(number) + " -- " + type +
         " -- forward_compute_time=1.5, backward_compute_time=2.5, parameter_size=" +
         std::to_string(bytes) + ".000\n";
}

std::string EdgeLine(int from, int to) {
  return "\tnode" + std::to_string(from) + " -- node" + std::to_string(to) + "\n";
}

struct Parsed {
  std::vector<MeasuredLayer> layers;
  std::vector<Fault> faults;

  std::vector<int64_t> numbers() const {
    std::vector<int64_t> numbers;
    for (const MeasuredLayer& layer : layers) numbers.push_back(layer.number);
    return numbers;
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> paths;
    for (const Fault& fault : faults) paths.push_back(fault.field);
    return paths;
  }
};

Parsed Parse(const std::string& text, const ProfileLimits& limits = {}) {
  FaultList faults;
  Parsed parsed{.layers = ParseLayerGraph(text, limits, faults)};
  parsed.faults = std::move(faults).Take();
  return parsed;
}

TEST(LayerGraphTest, LayersComeAfterTheirInputsWhateverTheOrderOfTheLines) {
  const Parsed parsed = Parse(EdgeLine(7, 3) + LayerLine(3) + EdgeLine(1, 7) + LayerLine(7) + "\n" +
                              LayerLine(1) + LayerLine(2) + EdgeLine(1, 3));
  EXPECT_THAT(parsed.faults, IsEmpty());
  EXPECT_THAT(parsed.numbers(), ElementsAre(1, 2, 7, 3));
  EXPECT_THAT(parsed.layers[0].inputs, IsEmpty());
  EXPECT_THAT(parsed.layers[2].inputs, ElementsAre(0));
  EXPECT_THAT(parsed.layers[3].inputs, ElementsAre(0, 2));
  EXPECT_EQ(parsed.layers[3].line, 2);
}

TEST(LayerGraphTest, LineEndsOfEitherKindAndAMissingLastOneAreTaken) {
  const std::string layer = LayerLine(1);
  EXPECT_THAT(
      Parse(layer.substr(0, layer.size() - 1) + "\r\n\r\n" + LayerLine(2) + "\tnode1 -- node2")
          .numbers(),
      ElementsAre(1, 2));
}

TEST(LayerGraphTest, EveryFaultIsReportedAtItsLine) {
  const Parsed parsed =
      Parse(LayerLine(1) + "nonsense\n" + LayerLine(1) + EdgeLine(1, 9) + EdgeLine(1, 1) +
            "\tnode1 to node2\n" + LayerLine(2) + EdgeLine(1, 2) + EdgeLine(1, 2) +
            LayerLine(3, "Input", 5) + EdgeLine(2, 3));
  EXPECT_THAT(parsed.layers, IsEmpty());
  ASSERT_THAT(parsed.paths(), ElementsAre("line 2", "line 3", "line 6", "line 10", "line 4",
                                          "line 5", "line 9", "line 11"));
  EXPECT_THAT(parsed.faults[1].description, HasSubstr("node1 is already on line 1"));
  EXPECT_THAT(parsed.faults[3].description, HasSubstr("data loading, which has no parameters"));
  EXPECT_THAT(parsed.faults[4].description, HasSubstr("node9 is not a layer"));
  EXPECT_THAT(parsed.faults[5].description, HasSubstr("node1 feeds itself"));
  EXPECT_THAT(parsed.faults[6].description, HasSubstr("already on line 8"));
  EXPECT_THAT(parsed.faults[7].description, HasSubstr("data loading, which waits for nothing"));
}

TEST(LayerGraphTest, ABadLayersEdgesAreNotReportedAsWell) {
  EXPECT_THAT(
      Parse("node1 -- ReLU -- parameter_size=nan\n" + LayerLine(2) + EdgeLine(1, 2)).paths(),
      ElementsAre("line 1", "line 1", "line 1"));
}

TEST(LayerGraphTest, ACycleIsNamedAtTheLineOfOneOfItsEdges) {
  const Parsed parsed = Parse(LayerLine(1) + LayerLine(2) + LayerLine(3) + EdgeLine(1, 2) +
                              EdgeLine(2, 3) + EdgeLine(3, 2));
  ASSERT_EQ(parsed.faults.size(), 1u);
  EXPECT_EQ(parsed.faults[0].field, "line 6");
  EXPECT_THAT(parsed.faults[0].description, HasSubstr("a cycle of 2 layers: node2, node3"));
}

TEST(LayerGraphTest, NoLayerIsAFault) {
  EXPECT_THAT(Parse("").paths(), ElementsAre("line 1"));
  EXPECT_THAT(Parse("\n\n").paths(), ElementsAre("line 1"));
}

TEST(LayerGraphTest, ReadingStopsAtTheFirstLineOverALimit) {
  EXPECT_THAT(Parse(LayerLine(1) + LayerLine(2) + "nonsense", {.max_operations = 1}).paths(),
              ElementsAre("line 2"));
  EXPECT_THAT(
      Parse(LayerLine(1) + EdgeLine(1, 2) + EdgeLine(1, 3) + LayerLine(2), {.max_dependencies = 1})
          .paths(),
      ElementsAre("line 3"));
}

// Whatever the bytes: an answer, and no layers along with faults.
TEST(LayerGraphTest, DamagedTextIsRefusedAndNothingElse) {
  std::string good;
  for (int i = 1; i <= 30; ++i)
    good += LayerLine(i, "Conv2d(3, 64)", 400) + (i > 1 ? EdgeLine(i - 1, i) : "");
  int refused = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed});
    std::string text = good;
    switch (seed % 4) {
      case 0:
        text.resize(random.Below(text.size()));
        break;
      case 1:
        for (int i = 0; i < 5; ++i)
          text[random.Below(text.size())] = static_cast<char>(random.Below(256));
        break;
      case 2:
        for (char& c : text) c = static_cast<char>(random.Below(256));
        break;
      default:
        text.insert(random.Below(text.size()),
                    text.substr(random.Below(text.size()), random.Below(200)));
    }
    const Parsed parsed = Parse(text);
    ASSERT_NE(parsed.layers.empty(), parsed.faults.empty());
    for (const Fault& fault : parsed.faults) {
      ASSERT_EQ(fault.field.rfind("line ", 0), 0u);
      for (const char c : fault.description) ASSERT_TRUE(c >= ' ' && c <= '~');
    }
    refused += parsed.layers.empty() ? 1 : 0;
  }
  EXPECT_GT(refused, 2000);
}

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
}  // namespace stepcast::layer_graph_test
