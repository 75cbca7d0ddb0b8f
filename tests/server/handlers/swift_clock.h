// A clock on which every loop is long: a second goes by whenever it is asked, and the wall stands
// still.
#pragma once

#include <atomic>
#include <cstdint>

#include "server/base/clock.h"

namespace stepcast::server {

class SwiftClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return now_ns_ += kNsPerSecond; }
  int64_t WallNs() const override { return 0; }

 private:
  mutable std::atomic<int64_t> now_ns_{0};
};

}  // namespace stepcast::server
