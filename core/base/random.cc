#include "core/base/random.h"

namespace stepcast {

namespace {

uint64_t SplitMix64(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(std::initializer_list<uint64_t> keys) : state_{} {
  uint64_t mixed = 0;
  for (const uint64_t key : keys) {
    mixed ^= key;
    mixed = SplitMix64(mixed);
  }
  for (uint64_t& word : state_) word = SplitMix64(mixed);
}

double Random::Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

double Random::Normal() {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += Unit();
  return sum;
}

}  // namespace stepcast
