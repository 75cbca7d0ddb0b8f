// The signals SIGTERM, SIGINT and SIGHUP, waited for instead of handled.
#pragma once

#include <cstdint>

namespace stepcast::server {

enum class Signal : uint8_t {
  kStop,    // SIGTERM or SIGINT
  kReload,  // SIGHUP
  kNone     // none came in time
};

// Blocks all three in this thread and those it starts. To be called before any thread is started.
void BlockSignals();

// Waits for one of them, at most so long; 0: for ever.
// From kStop on the next SIGTERM or SIGINT ends the process at once, with status 128 + its number,
// and SIGHUP does nothing.
Signal WaitForSignal(double timeout_seconds);

}  // namespace stepcast::server
