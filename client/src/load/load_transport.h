// A carrier of the calls of a load to a server, many at a time.
//
// Calls are named by small numbers, which are used again. Questions are named by numbers, too: what
// they ask, the transport knows.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace stepcast::client {

class LoadTransport {
 public:
  // Hears how calls end, on any thread, one at a time.
  class Listener {
   public:
    virtual ~Listener() = default;
    // May start calls, this one too.
    virtual void OnEnded(uint32_t call, absl::StatusCode code) = 0;
  };

  virtual ~LoadTransport() = default;

  // The most calls that may be under way at once.
  virtual uint32_t calls_max() const = 0;
  // Begins a call and does not wait. The listener hears of its end once, after a deadline of the
  // transport's at the latest. REQUIRES: call < calls_max(), and it is not under way; of all calls
  // under way the listener is the same, and outlives them.
  virtual void Start(uint32_t call, uint64_t question, Listener& listener) = 0;
  // Returns when no call is under way.
  virtual void AwaitAll() = 0;
};

}  // namespace stepcast::client
