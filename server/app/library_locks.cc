#include "server/app/library_locks.h"

#include "absl/synchronization/mutex.h"

namespace stepcast::server {

void StopLookingForLockCycles() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace stepcast::server
