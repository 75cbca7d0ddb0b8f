// Profiles whose answers can be told by hand or by another evaluation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/profile.h"
#include "tests/core/orders/golden_case.h"

namespace stepcast::testing {

// At 1e9 bytes per second a byte takes a nanosecond.
inline constexpr double kNanosecondPerByte = 1e9;

struct ExampleOperation {
  std::string name;
  Resource resource = Resource::kWorker;
  int64_t time_ns = 0;  // of a transfer: its size
  std::vector<int32_t> waiting_for;
  int32_t parameter_server = 0;
};

// One recorded step in which transfers took the time of their size. Batch size 1, whole streams, no
// parsing overhead.
ProfileDraft DraftOf(const std::vector<ExampleOperation>& operations);

// Each transfer of as many bytes as it takes nanoseconds at kNanosecondPerByte.
Profile ProfileOf(const GoldenOrderCase& golden);

struct NetworkShape {
  int32_t layers = 8;
  int32_t servers = 1;
  int32_t steps = 1;                // with more, the computations of each take times of their own
  bool training = true;             // backward operations, uploads and updates too
  bool downloads_reversed = false;  // in graph order, the last layer's download is the first
};

// Random times and sizes, layers in a chain. Names: "recv", "forward", "backward", "send", "update"
// and the layer's number.
Profile NetworkProfile(uint64_t seed, const NetworkShape& shape);

// A download of `bytes`, then a computation; nothing else.
Profile DownloadThenCompute(int64_t bytes, int64_t computation_ns);

}  // namespace stepcast::testing
