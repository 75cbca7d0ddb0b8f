// ImportProfile of a timeline's JSON.
#include <string>
#include <utility>

#include "tests/core/importing/timeline_writer.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import_trial.h"
#include "tests/fuzz/json_mutator.h"

namespace stepcast::fuzz {

namespace {

class TimelineTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    constexpr uint64_t kSeeds = 4;
    std::vector<std::string> seeds;
    for (uint64_t seed = 0; seed < kSeeds; ++seed)
      seeds.push_back(testing::WriteTimeline(testing::RandomTimeline(seed)));
    return seeds;
  }

  bool Run(std::string_view input) override {
    return TryImport({.format = TimelineOptions{.recording = TrialOptions(),
                                                .variable_bytes = {{"var0", 4000}}}},
                     {.recording = input});
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateJson(std::move(input), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<TimelineTarget>(); }

}  // namespace stepcast::fuzz
