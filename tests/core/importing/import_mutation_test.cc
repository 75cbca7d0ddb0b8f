// Broken recordings: each is refused with a reason, or makes a sound profile. What must not happen
// is anything else.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/importing/layers/layer_profile.h"
#include "core/importing/pytorch/pytorch_trace.h"
#include "core/importing/tensorflow/tensorflow_profile.h"
#include "tests/core/importing/pytorch_writer.h"
#include "tests/core/importing/random_training.h"
#include "tests/core/importing/timeline_writer.h"
#include "tests/core/importing/unpacked_file.h"
#include "tests/support/run_metadata_writer.h"

namespace stepcast::import_mutation_test {
namespace {

constexpr uint64_t kSeeds = 3000;

// Cut short, bits flipped, bytes replaced, a part left out, there twice or moved, or nothing of it
// left.
std::string Broken(std::string bytes, Random& random) {
  const auto at = [&] { return static_cast<size_t>(random.Below(bytes.size())); };
  const uint64_t kind = random.Below(7);
  if (bytes.empty()) return bytes;
  if (kind == 0) return bytes.substr(0, at());
  if (kind == 1) {
    for (uint64_t count = 1 + random.Below(4); count > 0; --count)
      bytes[at()] ^= static_cast<char>(1 << random.Below(8));
  } else if (kind == 2) {
    for (uint64_t count = 1 + random.Below(40); count > 0; --count)
      bytes[at()] = static_cast<char>(random.Below(256));
  } else if (kind == 3) {
    bytes.erase(at(), 1 + random.Below(60));
  } else if (kind == 4) {
    bytes.insert(at(), bytes.substr(at(), 1 + random.Below(200)));
  } else if (kind == 5) {
    std::rotate(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at()), bytes.end());
  } else {
    for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
  }
  return bytes;
}

struct Tally {
  int sound = 0;
  int refused = 0;
};

void Count(const absl::StatusOr<ImportedProfile>& imported, uint64_t seed, Tally& tally) {
  if (imported.ok()) {
    ++tally.sound;
    EXPECT_FALSE(imported->notes.empty()) << "seed " << seed;
    EXPECT_FALSE(imported->profile.operations().empty()) << "seed " << seed;
    return;
  }
  ++tally.refused;
  EXPECT_EQ(imported.status().code(), absl::StatusCode::kInvalidArgument)
      << imported.status() << " seed " << seed;
  const ErrorDetails details = DetailsOf(imported.status());
  EXPECT_EQ(details.reason, "IMPORT_INVALID") << imported.status() << " seed " << seed;
  EXPECT_FALSE(details.faults.empty()) << imported.status() << " seed " << seed;
}

RecordingOptions Options() {
  return {.model = "m", .batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e8}};
}

TEST(ImportMutationTest, BrokenRunMetadataIsRefusedOrMakesASoundProfile) {
  Tally tally;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random({seed, 1});
    const Profile training = testing::RandomTraining(seed % 50);
    const bool parts = seed % 3 != 0;
    const testing::RunMetadataForm form{.nanoseconds = seed % 2 == 0,
                                        .partition_graphs = parts,
                                        .gpu = seed % 5 == 0,
                                        .whole_graph = !parts};
    std::string recording = testing::WriteRunMetadata(training, form).value();
    std::string graph =
        parts ? ""
              : testing::WriteWholeGraph(testing::RandomTraining(seed % 50, {.reads = false}), form)
                    .value();
    (!parts && seed % 2 == 0 ? graph : recording) =
        Broken(!parts && seed % 2 == 0 ? graph : recording, random);
    TextSource source(recording);
    TextSource graph_source(graph);
    Count(ImportRunMetadata(source, parts ? nullptr : &graph_source, Options(), {}, NeverStop),
          seed, tally);
  }
  std::cout << tally.sound << " sound, " << tally.refused << " refused\n";
  EXPECT_GT(tally.sound, 0);
  EXPECT_GT(tally.refused, 0);
}

TEST(ImportMutationTest, ABrokenTimelineIsRefusedOrMakesASoundProfile) {
  Tally tally;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random({seed, 2});
    const std::string text =
        Broken(testing::WriteTimeline(testing::RandomTimeline(seed % 50)), random);
    TextSource source(text);
    Count(
        ImportTimeline(source, nullptr,
                       {.recording = Options(), .variable_bytes = {{"var0", 4000}}}, {}, NeverStop),
        seed, tally);
  }
  std::cout << tally.sound << " sound, " << tally.refused << " refused\n";
  EXPECT_GT(tally.sound, 0);
  EXPECT_GT(tally.refused, 0);
}

