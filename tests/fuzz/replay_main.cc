// A target without a fuzzer: every seed, every file of its corpus, and mutations of them by a seeded generator.
//
// replay [--mutations N] FOLDER...   the files of the folders are inputs
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/fuzz/byte_mutator.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"

namespace stepcast::fuzz {

namespace {

constexpr uint64_t kMutations = 2000;  // unless told
constexpr size_t kMaxBytes = 4096;

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

int Replay(FuzzTarget& target, const std::vector<std::string>& folders, uint64_t mutations) {
  std::vector<std::string> inputs = target.Seeds();
  Demand(!inputs.empty(), "a target has seeds");
  for (size_t i = 0; i < inputs.size(); ++i) Demand(target.Run(inputs[i]), "every seed is accepted:", std::to_string(i));
  const size_t seeds = inputs.size();
  uint64_t accepted = seeds;
  for (const std::string& folder : folders) {
    for (std::string& content : FilesIn(folder)) {
      accepted += target.Run(content) ? 1 : 0;
      inputs.push_back(std::move(content));
    }
  }
  for (uint64_t i = 0; i < mutations; ++i) {
    Random random({i});
    const std::string mutated =
        target.Mutate(inputs[random.Below(inputs.size())],
                      {.random = random, .max_bytes = kMaxBytes, .bytes = [&](std::string bytes) { return MutateBytes(std::move(bytes), random); }});
    accepted += target.Run(mutated) ? 1 : 0;
  }
  const uint64_t runs = inputs.size() + mutations;
  std::printf("%zu seeds, %zu files, %llu mutations: %llu accepted, %llu refused\n", seeds, inputs.size() - seeds,
              static_cast<unsigned long long>(mutations), static_cast<unsigned long long>(accepted),
              static_cast<unsigned long long>(runs - accepted));
  Demand(accepted > seeds, "some inputs beside the seeds are accepted");
  Demand(accepted < runs, "some inputs are refused");
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
