// ImportProfile of Horovod's timeline.
#include <string>
#include <utility>

#include "tests/core/importing/timeline_writer.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import_trial.h"
#include "tests/fuzz/json_mutator.h"

namespace stepcast::fuzz {

namespace {

class HorovodTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    return {testing::WriteHorovodTimeline(3), testing::WriteHorovodTimeline(4, /*ended=*/false)};
  }

  bool Run(std::string_view input) override {
    return TryImport({.format = HorovodTimelineOptions{.recording = TrialOptions()}},
                     {.recording = input});
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateJson(std::move(input), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<HorovodTarget>(); }

}  // namespace stepcast::fuzz
