// ImportProfile of a serialised RunMetadata with its graphs inside.
#include <string>
#include <utility>

#include "tests/core/importing/random_training.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import_trial.h"
#include "tests/fuzz/message_mutator.h"
#include "tests/fuzz/tensorflow_schema.h"
#include "tests/support/run_metadata_writer.h"

namespace stepcast::fuzz {

namespace {

class RunMetadataTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    constexpr uint64_t kSeeds = 6;
    std::vector<std::string> seeds;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Profile training =
          testing::RandomTraining(seed, {.servers = 2, .variables = 2, .steps = 2});
      seeds.push_back(
          testing::WriteRunMetadata(training, {.nanoseconds = seed % 2 == 0, .gpu = seed % 3 == 0})
              .value());
    }
    return seeds;
  }

  bool Run(std::string_view input) override {
    return TryImport({.format = TrialOptions()}, {.recording = input});
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateSerialised(RunMetadataPrototype(), std::move(input), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<RunMetadataTarget>(); }

}  // namespace stepcast::fuzz
