// ImportProfile of Chakra execution traces, as protobuf and as JSON, of one rank or of several.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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
    for (int ranks : {2, 3}) {
      std::vector<std::string> texts;
      for (int rank = 0; rank < ranks; ++rank) {
        texts.push_back(rank % 2 == 0 ? testing::WriteChakraJson(NodesOfRank(rank))
                                      : testing::WriteChakraWire(NodesOfRank(rank)));
      }
      seeds.push_back(JoinedRecordings(texts));
    }
    return seeds;
  }

  bool Run(std::string_view input) override {
    ImportInput recordings = RecordingsOf(input);
    recordings.named_by_rank = true;
    ChakraTraceOptions options{.recording = TrialOptions()};
    // The times of several ranks are their own.
    if (recordings.recordings.empty()) options.variation = {.own = 0.1, .steps = 2};
    return TryImport({.format = options}, recordings);
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateRecordings(input, mutation, [](std::string recording, const Mutation& how) {
      const bool is_json = !recording.empty() && recording.front() == '{';
      return is_json ? MutateJson(std::move(recording), how) : how.bytes(std::move(recording));
    });
  }

 private:
  // Two layers, on a clock of its own.
  static std::vector<ChakraNode> NodesOfRank(int rank) {
    using Type = ChakraNode::Type;
    constexpr int64_t kUs = 1000;
    const int64_t begin = (1'000'000 + 70 * rank) * kUs;
    std::vector<ChakraNode> nodes;
    for (int64_t layer = 0; layer < 2; ++layer) {
      nodes.push_back({.id = 10 * layer + 1,
                       .name = "backward",
                       .type = Type::kComputation,
                       .start_ns = begin + 50 * layer * kUs,
                       .duration_ns = (20 + rank) * kUs});
      if (layer > 0) nodes.back().data_dependencies = {1};
      nodes.push_back({.id = 10 * layer + 2,
                       .name = "nccl",
                       .type = Type::kCollective,
                       .data_dependencies = {10 * layer + 1},
                       .start_ns = begin + (50 * layer + 30) * kUs,
                       .duration_ns = 10 * kUs,
                       .collective_type = 0,
                       .size_bytes = 4096});
    }
    return nodes;
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<ChakraTarget>(); }

}  // namespace stepcast::fuzz
