// A random number generator whose output is the same on every platform and never changes.
//
// Algorithm: xoshiro256++ 1.0 (Blackman and Vigna, "Scrambled linear pseudorandom number
// generators", ACM TOMS 2021), state filled by SplitMix64. The std:: distributions differ between
// libraries and are not used. Threads: none. A generator belongs to one worker of one run.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>

namespace stepcast {

class Random {
 public:
  // A stream of its own for each list of keys, for instance {seed, replication, worker, purpose}.
  explicit Random(std::initializer_list<uint64_t> keys) : state_{} {
    uint64_t mixed = 0;
    for (const uint64_t key : keys) {
      mixed ^= key;
      mixed = SplitMix64(mixed);
    }
    for (uint64_t& word : state_) word = SplitMix64(mixed);
  }

  uint64_t Next() {
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
  // Uniform in [0, bound), without bias (Lemire, "Fast random integer generation in an interval",
  // 2019). REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound) {
    using Product = unsigned __int128;
    Product product = static_cast<Product>(Next()) * bound;
    if (static_cast<uint64_t>(product) < bound) {
      const uint64_t threshold = -bound % bound;
      while (static_cast<uint64_t>(product) < threshold)
        product = static_cast<Product>(Next()) * bound;
    }
    return static_cast<uint64_t>(product >> 64);
  }
  // Uniform in [0, 1), a multiple of 2^-53.
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  // Normal with mean 0 and variance 1 (sum of twelve uniforms, so within +-6: no library function
  // whose last bit may differ).
  double Normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Unit();
    return sum;
  }

 private:
  static uint64_t SplitMix64(uint64_t& state) {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::array<uint64_t, 4> state_;
};

}  // namespace stepcast
