#include "server/app/process.h"

#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
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

namespace {

// The descriptor that is kept back; -1: none is.
std::atomic<int> spare_descriptor{-1};

void KeepSpare() {
  const int opened = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int none = -1;
  // One of two threads that do the same keeps its own.
  if (opened >= 0 && !spare_descriptor.compare_exchange_strong(none, opened)) close(opened);
}

// Ends the connection that waits the longest. False: the spare descriptor is in use.
bool EndOneConnection(int listener) {
  const int spare = spare_descriptor.exchange(-1);
  if (spare < 0) return false;
  close(spare);
  const auto connection = static_cast<int>(syscall(SYS_accept4, listener, nullptr, nullptr, 0));
  if (connection >= 0) close(connection);
  KeepSpare();
  return connection >= 0;
}

}  // namespace

void KeepAccepting() { KeepSpare(); }

}  // namespace stepcast::server

// In place of the C library's, for all of the process: the same, but where there is no descriptor.
extern "C" int accept4(int listener, sockaddr* address, socklen_t* size, int flags) {
  using namespace stepcast::server;
  constexpr std::chrono::milliseconds kPause{10};
  while (true) {
    const auto accepted = static_cast<int>(syscall(SYS_accept4, listener, address, size, flags));
    if (accepted >= 0 || (errno != EMFILE && errno != ENFILE)) return accepted;
    if (EndOneConnection(listener)) continue;
    // Whoever polls comes at once again.
    std::this_thread::sleep_for(kPause);
    KeepSpare();
    errno = EAGAIN;
    return -1;
  }
}
