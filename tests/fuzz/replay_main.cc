// A target without a fuzzer: every seed, every file of its corpus, and mutations of them by a
// seeded generator.
//
// replay [--mutations N] FOLDER...   the files of the folders are inputs
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/fuzz/byte_mutator.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"

namespace stepcast::fuzz {

namespace {

constexpr uint64_t kMutations = 1000;  // unless told
constexpr size_t kMaxInputBytes = 4096;
constexpr size_t kMaxPool = 4096;  // inputs that are mutated

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  // A folder's order is anything; the mutations are to be the same each time.
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> contents;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    Demand(file.good(), "a corpus can be read:", path.string());
  }
  return contents;
}

// Counts what became of the inputs.
class Trials {
 public:
  explicit Trials(FuzzTarget& target) : target_(target) {}

  bool Run(const std::string& input) {
    const bool is_accepted = target_.Run(input);
    ++(is_accepted ? accepted_ : refused_);
    return is_accepted;
  }
  uint64_t accepted() const { return accepted_; }
  uint64_t refused() const { return refused_; }

 private:
  FuzzTarget& target_;
  uint64_t accepted_ = 0;
  uint64_t refused_ = 0;
};

// Those that are accepted are mutated further.
void RunMutations(const FuzzTarget& target, std::vector<std::string> inputs, uint64_t count,
                  Trials& trials) {
  for (uint64_t i = 0; i < count; ++i) {
    Random random({i});
    const auto mutate_bytes = [&](std::string bytes) {
      return MutateBytes(std::move(bytes), random);
    };
    std::string mutated =
        target.Mutate(inputs[random.Below(inputs.size())],
                      {.random = random, .max_bytes = kMaxInputBytes, .bytes = mutate_bytes});
    if (mutated.size() > kMaxInputBytes || !trials.Run(mutated)) continue;
    // Old ones make room once there are many.
    if (inputs.size() < kMaxPool) {
      inputs.push_back(std::move(mutated));
    } else {
      inputs[random.Below(inputs.size())] = std::move(mutated);
    }
  }
}

int Replay(FuzzTarget& target, const std::vector<std::string>& folders, uint64_t mutations) {
  std::vector<std::string> inputs = target.Seeds();
  const size_t seeds = inputs.size();
  Demand(seeds > 0, "a target has seeds");
  Trials trials(target);
  for (size_t i = 0; i < seeds; ++i)
    Demand(trials.Run(inputs[i]), "every seed is accepted:", std::to_string(i));
  for (const std::string& folder : folders) {
    for (std::string& content : FilesIn(folder)) {
      trials.Run(content);
      inputs.push_back(std::move(content));
    }
  }
  const size_t files = inputs.size() - seeds;
  RunMutations(target, std::move(inputs), mutations, trials);
  std::cout << seeds << " seeds, " << files << " files, " << mutations
            << " mutations: " << trials.accepted() << " accepted, " << trials.refused()
            << " refused\n";
  Demand(trials.accepted() > seeds, "some inputs beside the seeds are accepted");
  Demand(trials.refused() > 0, "some inputs are refused");
  return 0;
}

}  // namespace

}  // namespace stepcast::fuzz

int main(int argc, char** argv) {
  using namespace stepcast::fuzz;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  uint64_t mutations = kMutations;
  if (arguments.size() >= 2 && arguments[0] == "--mutations") {
    mutations = std::strtoull(arguments[1].c_str(), nullptr, 10);
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  // It would say of each broken text that it is broken.
  google::protobuf::SetLogHandler(nullptr);
  const std::unique_ptr<FuzzTarget> target = MakeFuzzTarget();
  return Replay(*target, arguments, mutations);
}
