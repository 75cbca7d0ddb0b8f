// ImportProfile of a serialised RunMetadata with its graphs inside, or of one of each of several
// workers.
#include <string>
#include <utility>
#include <vector>

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
    // Of workers whose clocks are apart, at the same servers.
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Profile training =
          testing::RandomTraining(seed, {.servers = 2, .variables = 2, .steps = 2});
      std::vector<std::string> recordings;
      for (int32_t worker = 0; worker < 2 + static_cast<int32_t>(seed % 2); ++worker) {
        const int64_t apart_us = int64_t{100'000} * worker * static_cast<int64_t>(seed);
        testing::RunMetadataForm form{
            .server_ahead_us = -apart_us, .nanoseconds = true, .worker = worker};
        form.epoch_us += apart_us;
        recordings.push_back(testing::WriteRunMetadata(training, form).value());
      }
      seeds.push_back(JoinedRecordings(recordings));
    }
    return seeds;
  }

  bool Run(std::string_view input) override {
    return TryImport({.format = TrialOptions()}, RecordingsOf(input));
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateRecordings(input, mutation, [](std::string recording, const Mutation& how) {
      return MutateSerialised(RunMetadataPrototype(), std::move(recording), how);
    });
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<RunMetadataTarget>(); }

}  // namespace stepcast::fuzz
