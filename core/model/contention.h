// The contention of computation and communication for a GPU's threads and memory, as LIBRA models
// it: a collective that runs with more threads moves its bytes faster and slows the computation
// beside it more.
//
// Sources: Liu et al., "LIBRA", INFOCOM 2023, Eq. 5-7; NCCL 2.30.7, src/graph/tuning.cc (threads).
// Threads: values and pure functions.
#pragma once

#include <cmath>
#include <cstdint>

namespace stepcast {

// The rate of a ring's transfers with r threads: gamma1 - gamma2 exp(-gamma3 r^gamma4) bytes per
// second (Eq. 6).
struct TransferRate {
  double gamma1 = 0;
  double gamma2 = 0;
  double gamma3 = 0;

  friend bool operator==(const TransferRate&, const TransferRate&) = default;
};

// Checked: with every number of threads that is asked about, rates are those of a link, and
// computation has a speed above 0 and at most 1.
struct Contention {
  double alpha1 = 1;
  double alpha2 = 0;
  TransferRate overlapped;  // while some worker computes (p)
  TransferRate alone;       // while none does (q)
  double gamma4 = 0.6;

  friend bool operator==(const Contention&, const Contention&) = default;
};

// The speed of computation beside a collective with so many threads, of what it is without one
// (1/g of Eq. 5).
inline double ComputationSpeed(const Contention& contention, int32_t threads) {
  return contention.alpha1 - contention.alpha2 * threads;
}

// Bytes per second with so many threads.
inline double BytesPerSecond(const TransferRate& rate, double gamma4, int32_t threads) {
  return rate.gamma1 - rate.gamma2 * std::exp(-rate.gamma3 * std::pow(threads, gamma4));
}

// Channels of NCCL where nobody says how many.
inline constexpr int32_t kNcclChannels = 2;

// The threads that NCCL gives to a collective of so many bytes, over all of its channels, protocol
// Simple: as many channels as have 64 bytes for each of 512 threads, one at least, whose threads
// are then halved down to 64, and a warp besides. No fewer for more bytes.
inline int32_t NcclThreads(double bytes, int32_t channels) {
  constexpr int32_t kThreads = 512;
  constexpr int32_t kLeastThreads = 64;
  constexpr int32_t kWarp = 32;
  constexpr double kBytesOfThread = 64;
  int32_t threads = kThreads;
  const auto are_too_many = [&] { return bytes < kBytesOfThread * channels * threads; };
  while (channels > 1 && are_too_many()) --channels;
  while (threads > kLeastThreads && are_too_many()) threads /= 2;
  return channels * (threads + kWarp);
}

}  // namespace stepcast
