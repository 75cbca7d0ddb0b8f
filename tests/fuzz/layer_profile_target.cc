// ImportProfile of a layer profile's text: the first byte says whether its times vary.
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

class LayerProfileTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    return {std::string(1, '\0') + kLayers, std::string(1, '\1') + kLayers};
  }

  bool Run(std::string_view input) override {
    if (input.empty()) return false;
    LayerProfileOptions options{.model = "m",
                                .batch_size = 8,
                                .platform = {.bandwidth_bytes_per_second = 1e8},
                                .variation = {.own = 0, .steps = 3}};
    if (input[0] % 2 != 0) options.variation.own = 0.2;
    return TryImport({.format = options}, {.recording = input.substr(1)});
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    if (input.empty()) return mutation.bytes(std::move(input));
    return input[0] + MutateText(input.substr(1), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<LayerProfileTarget>(); }

}  // namespace stepcast::fuzz
