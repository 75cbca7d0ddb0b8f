#include "tests/fuzz/seed_files.h"

#include <fstream>

#include "tests/fuzz/demand.h"

namespace stepcast::fuzz {

void WriteSeeds(const FuzzTarget& target, const std::string& folder) {
  int number = 0;
  for (const std::string& seed : target.Seeds()) {
    std::ofstream file(folder + "/seed-" + std::to_string(number++), std::ios::binary);
    file << seed << std::flush;
    Demand(file.good(), "seeds can be written:", folder);
  }
}

}  // namespace stepcast::fuzz
