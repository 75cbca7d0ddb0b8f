// The time of a backward pass beside the all-reduces of its gradients, which contend with it, by
// LIBRA's model.
//
// Layers are in the order in which the backward pass computes them. A group is of consecutive
// layers, whose gradients one ring all-reduce carries: it begins when the last of them that has
// parameters is computed and the all-reduce before it has ended. Of c bytes on N workers with
// latency L and r threads it takes a + c^ / rate(r), a = 2 (N - 1) L, c^ = 2 (N - 1) / N c, at one
// rate while the worker computes (p) and another while it does not (q); beside it computation
// advances at the speed 1/g(r).
// Source: Liu et al., "LIBRA", INFOCOM 2023, Eq. 3-15. Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/all_reduce.h"

namespace stepcast {

struct BackwardLayer {
  double seconds = 0;  // of its backward computation, beside no all-reduce
  int64_t bytes = 0;   // of its gradients; 0: it has no parameters

  friend bool operator==(const BackwardLayer&, const BackwardLayer&) = default;
};

struct TensorGroup {
  int32_t first = 0;  // layer, in backward order
  int32_t count = 0;
  int32_t threads = 0;

  friend bool operator==(const TensorGroup&, const TensorGroup&) = default;
};

struct OverlapSetting {
  int32_t workers = 1;  // of one all-reduce; 1: it takes no time
  double latency_seconds = 0;
  Contention contention;
};

// Computation at its own speed, and so many bytes per second whatever the threads.
Contention WithoutContention(double bytes_per_second);

struct OverlapLimits {
  int32_t max_workers = 1'000'000;
  double max_latency_seconds = 10;
  int32_t max_layers = 1'000'000;
  double max_layer_seconds = 1e6;
  int64_t max_layer_bytes = 1'000'000'000'000'000;
  int32_t max_thread_choices = 64;
};

// A fault where a constant is not a number or alpha2 is below 0 (`contention.alpha1`, ...), a
// number of threads is below 1 (`threads[i]`), or one of them brings computation
// (`contention.alpha2`) or transfers (`contention.overlapped`, `contention.alone`) to a halt.
void CheckContention(const Contention& contention, std::span<const int32_t> threads,
                     FaultList& faults, const OverlapLimits& limits = {});
// The same of the whole setting: `workers`, `latency_seconds`.
void CheckSetting(const OverlapSetting& setting, std::span<const int32_t> threads,
                  FaultList& faults, const OverlapLimits& limits = {});
// `layers`, `layers[i].seconds`, `layers[i].bytes`.
void CheckLayers(std::span<const BackwardLayer> layers, FaultList& faults,
                 const OverlapLimits& limits = {});
// `groups`, `groups[i].first`, `groups[i].count`: groups must part so many layers, in order. Their
// threads are CheckContention's.
void CheckGroups(std::span<const TensorGroup> groups, size_t layers, FaultList& faults);

// The assumptions under which LIBRA's strategies are as near to the best as they claim to be. That
// all layers contend alike (A1) is the model's.
struct OverlapAssumptions {
  bool computation_not_faster = true;  // beside an all-reduce: else the bound's base is too small
  bool transfer_not_faster = true;     // A2: p >= q
  bool overlap_not_longer = true;      // A3, of all-reduces of any size: than one after the other
  std::string why;                     // of those that fail, in plain English; else empty

  bool Hold() const { return computation_not_faster && transfer_not_faster && overlap_not_longer; }
};
// REQUIRES: CheckContention finds no fault.
OverlapAssumptions CheckAssumptions(const Contention& contention, std::span<const int32_t> threads);

// The cost of an all-reduce with so many threads, by bytes of gradients.
struct CollectiveRates {
  int32_t threads = 0;
  double startup_seconds = 0;              // a
  double overlapped_seconds_per_byte = 0;  // of p
  double alone_seconds_per_byte = 0;       // of q
  double computation_speed = 1;            // 1/g

  double OverlappedSeconds(double bytes) const {
    return bytes > 0 ? startup_seconds + bytes * overlapped_seconds_per_byte : 0;
  }
  double AloneSeconds(double bytes) const {
    return bytes > 0 ? startup_seconds + bytes * alone_seconds_per_byte : 0;
  }
};
// REQUIRES: CheckSetting finds no fault.
CollectiveRates RatesOf(const OverlapSetting& setting, int32_t threads);

// The parts of a time, one after the other; computation or communication alone is 0.
struct OverlapStage {
  double overlapped = 0;     // t_o
  double computation = 0;    // t_b
  double communication = 0;  // t_c

  double Seconds() const { return overlapped + computation + communication; }
};
// An all-reduce that begins together with so much computation (Eq. 8-11).
OverlapStage OverlapOf(const CollectiveRates& rates, double bytes, double computation_seconds);

struct BackwardTime {
  double seconds = 0;
  // The computation before the first all-reduce, then from the begin of each to that of the next.
  std::vector<OverlapStage> stages;

  double Exposed() const;  // seconds of communication alone
};
// Eq. 12-15. Linear in the layers. REQUIRES: none of the checks finds a fault.
BackwardTime BackwardTimeOf(std::span<const BackwardLayer> layers,
                            std::span<const TensorGroup> groups, const OverlapSetting& setting);

}  // namespace stepcast
