// The services in which a connection sends a stream.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/bandwidth.h"
#include "core/engine/program.h"
#include "core/model/scenario.h"

namespace stepcast {

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
