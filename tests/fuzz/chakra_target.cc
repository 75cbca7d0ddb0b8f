// ImportProfile of Chakra execution traces, as protobuf and as JSON.
#include <string>
#include <utility>

#include "tests/core/importing/chakra_writer.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import_trial.h"
#include "tests/fuzz/json_mutator.h"

namespace stepcast::fuzz {

namespace {

class ChakraTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    constexpr uint64_t kSeeds = 4;
    std::vector<std::string> seeds;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const std::vector<ChakraNode> nodes = testing::RandomChakraTrace(seed);
      seeds.push_back(testing::WriteChakraWire(nodes, seed % 2 == 0));
      seeds.push_back(testing::WriteChakraJson(nodes, seed % 2 == 0));
    }
    return seeds;
  }

  bool Run(std::string_view input) override {
    return TryImport({.format = ChakraTraceOptions{.recording = TrialOptions(),
                                                   .variation = {.own = 0.1, .steps = 2}}},
                     {.recording = input});
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    const bool is_json = !input.empty() && input.front() == '{';
    return is_json ? MutateJson(std::move(input), mutation) : mutation.bytes(std::move(input));
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<ChakraTarget>(); }

}  // namespace stepcast::fuzz
