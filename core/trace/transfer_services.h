// How a transfer is cut into services, in bytes: what StepGraph's TransferWork is in time.
#pragma once

#include <cstdint>

#include "core/model/scenario.h"

namespace stepcast {

struct TransferServices {
  int64_t first = 0;  // the whole, where there is but one service
  int64_t turn = 0;   // each service between the first and the last
  int64_t last = 0;   // where there are several
  int32_t count = 1;

  // REQUIRES: 0 <= service < count.
  int64_t BytesOf(int32_t service) const {
    return service == 0 ? first : service + 1 < count ? turn : last;
  }
};

// REQUIRES: scenario is resolved.
TransferServices ServicesOf(int64_t size_bytes, const Scenario& scenario);

}  // namespace stepcast
