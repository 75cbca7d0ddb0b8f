#include "core/importing/chakra/chakra_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/base/random.h"
#include "tests/core/importing/chakra_writer.h"
#include "tests/core/importing/lone_worker.h"
#include "tests/core/importing/random_training.h"
#include "tests/support/recorded_data.h"

namespace stepcast::chakra_trace_test {
namespace {

using ::stepcast::testing::RandomChakraTrace;
using ::stepcast::testing::Told;
using ::stepcast::testing::WriteChakraJson;
using ::stepcast::testing::WriteChakraWire;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

using Type = ChakraNode::Type;

absl::StatusOr<ImportedProfile> Import(const std::string& bytes, const ProfileLimits& limits = {}) {
  TextSource source(bytes);
  return ImportChakraTrace(source,
                           {.recording = {.model = "m",
                                          .batch_size = 8,
                                          .platform = {.bandwidth_bytes_per_second = 1e9}},
                            .variation = {.own = 0, .common = 0}},
                           limits, NeverStop);
}

std::map<std::string, Operation> ByName(const Profile& profile) {
  std::map<std::string, Operation> operations;
  for (const Operation& operation : profile.operations()) operations[operation.name] = operation;
  return operations;
}

std::vector<std::string> Awaited(const Profile& profile, const std::string& name) {
  std::vector<std::string> names;
  const Operation operation = ByName(profile).at(name);
  for (const int32_t before : operation.waiting_for)
    names.push_back(profile.operations()[static_cast<size_t>(before)].name);
  return names;
}

// A host node launches forward, backward and a reduction of its gradient; the optimizer's host node
// waits for the reduction.
std::vector<ChakraNode> SmallTrace() {
  return {
      {.id = 0, .name = "train", .type = Type::kComputation, .duration_ns = 9000, .on_host = true},
      {.id = 1,
       .name = "forward",
       .type = Type::kComputation,
       .data_dependencies = {0},
       .duration_ns = 10'000},
      {.id = 2,
       .name = "backward",
       .type = Type::kComputation,
       .data_dependencies = {0, 1},
       .duration_ns = 20'000},
      {.id = 3,
       .name = "nccl",
       .type = Type::kCollective,
       .data_dependencies = {0, 2},
       .duration_ns = 50'000,
       .collective_type = 0,
       .size_bytes = 4096},
      {.id = 4,
       .name = "wait",
       .type = Type::kComputation,
       .data_dependencies = {3},
       .on_host = true},
      {.id = 5,
       .name = "optimizer",
       .type = Type::kComputation,
       .data_dependencies = {4},
       .duration_ns = 5000}};
}

TEST(ChakraTraceTest, TheDevicesNodesAreOperationsAndTheHostsArePassedThrough) {
  for (const std::string& bytes :
       {WriteChakraWire(SmallTrace()), WriteChakraWire(SmallTrace(), false),
        WriteChakraJson(SmallTrace()), WriteChakraJson(SmallTrace(), true)}) {
    const absl::StatusOr<ImportedProfile> imported = Import(bytes);
    ASSERT_TRUE(imported.ok()) << imported.status();
    const Profile& profile = imported->profile;
    EXPECT_EQ(profile.operations().size(), 4U);
    EXPECT_THAT(Awaited(profile, "nccl/3"), ElementsAre("backward/2"));
    EXPECT_THAT(Awaited(profile, "optimizer/5"), ElementsAre("nccl/3"));
    const Operation reduction = ByName(profile).at("nccl/3");
    EXPECT_EQ(reduction.collective, Collective::kAllReduce);
    EXPECT_EQ(reduction.size_bytes, 4096);
    EXPECT_EQ(testing::LoneStepNs(profile, profile.steps()[0]), 35'000);
    EXPECT_THAT(imported->notes, Contains(HasSubstr("Left out: 2 nodes of the host, 0.009 ms")));
  }
}

TEST(ChakraTraceTest, AllFormsSayTheSame) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<ChakraNode> nodes = RandomChakraTrace(seed);
    const absl::StatusOr<ImportedProfile> wire = Import(WriteChakraWire(nodes));
    ASSERT_TRUE(wire.ok()) << wire.status() << " seed " << seed;
    for (const std::string& other :
         {WriteChakraWire(nodes, false), WriteChakraJson(nodes), WriteChakraJson(nodes, true)}) {
      const absl::StatusOr<ImportedProfile> imported = Import(other);
      ASSERT_TRUE(imported.ok()) << imported.status() << " seed " << seed;
      EXPECT_EQ(imported->profile.content(), wire->profile.content()) << "seed " << seed;
    }
  }
}

TEST(ChakraTraceTest, AnOrderOfNodesIsNone) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<ChakraNode> nodes = RandomChakraTrace(seed);
    const absl::StatusOr<ImportedProfile> imported = Import(WriteChakraWire(nodes));
    std::reverse(nodes.begin(), nodes.end());
    const absl::StatusOr<ImportedProfile> reversed = Import(WriteChakraWire(nodes));
    ASSERT_TRUE(imported.ok() && reversed.ok()) << "seed " << seed;
    EXPECT_EQ(imported->profile.content(), reversed->profile.content()) << "seed " << seed;
  }
}

TEST(ChakraTraceTest, ACollectiveThatWaitsForNothingWaitsForTheComputationBefore) {
  std::vector<ChakraNode> nodes = SmallTrace();
  nodes[3].data_dependencies = {0};
  const absl::StatusOr<ImportedProfile> imported = Import(WriteChakraWire(nodes));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Awaited(imported->profile, "nccl/3"), ElementsAre("backward/2"));
  EXPECT_THAT(imported->notes, Contains(HasSubstr("Assumed: 1 collectives without a dependency")));
}

