#include "server/app/process.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "absl/synchronization/mutex.h"

#include "server/base/clock.h"

namespace stepcast::server {

namespace {

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

sigset_t AllSignals() {
  sigset_t signals = StopSignals();
  sigaddset(&signals, SIGHUP);
  return signals;
}

// The number of the signal that came; 0: the time is over, or a debugger's stop interrupted the
// wait.
int Wait(const sigset_t& signals, double timeout_seconds) {
  int number = 0;
  if (timeout_seconds == 0) return sigwait(&signals, &number) == 0 ? number : 0;
  timespec timeout{};
  double seconds = 0;
  timeout.tv_nsec = static_cast<long>(std::modf(timeout_seconds, &seconds) * kNsPerSecond);
  timeout.tv_sec = static_cast<time_t>(seconds);
  number = sigtimedwait(&signals, nullptr, &timeout);
  return number > 0 ? number : 0;
}

void EndAtTheNext() {
  constexpr int kSignalStatus = 128;
  std::thread([] {
    int number = 0;
    while (number == 0) number = Wait(StopSignals(), 0);
    _exit(kSignalStatus + number);
  }).detach();
}

}  // namespace

void BlockSignals() {
  const sigset_t signals = AllSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Signal WaitForSignal(double timeout_seconds) {
  switch (Wait(AllSignals(), timeout_seconds)) {
    case 0:
      return Signal::kNone;
    case SIGHUP:
      return Signal::kReload;
    default:
      EndAtTheNext();
      return Signal::kStop;
  }
}

void StopLookingForLockCycles() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

void SilenceLibraryLogs() {
  google::protobuf::SetLogHandler(nullptr);
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace stepcast::server
