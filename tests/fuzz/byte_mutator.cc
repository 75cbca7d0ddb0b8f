#include "tests/fuzz/byte_mutator.h"

#include <algorithm>
#include <cstddef>

namespace stepcast::fuzz {

std::string MutateBytes(std::string bytes, Random& random) {
  const auto byte = [&] { return static_cast<char>(random.Below(256)); };
  if (bytes.empty()) return std::string(1, byte());
  const auto at = [&] { return static_cast<size_t>(random.Below(bytes.size())); };
  switch (random.Below(7)) {
    case 0:
      bytes.resize(at());
      break;
    case 1:
      for (uint64_t count = 1 + random.Below(4); count > 0; --count)
        bytes[at()] ^= static_cast<char>(1 << random.Below(8));
      break;
    case 2:
      for (uint64_t count = 1 + random.Below(8); count > 0; --count) bytes[at()] = byte();
      break;
    case 3:
      bytes.erase(at(), 1 + random.Below(40));
      break;
    case 4:
      bytes.insert(at(), std::string(bytes, at(), 1 + random.Below(80)));
      break;
    case 5:
      std::rotate(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at()), bytes.end());
      break;
    default:
      for (uint64_t count = 1 + random.Below(4); count > 0; --count) bytes.insert(at(), 1, byte());
      break;
  }
  return bytes;
}

}  // namespace stepcast::fuzz
