// ImportProfile of a layer profile's text: the first byte says whether its times vary, and whether
// there is a training configuration of Sailor's behind the text.
#include <string>
#include <utility>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import_trial.h"
#include "tests/fuzz/text_mutator.h"

namespace stepcast::fuzz {

namespace {

constexpr char kLayers[] =
    "node1 -- Input -- forward_compute_time=0.000, backward_compute_time=0.000, "
    "activation_size=0.0, parameter_size=0.000\n"
    "node2 -- Conv2d(3, 64) -- forward_compute_time=1.250, backward_compute_time=2.500, "
    "activation_size=100.0, parameter_size=92928.000\n"
    "node3 -- ReLU -- forward_compute_time=0.100, backward_compute_time=0.100, "
    "activation_size=100.0, parameter_size=0.000\n"
    "node4 -- Linear -- forward_compute_time=0.500, backward_compute_time=1.000, "
    "activation_size=10.0, parameter_size=4096.000\n"
    "\tnode1 -- node2\n\tnode2 -- node3\n\tnode3 -- node4\n\tnode2 -- node4\n";

constexpr char kTable[] =
    "# ms and bytes\nname;forward_ms;backward_ms;activation_bytes;parameter_bytes\n"
    "a;1.5;3;4096;1000\nb;0.5;1.25;0;2000\n";
constexpr char kSplitTable[] =
    "forward_ms,backward_input_ms,backward_weight_ms,kept_bytes,optimizer_ms\n1,1,1,9,0.5\n";
constexpr char kSailor[] =
    R"({"8": {"1": {"0": [0.001, 0, 0.01], "1": [0.002, 0.004, 0.01], "2": [0.003, 0.006, 0.02]}}})";
constexpr char kSailorSizes[] =
    R"({"hidden_size": 16, "sequence_length": 8, "num_layers": 1, "vocab_size": 100, "max_position_embeddings": 8})";
constexpr int kVaries = 1;
constexpr int kOfSailor = 2;

class LayerProfileTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    return {std::string(1, '\0') + kLayers, std::string(1, '\1') + kLayers,
            std::string(1, '\0') + kTable, std::string(1, '\1') + kSplitTable,
            std::string(1, '\2') + JoinedRecordings({kSailor, kSailorSizes})};
  }

  bool Run(std::string_view input) override {
    if (input.empty()) return false;
    LayerProfileOptions options{.model = "m",
                                .batch_size = 8,
                                .platform = {.bandwidth_bytes_per_second = 1e8},
                                .variation = {.own = 0, .steps = 3}};
    if ((input[0] & kVaries) != 0) options.variation.own = 0.2;
    ImportInput recording{.recording = input.substr(1)};
    const size_t between = recording.recording.find(kBetweenRecordings);
    if ((input[0] & kOfSailor) != 0 && between != std::string_view::npos) {
      recording.graph =
          recording.recording.substr(between + std::string_view(kBetweenRecordings).size());
      recording.recording = recording.recording.substr(0, between);
      recording.has_graph = true;
    }
    return TryImport({.format = options}, recording);
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    if (input.empty()) return mutation.bytes(std::move(input));
    return input[0] + MutateText(input.substr(1), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<LayerProfileTarget>(); }

}  // namespace stepcast::fuzz