TEST(ChakraTraceTest, WithoutADeviceTheHostComputes) {
  std::vector<ChakraNode> nodes = SmallTrace();
  for (ChakraNode& node : nodes) node.on_host = true;
  const absl::StatusOr<ImportedProfile> imported = Import(WriteChakraWire(nodes));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->profile.operations().size(), 6U);
  EXPECT_EQ(testing::LoneStepNs(imported->profile, imported->profile.steps()[0]), 44'000);
}

TEST(ChakraTraceTest, WhatIsMissingOrUnknownIsNamed) {
  const auto changed = [](size_t node, const auto& change) {
    std::vector<ChakraNode> nodes = SmallTrace();
    change(nodes[node]);
    return WriteChakraWire(nodes);
  };
  const std::pair<std::string, const char*> cases[] = {
      {changed(3, [](ChakraNode& n) { n.size_bytes = -1; }),
       "node 3 \"nccl\" is a collective without comm_size"},
      {changed(3, [](ChakraNode& n) { n.collective_type = -1; }), "without comm_type"},
      {changed(3, [](ChakraNode& n) { n.collective_type = 2; }), "one worker's share"},
      {changed(3, [](ChakraNode& n) { n.collective_type = 6; }), "comm_type 6"},
      {changed(3, [](ChakraNode& n) { n.type = Type::kSend; }), "as pipelines do"},
      {changed(2, [](ChakraNode& n) { n.data_dependencies = {77}; }),
       "waits for node 77, which is not there"},
      {changed(2, [](ChakraNode& n) { n.id = 1; }), "an id that is taken"},
      {changed(1, [](ChakraNode& n) { n.data_dependencies = {5}; }),
       "a cycle: node 5 \"optimizer\" waits for node 4 \"wait\" waits for node 3 \"nccl\" waits "
       "for node 2 \"backward\" waits for node 1 \"forward\" waits for node 5 \"optimizer\""},
      {WriteChakraWire({SmallTrace()[3]}), "it has no computation, only 1 collective"},
      {WriteChakraWire({}), "no nodes"},
      {WriteChakraWire(SmallTrace()).substr(0, 60), "no message, or one that is cut short"},
      {WriteChakraJson(SmallTrace()).substr(0, 200), "cut short"},
      {"{\"graph\": []}", "neither a workload_graph nor nodes"},
      {"a text", "neither Chakra's protobuf messages nor its JSON"}};
  for (const auto& [bytes, expected] : cases) {
    const absl::StatusOr<ImportedProfile> imported = Import(bytes);
    ASSERT_FALSE(imported.ok()) << expected;
    EXPECT_EQ(DetailsOf(imported.status()).reason, "IMPORT_INVALID") << expected;
    EXPECT_THAT(Told(imported.status()), HasSubstr(expected));
  }
}

TEST(ChakraTraceTest, LimitsAreKept) {
  const std::string bytes = WriteChakraWire(SmallTrace());
  EXPECT_THAT(Told(Import(bytes, {.max_operations = 3}).status()), HasSubstr("max_operations"));
  EXPECT_THAT(Told(Import(bytes, {.max_dependencies = 4}).status()), HasSubstr("max_dependencies"));
}

TEST(ChakraTraceTest, BrokenTracesAreRefusedOrMakeASoundProfile) {
  int sound = 0;
  int refused = 0;
  for (uint64_t seed = 0; seed < 6000; ++seed) {  // 3,000 of each form
    Random random({seed, 13});
    const std::vector<ChakraNode> nodes = RandomChakraTrace(seed % 50);
    std::string bytes =
        seed % 2 == 0 ? WriteChakraWire(nodes) : WriteChakraJson(nodes, seed % 4 == 1);
    for (uint64_t count = 1 + random.Below(3); count > 0; --count)
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    if (random.Below(4) == 0) bytes.resize(random.Below(bytes.size()));
    const absl::StatusOr<ImportedProfile> imported = Import(bytes);
    ++(imported.ok() ? sound : refused);
    if (!imported.ok()) {
      EXPECT_EQ(DetailsOf(imported.status()).reason, "IMPORT_INVALID") << "seed " << seed;
    }
  }
  EXPECT_GT(sound, 100);
  EXPECT_GT(refused, 100);
}

TEST(ChakraTraceTest, AnExecutionTraceOfPyTorchIsCalledThat) {
  const std::string text = R"({"schema": "1.1.0-chakra.0.0.4", "nodes": [
      {"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1},
      {"id": 5, "name": "aten::add", "ctrl_deps": 2, "attrs": [{"name": "rf_id", "value": 1}]}]})";
  EXPECT_THAT(Told(Import(text).status()), HasSubstr("it is PyTorch's execution trace"));
}

TEST(RecordedChakraTracesTest, AreRefusedWithWhatIsMissing) {
  const std::filesystem::path folder = testing::RecordedDataFolder() / "chakra";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no traces in " << folder;
  const auto import = [&](const char* name) {
    std::ifstream file(folder / name, std::ios::binary);
    return Import({std::istreambuf_iterator<char>(file), {}}).status();
  };
  for (const char* name : {"chakra_all_reduce_4npus_1MB/all_reduce.0.et",
                           "chakra_all_reduce_4npus_1MB/all_reduce.3.et"})
    EXPECT_THAT(Told(import(name)), HasSubstr("it has no computation, only 1 collective, as a"));
  EXPECT_THAT(Told(import("small_chakra_json.0.json")),
              HasSubstr("is a collective without comm_type: convert the trace"));
}

}  // namespace
}  // namespace stepcast::chakra_trace_test
