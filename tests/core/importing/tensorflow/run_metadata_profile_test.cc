#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/importing/tensorflow/tensorflow_profile.h"
#include "tensorflow/run_metadata.pb.h"
#include "tests/core/importing/random_training.h"
#include "tests/support/run_metadata_writer.h"

namespace stepcast::run_metadata_profile_test {
namespace {

using ::stepcast::testing::Described;
using ::stepcast::testing::RandomTraining;
using ::stepcast::testing::Told;
using ::stepcast::testing::WriteRunMetadata;
using ::stepcast::testing::WriteWholeGraph;
using ::testing::Contains;
using ::testing::HasSubstr;

RecordingOptions Options() {
  return {.model = "m", .batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e8}};
}

absl::StatusOr<ImportedProfile> Import(const std::string& recording, const std::string& graph = "",
                                       const ProfileLimits& limits = {}) {
  TextSource source(recording);
  TextSource graph_source(graph);
  return ImportRunMetadata(source, graph.empty() ? nullptr : &graph_source, Options(), limits,
                           NeverStop);
}

// A profile's steps, each as one message to change.
std::vector<tensorflow::RunMetadata> Steps(const Profile& profile) {
  std::vector<tensorflow::RunMetadata> steps(profile.steps().size());
  for (size_t i = 0; i < steps.size(); ++i)
    EXPECT_TRUE(steps[i].ParseFromString(WriteRunMetadata(profile, i).value()));
  return steps;
}

std::string All(const std::vector<tensorflow::RunMetadata>& steps) {
  std::string all;
  for (const tensorflow::RunMetadata& step : steps) all += step.SerializeAsString();
  return all;
}

using Rows = google::protobuf::RepeatedPtrField<tensorflow::NodeExecStats>;

void ForEachDevice(tensorflow::RunMetadata& step, const std::function<void(Rows&)>& change) {
  for (auto& stats : *step.mutable_step_stats()) {
    for (auto& device : *stats.mutable_dev_stats()) change(*device.mutable_node_stats());
  }
}

void Remove(tensorflow::RunMetadata& step, const std::string& node) {
  ForEachDevice(step, [&](Rows& rows) {
    rows.erase(std::remove_if(rows.begin(), rows.end(),
                              [&](const auto& row) { return row.node_name() == node; }),
               rows.end());
  });
}

Profile ThreeSteps() {
  for (uint64_t seed = 0;; ++seed) {
    Profile profile = RandomTraining(seed, {.steps = 5});
    if (profile.steps().size() == 3) return profile;
  }
}

TEST(RunMetadataProfileTest, RowsInAnyOrderAndTwiceMakeTheSameProfile) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random({seed, 3});
    const Profile profile = RandomTraining(seed);
    std::vector<tensorflow::RunMetadata> steps = Steps(profile);
    for (tensorflow::RunMetadata& step : steps) {
      ForEachDevice(step, [&](Rows& rows) {
        if (seed % 2 == 0) {
          const Rows once = rows;
          rows.MergeFrom(once);
        }
        for (int i = rows.size(); i > 1; --i)
          rows.SwapElements(i - 1, static_cast<int>(random.Below(static_cast<uint64_t>(i))));
      });
    }
    const absl::StatusOr<ImportedProfile> imported = Import(All(steps));
    ASSERT_TRUE(imported.ok()) << imported.status() << " seed " << seed;
    EXPECT_EQ(Described(imported->profile), Described(profile)) << "seed " << seed;
    EXPECT_EQ(imported->profile.content(),
              Import(WriteRunMetadata(profile).value())->profile.content())
        << "seed " << seed;
  }
}

TEST(RunMetadataProfileTest, ARecordingWithoutAGraphIsRefusedAndSaysWhatIsMissing) {
  EXPECT_EQ(
      Told(Import(WriteRunMetadata(ThreeSteps(), {.partition_graphs = false}).value()).status()),
      "IMPORT_INVALID recording: it has no partition_graphs, and no graph is given: nothing says "
      "what an operation waits for");
}

TEST(RunMetadataProfileTest, AnEmptyRecordingIsRefused) {
  EXPECT_EQ(Told(Import("").status()),
            "IMPORT_INVALID recording: it has no step_stats with rows of a worker or a server");
}

TEST(RunMetadataProfileTest, ARecordingThatIsCutShortIsRefusedWithItsPlace) {
  const std::string whole = WriteRunMetadata(ThreeSteps(), size_t{0}).value();
  // Within its last field, the cost graph of six bytes.
  EXPECT_EQ(Told(Import(whole.substr(0, whole.size() - 1)).status()),
            "IMPORT_INVALID recording: byte " + std::to_string(whole.size() - 1) +
                ": no message, or one that is cut short");
}

TEST(RunMetadataProfileTest, AGraphOfSomethingElseIsRefused) {
  const std::string recording = WriteRunMetadata(ThreeSteps(), {.partition_graphs = false}).value();
  const std::string node = std::string("\x0a\x05\x0a\x03") + "xyz";
  EXPECT_THAT(Told(Import(recording, node).status()),
              HasSubstr("IMPORT_INVALID graph: it has 0 of the"));
}

TEST(RunMetadataProfileTest, AStepThatLacksWhatMostHaveIsLeftOutAndSaid) {
  const Profile profile = ThreeSteps();
  std::vector<tensorflow::RunMetadata> steps = Steps(profile);
  Remove(steps[1], "compute/1");
  const absl::StatusOr<ImportedProfile> imported = Import(All(steps));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->profile.steps().size(), 2U);
  EXPECT_THAT(
      imported->notes,
      Contains(HasSubstr(
          "1 of 3 steps, which lack operations that most have; step 2 lacks \"compute/1\"")));
}

