// The way of tensors to and from parameter servers: the servers that parameters are on, the parts
// in which their tensors travel there, and the services in which a connection sends them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/bandwidth.h"
#include "core/base/index.h"
#include "core/engine/program.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

// The server of each operation that is not WORKER, part by part.
//
// On the recorded number of servers: as recorded. On another: each parameter goes, in graph order
// of its first operation that is not WORKER, to the server with the fewest bytes so far, the lowest
// index among equals (ICPE 2020, section 5, Fig. 23); of all-reduced gradients from the last to the
// first. A parameter's bytes are those of its downloads, or of its uploads if it has none. A
// parameter with a transfer of more than `partition_bytes`, if that is not 0, is cut in parts of so
// much, the last of them smaller (BytePS), each of which goes to the server with the fewest bytes
// by itself; on the recorded number of servers beside all that is whole. A transfer is cut by its
// own size, what a server computes by the parameter's largest transfer.
//
// Threads: immutable. Cost: linear in the profile's size and the number of parts.
class Placement {
 public:
  // REQUIRES: servers >= 1; on another number than recorded every transfer and PARAMETER_SERVER
  // operation names its parameter.
  Placement(const Profile& profile, int32_t servers, int64_t partition_bytes);

  // Parts of an operation: of a WORKER one.
  int32_t PartsOf(int32_t operation) const;
  // REQUIRES: part < PartsOf(operation). 0 for WORKER operations.
  int32_t ServerOf(int32_t operation, int32_t part) const;
  // The begin of a part in a tensor of so many bytes, or the end of the last one.
  int64_t BeginOf(int32_t part, int64_t bytes) const {
    return partition_bytes_ == 0 ? part * bytes : std::min(part * partition_bytes_, bytes);
  }
  // Bytes of the parameter's largest transfer.
  int64_t LargestOf(int32_t operation) const {
    return tensors_[Index(tensor_of_[Index(operation)])].largest;
  }

 private:
  struct Tensor {
    int64_t down = 0;
    int64_t up = 0;
    int64_t largest = 0;
    int32_t recorded = 0;  // the first operation's server
    bool is_named = false;
    std::vector<int32_t> servers;  // by part
  };

  int32_t CountOf(int64_t bytes) const {
    if (partition_bytes_ == 0 || bytes <= partition_bytes_) return 1;
    return static_cast<int32_t>((bytes - 1) / partition_bytes_ + 1);
  }
  void FindTensors();
  void PlaceAll(int32_t servers);

  const std::vector<Operation>& operations_;
  const bool backwards_;    // the last gradient's parameter is the first that is downloaded
  const bool as_recorded_;  // the number of servers
  const int64_t partition_bytes_;
  std::vector<Tensor> tensors_;     // in graph order
  std::vector<int32_t> tensor_of_;  // by operation; -1: WORKER
};

// A transfer as its stream's window cuts it, in bytes: ICPE 2020, 3.2.2. A stream no larger than
// the window is one service; what is left of another goes in one more, or in turns of the quantum.
struct StreamServices {
  int64_t first = 0;   // the whole, where there is but one service
  int64_t middle = 0;  // each service between the first and the last
  int64_t last = 0;    // the last service, of several
  int32_t count = 1;

  // `quantum_bytes` 0: all that is left in one. REQUIRES: size_bytes > 0.
  static StreamServices Whole(int64_t size_bytes) { return {.first = size_bytes}; }
  static StreamServices Windowed(int64_t size_bytes, int64_t window_bytes, int64_t quantum_bytes);
  static StreamServices Of(int64_t size_bytes, const Multiplexing& multiplexing);
  // Empty where no stream to a server carries it, but a collective's message.
  static std::optional<StreamServices> Of(int64_t size_bytes, const Scenario& scenario);

  // REQUIRES: 0 <= service < count.
  int64_t BytesOf(int32_t service) const {
    return service == 0 ? first : service + 1 < count ? middle : last;
  }
  TransferWork WorkOn(const Bandwidth& link) const;
};

}  // namespace stepcast
