// Profiles written as TensorFlow records them come back as they were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/importing/tensorflow/tensorflow_profile.h"
#include "tests/core/importing/random_training.h"
#include "tests/support/run_metadata_writer.h"

namespace stepcast::run_metadata_round_trip_test {
namespace {

using ::stepcast::testing::Described;
using ::stepcast::testing::RandomTraining;
using ::stepcast::testing::RunMetadataForm;
using ::stepcast::testing::TrainingSize;
using ::stepcast::testing::WriteRunMetadata;
using ::stepcast::testing::WriteWholeGraph;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kSeeds = 200;

RecordingOptions Options() {
  return {.model = "m", .batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e8}};
}

absl::StatusOr<ImportedProfile> Import(const std::string& recording,
                                       const std::string& graph = "") {
  TextSource source(recording);
  TextSource graph_source(graph);
  return ImportRunMetadata(source, graph.empty() ? nullptr : &graph_source, Options(), {},
                           NeverStop);
}

void ExpectTheSame(const Profile& profile, const RunMetadataForm& form, uint64_t seed) {
  const absl::StatusOr<std::string> recording = WriteRunMetadata(profile, form);
  ASSERT_TRUE(recording.ok()) << recording.status() << " seed " << seed;
  const absl::StatusOr<ImportedProfile> imported = Import(*recording);
  ASSERT_TRUE(imported.ok()) << imported.status() << " seed " << seed;
  EXPECT_EQ(Described(imported->profile), Described(profile)) << "seed " << seed;
  EXPECT_EQ(imported->profile.parameter_servers(), profile.parameter_servers()) << "seed " << seed;
  EXPECT_THAT(imported->notes, Not(Contains(HasSubstr("Put right")))) << "seed " << seed;
}

TEST(RunMetadataRoundTripTest, OperationsDependenciesSizesAndMicrosecondsComeBack) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) ExpectTheSame(RandomTraining(seed), {}, seed);
}

TEST(RunMetadataRoundTripTest, NanosecondsComeBackWhereTheyAreWritten) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    ExpectTheSame(RandomTraining(seed, {.tick_ns = 7}), {.nanoseconds = true}, seed);
}

TEST(RunMetadataRoundTripTest, TheTimesOfKernelsAreThoseOfTheirOperations) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    ExpectTheSame(RandomTraining(seed), {.gpu = true}, seed);
}

TEST(RunMetadataRoundTripTest, AGraphGivenBesideDoesAsWell) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Profile profile = RandomTraining(seed, {.reads = false});
    RunMetadataForm form{.partition_graphs = false, .whole_graph = true};
    const absl::StatusOr<ImportedProfile> imported =
        Import(WriteRunMetadata(profile, form).value(), WriteWholeGraph(profile).value());
    ASSERT_TRUE(imported.ok()) << imported.status() << " seed " << seed;
    std::vector<std::string> expected = Described(profile);
    for (std::string& line : expected) {
      // In this graph an upload is called as the node that sends it.
      for (size_t at = line.find("send/"); at != std::string::npos; at = line.find("send/", at + 1))
        line.insert(line.find(' ', at) == std::string::npos ? line.size() : line.find(' ', at),
                    "/gradient");
    }
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(Described(imported->profile), expected) << "seed " << seed;
  }
}

TEST(RunMetadataRoundTripTest, ClocksSecondsApartChangeNoLengthAndNothingOfTheWorker) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Profile profile = RandomTraining(seed);
    for (const int64_t ahead_us : {-5'000'000, 3'000'000}) {
      const absl::StatusOr<ImportedProfile> imported =
          Import(WriteRunMetadata(profile, {.server_ahead_us = ahead_us}).value());
      ASSERT_TRUE(imported.ok()) << imported.status() << " seed " << seed;
      EXPECT_THAT(imported->notes, Contains(HasSubstr("the clock of a server was moved")))
          << "seed " << seed;
      for (size_t step = 0; step < profile.steps().size(); ++step) {
        for (size_t i = 0; i < profile.operations().size(); ++i) {
          const Operation& operation = profile.operations()[i];
          const auto& there = imported->profile.operations();
          const auto found = std::find_if(there.begin(), there.end(), [&](const Operation& other) {
            return other.name == operation.name;
          });
          ASSERT_NE(found, there.end()) << operation.name << " seed " << seed;
          const auto at = static_cast<size_t>(found - there.begin());
          const RecordedStep& made = imported->profile.steps()[step];
          const RecordedStep& recorded = profile.steps()[step];
          if (operation.resource == Resource::kWorker) {
            EXPECT_EQ(made.start_ns[at], recorded.start_ns[i])
                << operation.name << " seed " << seed;
          }
          if (!IsTransfer(operation.resource)) {
            EXPECT_EQ(made.end_ns[at] - made.start_ns[at],
                      recorded.end_ns[i] - recorded.start_ns[i])
                << operation.name << " seed " << seed;
          }
          EXPECT_LE(made.end_ns[at], 1'000'000'000)
              << operation.name << " seed " << seed << " ahead " << ahead_us;
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepcast::run_metadata_round_trip_test