TEST(RunMetadataProfileTest, AnOperationThatFewStepsHaveIsLeftOutAndSaid) {
  const Profile profile = ThreeSteps();
  std::vector<tensorflow::RunMetadata> steps = Steps(profile);
  Remove(steps[0], "compute/1");
  Remove(steps[1], "compute/1");
  const absl::StatusOr<ImportedProfile> imported = Import(All(steps));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->profile.steps().size(), 3U);
  EXPECT_EQ(imported->profile.operations().size(), profile.operations().size() - 1);
  EXPECT_THAT(
      imported->notes,
      Contains(HasSubstr("1 nodes that at most half of the steps ran, \"compute/1\" among them")));
}

TEST(RunMetadataProfileTest, StepsOfWhichEachLacksSomethingAreRefused) {
  const Profile profile = ThreeSteps();
  std::vector<tensorflow::RunMetadata> steps = Steps(profile);
  Remove(steps[0], "compute/1");
  Remove(steps[1], "compute/2");
  Remove(steps[2], "update/var0");
  EXPECT_THAT(Told(Import(All(steps)).status()),
              HasSubstr("no step has all that most steps have: step 1 lacks \"compute/1\""));
}

TEST(RunMetadataProfileTest, StepsOfDifferentGraphsAreRefused) {
  std::vector<tensorflow::RunMetadata> steps = Steps(ThreeSteps());
  for (auto& graph : *steps[1].mutable_partition_graphs()) {
    for (auto& node : *graph.mutable_node()) {
      if (node.name() == "compute/1") node.add_input("another");
    }
  }
  EXPECT_EQ(Told(Import(All(steps)).status()),
            "IMPORT_INVALID recording: node \"compute/1\" is there twice, with other inputs: the "
            "steps are not of the same graph");
}

TEST(RunMetadataProfileTest, OperationsOfSeveralWorkersAreRefused) {
  std::vector<tensorflow::RunMetadata> steps = Steps(ThreeSteps());
  for (auto& step : steps) {
    auto& other = *step.mutable_step_stats(0)->add_dev_stats();
    other.set_device("/job:worker/replica:0/task:1/device:CPU:0");
    auto& row = *other.add_node_stats();
    row.set_node_name("elsewhere");
    row.set_all_start_micros(1);
    auto& node = *step.mutable_partition_graphs(0)->add_node();
    node.set_name("elsewhere");
    node.set_device("/job:worker/replica:0/task:1/device:CPU:0");
  }
  EXPECT_THAT(Told(Import(All(steps)).status()), HasSubstr("recording: it is of several workers"));
}

TEST(RunMetadataProfileTest, ATensorWithoutASizeIsRefusedAndOneOfNoBytesHasOne) {
  std::vector<tensorflow::RunMetadata> steps = Steps(ThreeSteps());
  for (auto& step : steps) {
    ForEachDevice(step, [](Rows& rows) {
      for (auto& row : rows) {
        if (row.node_name() == "RecvTensor")
          row.mutable_output(0)
              ->mutable_tensor_description()
              ->mutable_allocation_description()
              ->Clear();
      }
    });
  }
  const absl::StatusOr<ImportedProfile> empty = Import(All(steps));
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_THAT(empty->notes,
              Contains(HasSubstr("tensors of no bytes, which only signal, have one")));
  for (auto& step : steps) {
    ForEachDevice(step, [](Rows& rows) {
      for (auto& row : rows) {
        row.clear_output();
        if (row.node_name() == "RecvTensor")
          row.set_timeline_label(row.timeline_label().substr(row.timeline_label().rfind("] ") + 2));
      }
    });
  }
  EXPECT_THAT(Told(Import(All(steps)).status()),
              HasSubstr("recording: nothing says how many bytes \"edge_"));
}

TEST(RunMetadataProfileTest, LimitsAreTheCallersAndNamed) {
  const std::string recording = WriteRunMetadata(ThreeSteps()).value();
  EXPECT_THAT(Told(Import(recording, "", {.max_steps = 2}).status()),
              HasSubstr("steps: 3 is above the limit max_steps = 2"));
  EXPECT_THAT(Told(Import(recording, "", {.max_operations = 3}).status()),
              HasSubstr("max_operations"));
  EXPECT_THAT(Told(Import(recording, "", {.max_name_bytes = 5}).status()),
              HasSubstr("max_name_bytes"));
  EXPECT_THAT(Told(Import(recording, "", {.max_recorded_times = 5}).status()),
              HasSubstr("max_recorded_times"));
}

TEST(RunMetadataProfileTest, ARowBeforeTheNameOfItsDeviceIsRefused) {
  // step_stats { dev_stats { node_stats {} } }
  EXPECT_EQ(Told(Import(std::string("\x0a\x04\x0a\x02\x12\x00", 6)).status()),
            "IMPORT_INVALID recording: byte 5: rows of a device before its name");
}

TEST(RunMetadataProfileTest, WhatASourceFailsWithIsWhatTheImportFailsWith) {
  class Broken final : public ByteSource {
   public:
    absl::StatusOr<size_t> Read(char*, size_t) override { return absl::DataLossError("the disk"); }
  };
  Broken source;
  EXPECT_EQ(ImportRunMetadata(source, nullptr, Options(), {}, NeverStop).status(),
            absl::DataLossError("the disk"));
}

}  // namespace
}  // namespace stepcast::run_metadata_profile_test
