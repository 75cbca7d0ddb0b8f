// The deadlock detection of Abseil's mutexes.
#pragma once

namespace stepcast::server {

// Ends the search for lock cycles that Debian's Abseil does in every lock of gRPC. REQUIRES: before
// the first of them.
void StopLookingForLockCycles();

}  // namespace stepcast::server
