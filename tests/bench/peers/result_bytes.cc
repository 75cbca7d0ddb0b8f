#include "tests/bench/peers/result_bytes.h"

#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

namespace stepcast::bench {

std::string ToBytes(const PeerResult& result) {
  std::string bytes(sizeof result.cost, '\0');
  std::memcpy(bytes.data(), &result.cost, sizeof result.cost);
  for (const std::vector<double>& ends : result.step_ends) {
    const size_t count = ends.size();
    bytes.append(std::string_view(reinterpret_cast<const char*>(&count), sizeof count));
    bytes.append(
        std::string_view(reinterpret_cast<const char*>(ends.data()), count * sizeof(double)));
  }
  return bytes;
}

PeerResult FromBytes(const std::string& bytes) {
  PeerResult result;
  std::memcpy(&result.cost, bytes.data(), sizeof result.cost);
  for (size_t at = sizeof result.cost; at < bytes.size();) {
    size_t count = 0;
    std::memcpy(&count, &bytes[at], sizeof count);
    at += sizeof count;
    std::vector<double>& ends = result.step_ends.emplace_back(count);
    if (count > 0) std::memcpy(ends.data(), bytes.data() + at, count * sizeof(double));
    at += count * sizeof(double);
  }
  return result;
}

}  // namespace stepcast::bench
