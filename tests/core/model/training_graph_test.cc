#include "core/model/training_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stepcast::training_graph_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Each operation as "name<-what it waits for".
std::vector<std::string> Describe(const TrainingGraph& graph) {
  std::vector<std::string> lines;
  for (const Operation& operation : graph.operations) {
    std::string line = operation.name + "<-";
    for (const int32_t before : operation.waiting_for)
      line += graph.operations[static_cast<size_t>(before)].name + " ";
    lines.push_back(line);
  }
  return lines;
}

TEST(TrainingGraphTest, ABranchIsWaitedForInBothDirections) {
  const TrainingGraph graph = BuildTrainingGraph(
      {{.name = "a",
        .parameters = {{.name = "w", .size_bytes = 4}, {.name = "b", .size_bytes = 8}},
        .forward_ns = 1,
        .backward_ns = 2},
       {.name = "left", .inputs = {0}, .forward_ns = 3, .backward_ns = 4},
       {.name = "right", .inputs = {0}},
       {.name = "join", .inputs = {1, 2}}});
  EXPECT_THAT(
      Describe(graph),
      ElementsAre("recv/w<-", "recv/b<-", "forward/a<-recv/w recv/b ", "forward/left<-forward/a ",
                  "forward/right<-forward/a ", "forward/join<-forward/left forward/right ",
                  "backward/join<-forward/join ", "backward/right<-backward/join ",
                  "backward/left<-backward/join ", "backward/a<-backward/left backward/right ",
                  "send/w<-backward/a ", "update/w<-send/w ", "send/b<-backward/a ",
                  "update/b<-send/b "));
  EXPECT_THAT(graph.durations_ns,
              ElementsAre(0, 0, 1, 3, 0, 0, 0, 0, 4, 2, 0, UpdateNs(4), 0, UpdateNs(8)));
  EXPECT_EQ(graph.operations[1].size_bytes, 8);
  EXPECT_EQ(graph.operations[10].size_bytes, 4);
  EXPECT_EQ(graph.operations[11].size_bytes, 0);
  EXPECT_EQ(graph.operations[11].parameter, "w");
}

TEST(TrainingGraphTest, SeveralOutputsAreJoinedBeforeTheFirstGradient) {
  const TrainingGraph graph = BuildTrainingGraph(
      {{.name = "a"}, {.name = "x", .inputs = {0}}, {.name = "y", .inputs = {0}}});
  EXPECT_THAT(Describe(graph),
              ElementsAre("forward/a<-", "forward/x<-forward/a ", "forward/y<-forward/a ",
                          "loss<-forward/x forward/y ", "backward/y<-loss ", "backward/x<-loss ",
                          "backward/a<-backward/x backward/y "));
}

TEST(TrainingGraphTest, ManyOutputsCostLinearSpace) {
  std::vector<TrainingLayer> layers(100'000);
  for (size_t i = 0; i < layers.size(); ++i) layers[i].name = std::to_string(i);
  size_t dependencies = 0;
  for (const Operation& operation : BuildTrainingGraph(layers).operations)
    dependencies += operation.waiting_for.size();
  EXPECT_EQ(dependencies, 200'000u);
}

TEST(TrainingGraphTest, NoLayersGiveNoOperations) {
  EXPECT_THAT(BuildTrainingGraph({}).operations, IsEmpty());
}

TEST(TrainingGraphTest, GradientsMeetInAllReducesInTheReverseOrderOfTheirParameters) {
  const TrainingGraph graph = BuildAllReduceGraph(
      {{.name = "a", .parameters = {{"w", 8}, {"b", 4}}, .forward_ns = 1, .backward_ns = 2},
       {.name = "left", .inputs = {0}, .forward_ns = 3, .backward_ns = 4},
       {.name = "right", .inputs = {0}, .parameters = {{"v", 16}}, .backward_ns = 5},
       {.name = "join", .inputs = {1, 2}}},
      /*optimizer_ns=*/6);
  // Computations follow each other as a stream's kernels do, whatever the layers read.
  EXPECT_THAT(Describe(graph),
              ElementsAre("forward/a<-", "forward/left<-forward/a ", "forward/right<-forward/left ",
                          "forward/join<-forward/right ", "backward/join<-forward/join ",
                          "backward/right<-backward/join ", "all_reduce/v<-backward/right ",
                          "backward/left<-backward/right ", "backward/a<-backward/left ",
                          "all_reduce/b<-backward/a ", "all_reduce/w<-backward/a ",
                          "optimizer<-all_reduce/v all_reduce/b all_reduce/w backward/a "));
  EXPECT_THAT(graph.durations_ns, ElementsAre(1, 3, 0, 0, 0, 5, 0, 4, 2, 0, 0, 6));
  EXPECT_EQ(graph.operations[6].size_bytes, 16);
  EXPECT_EQ(graph.operations[6].collective, Collective::kAllReduce);
  EXPECT_EQ(graph.operations[6].parameter, "v");
  EXPECT_EQ(graph.operations[11].resource, Resource::kWorker);
}

TEST(TrainingGraphTest, UpdatesOfTheirOwnStayWithTheirLayers) {
  const TrainingGraph graph = BuildAllReduceGraph(
      {{.name = "a", .parameters = {{"w", 8}, {"b", 4}}, .forward_ns = 1, .backward_ns = 2},
       {.name = "plain", .forward_ns = 3, .backward_ns = 4},
       {.name = "c", .parameters = {{"v", 16}}, .backward_ns = 5, .optimizer_ns = 7}},
      /*optimizer_ns=*/0);
  EXPECT_THAT(Describe(graph),
              ElementsAre("forward/a<-", "forward/plain<-forward/a ", "forward/c<-forward/plain ",
                          "backward/c<-forward/c ", "all_reduce/v<-backward/c ",
                          "backward/plain<-backward/c ", "backward/a<-backward/plain ",
                          "all_reduce/b<-backward/a ", "all_reduce/w<-backward/a ",
                          "optimizer/a<-backward/a all_reduce/b all_reduce/w ",
                          "optimizer/plain<-optimizer/a backward/plain ",
                          "optimizer/c<-optimizer/plain all_reduce/v "));
  EXPECT_THAT(graph.durations_ns, ElementsAre(1, 3, 0, 5, 0, 4, 2, 0, 0, 0, 0, 7));
  EXPECT_EQ(graph.operations[11].pass, Pass::kOptimizer);
}

TEST(TrainingGraphTest, AnUpdateMovesEachByteThreeTimesAtTheMemoryRate) {
  EXPECT_EQ(UpdateNs(20'000'000), 3'000'000);
}

}  // namespace
}  // namespace stepcast::training_graph_test
