// An observer of answers that were computed for another call. For metrics.
#pragma once

#include <string_view>

namespace stepcast::server {

// From a call before, or from one under way.
enum class SharedFrom : unsigned char { kCache, kFlight };

class SharingObserver {
 public:
  virtual ~SharingObserver() = default;
  // `method` is one of kSimulatingMethods. Threads: called by any.
  virtual void OnShared(std::string_view method, SharedFrom from) = 0;
};

}  // namespace stepcast::server
