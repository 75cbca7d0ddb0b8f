// ImportProfile of a good recording with a GraphDef beside it: the first byte says which recording,
// the rest is the graph.
#include <string>
#include <utility>

#include "tests/core/importing/random_training.h"
#include "tests/core/importing/timeline_writer.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import_trial.h"
#include "tests/fuzz/message_mutator.h"
#include "tests/fuzz/tensorflow_schema.h"
#include "tests/support/run_metadata_writer.h"

namespace stepcast::fuzz {

namespace {

constexpr uint64_t kRecordings = 4;  // of each format

class GraphDefTarget final : public FuzzTarget {
 public:
  GraphDefTarget() {
    for (uint64_t seed = 0; seed < kRecordings; ++seed) {
      recordings_.push_back(testing::WriteRunMetadata(
                                Training(seed), {.partition_graphs = false, .whole_graph = true})
                                .value());
    }
    for (uint64_t seed = 0; seed < kRecordings; ++seed)
      recordings_.push_back(testing::WriteTimeline(testing::RandomTimeline(seed)));
  }

  std::vector<std::string> Seeds() const override {
    std::vector<std::string> seeds;
    for (uint64_t seed = 0; seed < 2 * kRecordings; ++seed) {
      seeds.push_back(
          static_cast<char>(seed) +
          testing::WriteWholeGraph(Training(seed % kRecordings), {.partition_graphs = false})
              .value());
    }
    return seeds;
  }

  bool Run(std::string_view input) override {
    if (input.empty()) return false;
    const size_t which = static_cast<unsigned char>(input[0]) % recordings_.size();
    server::ImportProfileCall call{.format = TrialOptions()};
    // Without the variables of the graph, one of the timeline's own.
    if (which >= kRecordings)
      call.format =
          TimelineOptions{.recording = TrialOptions(), .variable_bytes = {{"var0", 4000}}};
    return TryImport(
        call, {.recording = recordings_[which], .graph = input.substr(1), .has_graph = true});
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    if (input.empty() || mutation.random.Below(16) == 0) return mutation.bytes(std::move(input));
    return input[0] + MutateSerialised(GraphDefPrototype(), input.substr(1), mutation);
  }

 private:
  static Profile Training(uint64_t seed) {
    return testing::RandomTraining(seed,
                                   {.servers = 2, .variables = 2, .steps = 1, .reads = false});
  }

  std::vector<std::string> recordings_;
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<GraphDefTarget>(); }

}  // namespace stepcast::fuzz
