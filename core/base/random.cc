#include "core/base/random.h"

#include <bit>

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

uint64_t Random::Next() {
  const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::Below(uint64_t bound) {
  using Product = unsigned __int128;
  Product product = static_cast<Product>(Next()) * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t threshold = -bound % bound;
    while (static_cast<uint64_t>(product) < threshold)
      product = static_cast<Product>(Next()) * bound;
  }
  return static_cast<uint64_t>(product >> 64);
}

double Random::Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

double Random::Normal() {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += Unit();
  return sum;
}

}  // namespace stepcast
