// ImportProfile of the traces of PyTorch's profiler of several ranks of one job.
//
// An input is the traces, a record separator (0x1e) between them; what their events have in common
// is a byte each, so that whole jobs are within what is mutated.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "tests/core/importing/rank_traces.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import_trial.h"
#include "tests/fuzz/json_mutator.h"

namespace stepcast::fuzz {

namespace {

constexpr char kBetween = 0x1e;
// A text and the byte that stands for it, which JSON has nowhere: the longer ones first.
constexpr std::array<std::pair<const char*, const char*>, 8> kShort = {
    {{",\n{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"", "\x01"},
     {",\n{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"", "\x02"},
     {"\", \"pid\": 1, \"tid\": 2, \"ts\": ", "\x03"},
     {"autograd::engine::evaluate_function: ", "\x04"},
     {"torch::autograd::AccumulateGrad", "\x05"},
     {", \"args\": {}}", "\x06"},
     {"], []], \"Input type\": [\"float\", \"Scalar\"]}}", "\x07"},
     {"\"Input Dims\": [[", "\x0e"}}};

std::string Shortened(std::string text) {
  for (const auto& [long_text, byte] : kShort) absl::StrReplaceAll({{long_text, byte}}, &text);
  return text;
}

std::string Expanded(std::string_view text) {
  std::string expanded(text);
  for (const auto& [long_text, byte] : kShort) absl::StrReplaceAll({{byte, long_text}}, &expanded);
  return expanded;
}

std::vector<std::string> TracesOf(std::string_view input) {
  return absl::StrSplit(Expanded(input), kBetween);
}
std::string InputOf(const std::vector<std::string>& traces) {
  return Shortened(absl::StrJoin(traces, std::string(1, kBetween)));
}

class PyTorchRanksTarget final : public FuzzTarget {
 public:
  // Of two and three ranks, with clocks apart, and one that is slower.
  std::vector<std::string> Seeds() const override {
    std::vector<std::string> seeds;
    for (int seed = 0; seed < 8; ++seed) {
      testing::RankTracesForm form{.ranks = seed == 7 ? 3 : 2,
                                   .steps = seed % 2 == 0 ? 3 : 4,
                                   .elements = {100},
                                   .buckets = {1},
                                   .broadcasts = seed == 3,
                                   .straggler = seed % 3 == 0 ? 2.0 : 1.0,
                                   .clock_offsets_ns = {0, 7'000'000 * (seed - 2), 5'000},
                                   .seed = static_cast<uint64_t>(seed)};
      if (seed == 2)
        form = {
            .ranks = 2, .steps = 3, .elements = {100, 7}, .buckets = {1, 1}, .broadcasts = false};
      seeds.push_back(InputOf(testing::WriteRankTraces(form).texts));
    }
    return seeds;
  }

  bool Run(std::string_view input) override {
    const std::vector<std::string> traces = TracesOf(input);
    return TryImport({.format = PyTorchTraceOptions{.recording = TrialOptions()}},
                     {.recording = traces.front(), .recordings = {traces.begin(), traces.end()}});
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    std::vector<std::string> traces = TracesOf(input);
    std::string& trace = traces[mutation.random.Below(traces.size())];
    switch (mutation.random.Below(16)) {
      case 0:
        return mutation.bytes(std::move(input));
      case 1:
        trace = traces[mutation.random.Below(traces.size())];
        break;
      case 2:
        std::swap(trace, traces.front());
        break;
      default:
        trace = MutateJson(std::move(trace), mutation);
    }
    return InputOf(traces);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<PyTorchRanksTarget>(); }

}  // namespace stepcast::fuzz
