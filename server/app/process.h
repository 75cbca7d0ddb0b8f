// Settings of the whole process: signals, and what the libraries inside do by themselves.
#pragma once

#include <cstdint>

namespace stepcast::server {

// The signals SIGTERM, SIGINT and SIGHUP, waited for instead of handled.
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

// Ends the search for lock cycles that Debian's Abseil does in every lock of gRPC. REQUIRES: before
// the first of them.
void StopLookingForLockCycles();

// Turns off the logs that the libraries inside would write to stderr by themselves, for the whole
// process: malformed requests would cost a line each, and the server's own log says what matters.
// GRPC_VERBOSITY in the environment turns gRPC's on again.
void SilenceLibraryLogs();

// Keeps one descriptor back for the moment at which there is no other. gRPC 1.51 closes its
// listening socket for good when accept(2) says so; instead the connection that there is no
// descriptor for is ended, and the next one may find one. For the whole process, before anything
// listens.
void KeepAccepting();

}  // namespace stepcast::server
