#include "core/importing/tensorflow/tensorflow_graph.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/importing/common/recording_import.h"
#include "tests/core/importing/random_training.h"

namespace stepcast::tensorflow_graph_test {
namespace {

constexpr char kWorker[] = "/job:worker/replica:0/task:0/device:CPU:0";
constexpr char kServer[] = "/job:ps/replica:0/task:0/device:CPU:0";

std::string Name(size_t i) { return "n" + std::to_string(i); }

// A way from one node to another over nodes that were not kept, for all pairs (Warshall, "A theorem
// on Boolean matrices", 1962).
std::vector<std::vector<bool>> Ways(std::vector<std::vector<bool>> edges,
                                    const std::vector<bool>& kept) {
  for (size_t over = 0; over < kept.size(); ++over) {
    if (kept[over]) continue;
    for (size_t from = 0; from < kept.size(); ++from) {
      for (size_t to = 0; to < kept.size() && edges[from][over]; ++to)
        edges[from][to] = edges[from][to] || edges[over][to];
    }
  }
  return edges;
}

TEST(GraphDependenciesTest, AreTheNearestKeptNodesOnAllWaysBack) {
  const ProfileLimits limits;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random({seed});
    const size_t size = 2 + random.Below(25);
    std::vector<std::vector<bool>> edges(size, std::vector<bool>(size, false));
    std::vector<bool> kept;
    RecordedRows rows(limits);
    TensorflowGraph graph(seed % 2 == 0, kAtRecording, limits);
    const int32_t device = rows.Device(kWorker).value();
    for (size_t to = 0; to < size; ++to) {
      GraphNodeText text{.name = Name(to), .op = "Add", .device = kWorker};
      for (size_t from = 0; from < to; ++from) {
        edges[from][to] = random.Below(4) == 0;
        if (edges[from][to])
          text.inputs.push_back(random.Below(3) == 0 ? "^" + Name(from) : Name(from) + ":2");
      }
      ASSERT_TRUE(graph.Add(text).ok());
      ASSERT_EQ(rows.Node(Name(to), device).value(), static_cast<int32_t>(to));
      kept.push_back(random.Below(3) != 0);
    }
    const auto found = GraphDependencies(rows, graph, kept, limits).Find();
    ASSERT_TRUE(found.ok()) << found.status() << " seed " << seed;
    const std::vector<std::vector<bool>> ways = Ways(edges, kept);
    for (size_t to = 0; to < size; ++to) {
      std::vector<int32_t> expected;
      for (size_t from = 0; from < size && kept[to]; ++from) {
        if (kept[from] && ways[from][to]) expected.push_back(static_cast<int32_t>(from));
      }
      EXPECT_EQ((*found)[to], expected) << Name(to) << " seed " << seed;
    }
  }
}

// A while loop: NextIteration leads back to the Merge at its beginning.
TEST(GraphDependenciesTest, TheWayBackIntoALoopsNextRoundIsNotFollowed) {
  const ProfileLimits limits;
  RecordedRows rows(limits);
  TensorflowGraph graph(false, kAtGraph, limits);
  ASSERT_TRUE(graph.Add({.name = "merge", .op = "Merge", .inputs = {"next"}}).ok());
  ASSERT_TRUE(graph.Add({.name = "body", .op = "Add", .inputs = {"merge"}}).ok());
  ASSERT_TRUE(graph.Add({.name = "next", .op = "NextIteration", .inputs = {"body"}}).ok());
  const int32_t device = rows.Device(kWorker).value();
  for (const char* name : {"merge", "body", "next"}) ASSERT_TRUE(rows.Node(name, device).ok());
  const std::vector<std::vector<int32_t>> found =
      GraphDependencies(rows, graph, {true, true, true}, limits).Find().value();
  EXPECT_EQ(found, (std::vector<std::vector<int32_t>>{{}, {0}, {1}}));
}

TEST(GraphDependenciesTest, AnUploadThatNothingSendsIsRefused) {
  const ProfileLimits limits;
  RecordedRows rows(limits);
  TensorflowGraph graph(true, kAtRecording, limits);
  ASSERT_TRUE(graph.Add({.name = "update", .op = "ApplyGradientDescent", .device = kServer}).ok());
  ASSERT_TRUE(
      rows.Node("edge_1_gradient", rows.Device(kServer).value(), rows.Device(kWorker).value())
          .ok());
  EXPECT_EQ(testing::Told(GraphDependencies(rows, graph, {true}, limits).Find().status()),
            "IMPORT_INVALID graph: nothing in the graph sends \"edge_1_gradient\", which a worker "
            "uploaded");
}

TEST(GraphDependenciesTest, WaysThroughWhatWasNotRecordedHaveALimit) {
  ProfileLimits limits;
  RecordedRows rows(limits);
  TensorflowGraph graph(false, kAtGraph, limits);
  for (size_t i = 0; i < 100; ++i)
    ASSERT_TRUE(graph
                    .Add({.name = Name(i),
                          .op = "Add",
                          .inputs = i > 0 ? std::vector{Name(i - 1)} : std::vector<std::string>{}})
                    .ok());
  ASSERT_TRUE(rows.Node(Name(99), rows.Device(kWorker).value()).ok());
  EXPECT_TRUE(GraphDependencies(rows, graph, {true}, limits).Find().ok());
  limits.max_dependencies = 50;
  EXPECT_NE(testing::Told(GraphDependencies(rows, graph, {true}, limits).Find().status())
                .find("max_dependencies"),
            std::string::npos);
}

}  // namespace
}  // namespace stepcast::tensorflow_graph_test
