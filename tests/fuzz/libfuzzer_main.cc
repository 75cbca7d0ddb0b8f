// A target as libFuzzer drives it; `--write-seeds FOLDER` instead writes the target's seeds, for
// libFuzzer to begin with.
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/seed_files.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed);

namespace stepcast::fuzz {

namespace {

// A prediction, the dearest of the inputs, takes some 8 ms with the sanitizers.
constexpr double kMaxProcessorSeconds = 10;

FuzzTarget& Target() {
  static const std::unique_ptr<FuzzTarget> kTarget = [] {
    // It would say of each broken text that it is broken.
    google::protobuf::SetLogHandler(nullptr);
    return MakeFuzzTarget();
  }();
  return *kTarget;
}

std::string_view TextOf(const uint8_t* data, size_t size) {
  return {static_cast<const char*>(static_cast<const void*>(data)), size};
}

// With what libFuzzer has learnt, dictionaries included.
std::string MutateAsLibFuzzer(std::string bytes) {
  constexpr size_t kGrowth = 64;
  const size_t size = bytes.size();
  bytes.resize(size + kGrowth);
  bytes.resize(LLVMFuzzerMutate(static_cast<uint8_t*>(static_cast<void*>(bytes.data())), size,
                                bytes.size()));
  return bytes;
}

}  // namespace

}  // namespace stepcast::fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace stepcast::fuzz;
  if (*argc == 3 && std::string_view((*argv)[1]) == "--write-seeds") {
    WriteSeeds(Target(), (*argv)[2]);
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stepcast::fuzz;
  const std::clock_t begin = std::clock();
  Target().Run(TextOf(data, size));
  Demand(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC <= kMaxProcessorSeconds,
         "an input takes a bounded time");
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  using namespace stepcast::fuzz;
  stepcast::Random random({seed});
  const std::string mutated =
      Target().Mutate(std::string(TextOf(data, size)),
                      {.random = random, .max_bytes = max_size, .bytes = MutateAsLibFuzzer});
  if (mutated.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  mutated.copy(static_cast<char*>(static_cast<void*>(data)), mutated.size());
  return mutated.size();
}
