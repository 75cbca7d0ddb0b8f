// ImportProfile of the JSON of PyTorch's profiler.
#include <string>
#include <utility>

#include "tests/core/importing/pytorch_writer.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import_trial.h"
#include "tests/fuzz/json_mutator.h"

namespace stepcast::fuzz {

namespace {

class PyTorchTarget final : public FuzzTarget {
 public:
  // Small ones of every kind: of a host or a GPU, of one worker or several, of then and now.
  std::vector<std::string> Seeds() const override {
    constexpr uint64_t kSeeds = 16;
    std::vector<std::string> seeds;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      testing::PyTorchForm form = testing::RandomPyTorchForm(seed);
      form.steps = 3;
      form.layers = 1;
      form.elements.resize(seed % 2 == 0 ? 1 : 2, 300'000);
      seeds.push_back(testing::WritePyTorchTrace(form).text);
    }
    return seeds;
  }

  bool Run(std::string_view input) override {
    return TryImport({.format = PyTorchTraceOptions{.recording = TrialOptions()}},
                     {.recording = input});
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateJson(std::move(input), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<PyTorchTarget>(); }

}  // namespace stepcast::fuzz