TEST(ImportMutationTest, ABrokenTraceOfPyTorchIsRefusedOrMakesASoundProfile) {
  Tally tally;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random({seed, 3});
    std::string text = testing::WritePyTorchTrace(testing::RandomPyTorchForm(seed % 50)).text;
    // Half of them break in a number, so that more than the JSON is put to the test.
    if (seed % 2 == 0) {
      text = Broken(text, random);
    } else {
      for (uint64_t count = 1 + random.Below(8); count > 0; --count) {
        const size_t at = text.find_first_of("0123456789", random.Below(text.size()));
        if (at != std::string::npos) text[at] = static_cast<char>('0' + random.Below(10));
      }
    }
    TextSource source(text);
    Count(ImportPyTorchTrace(source, {.recording = Options()}, {}, NeverStop), seed, tally);
  }
  std::cout << tally.sound << " sound, " << tally.refused << " refused\n";
  EXPECT_GT(tally.sound, 0);
  EXPECT_GT(tally.refused, 0);
}

// With operations of the forward pass, sequence numbers and two process groups.
TEST(ImportMutationTest, ABrokenTraceOfAHybridJobIsRefusedOrMakesASoundProfile) {
  const std::string whole = testing::UnpackedFile(
      STEPCAST_SOURCE_DIR "/tests/data/cases/tensor_parallel_all_reduce/trace.json");
  Tally tally;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random({seed, 4});
    std::string text = whole;
    if (seed % 3 == 0) {
      text = Broken(text, random);
    } else {
      for (uint64_t count = 1 + random.Below(40); count > 0; --count) {
        const size_t at = text.find_first_of("0123456789", random.Below(text.size()));
        if (at != std::string::npos) text[at] = static_cast<char>('0' + random.Below(10));
      }
    }
    TextSource source(text);
    Count(ImportPyTorchTrace(
              source, {.recording = Options(), .data_parallel_group = seed % 5 == 0 ? "1" : ""}, {},
              NeverStop),
          seed, tally);
  }
  std::cout << tally.sound << " sound, " << tally.refused << " refused\n";
  EXPECT_GT(tally.sound, 0);
  EXPECT_GT(tally.refused, 0);
}

TEST(ImportMutationTest, ABrokenTableOfLayersIsRefusedOrMakesASoundProfile) {
  std::string whole = "name,forward_ms,backward_ms,activation_bytes,parameter_bytes\n";
  for (int layer = 0; layer < 12; ++layer)
    absl::StrAppend(&whole, "layer", layer, ",", 1 + layer, ".25,3.5,", 4096 * layer, ",1024\n");
  Tally tally;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random({seed, 5});
    Count(ImportLayerProfile(Broken(whole, random),
                             {.batch_size = 8, .platform = Options().platform}),
          seed, tally);
  }
  std::cout << tally.sound << " sound, " << tally.refused << " refused\n";
  EXPECT_GT(tally.sound, 0);
  EXPECT_GT(tally.refused, 0);
}

TEST(ImportMutationTest, ABrokenProfileOfSailorsIsRefusedOrMakesASoundProfile) {
  const std::string times = R"({"8": {"1": {"0": [0.001, 0, 0.01], "1": [0.002, 0.004, 0.01],)"
                            R"( "2": [0.003, 0.006, 0.02]}}})";
  const std::string sizes =
      R"({"hidden_size": 16, "sequence_length": 8, "num_layers": 1, "vocab_size": 100})";
  Tally tally;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random({seed, 6});
    const bool breaks_sizes = seed % 3 == 0;
    Count(ImportLayerProfile(breaks_sizes ? times : Broken(times, random),
                             {.batch_size = 8,
                              .platform = Options().platform,
                              .sizes = breaks_sizes ? Broken(sizes, random) : sizes}),
          seed, tally);
  }
  std::cout << tally.sound << " sound, " << tally.refused << " refused\n";
  EXPECT_GT(tally.sound, 0);
  EXPECT_GT(tally.refused, 0);
}

}  // namespace
}  // namespace stepcast::import_mutation_test
