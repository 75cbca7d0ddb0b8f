// The generation of the profiles in a PostgreSQL database: a number that changes whenever a profile
// was deleted, by whichever process.
//
// A thread with a connection of its own is notified of deletions, and asks every second how many
// there have been, so that none is missed. For kTrustNs after a question that was answered the
// number stands still between deletions. While there is no answer, because the database is away,
// hangs or is cut off, no number is given twice, so nothing kept is trusted; the thread connects
// again by itself. Threads: safe. Cost: Current is two atomics and the clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/store/postgres_connection.h"

namespace stepcast::server {

class PostgresGeneration {
 public:
  static constexpr int64_t kTrustNs = 4'000'000'000;

  // The first question is answered when it returns. The clock is borrowed.
  static absl::StatusOr<std::unique_ptr<PostgresGeneration>> Follow(
      const PostgresConnectionOptions& options, const Clock& clock);
  ~PostgresGeneration();
  PostgresGeneration(const PostgresGeneration&) = delete;
  PostgresGeneration& operator=(const PostgresGeneration&) = delete;

  uint64_t Current() const;
  // After a deletion of this process's own, which so is known before it is notified of.
  void Change() { ++generation_; }
  // OK while the last question was answered less than kTrustNs ago; otherwise what it failed with.
  // Does not wait.
  absl::Status Check() const;

 private:
  PostgresGeneration(const PostgresConnectionOptions& options, const Clock& clock, int wake);

  void Run(std::unique_ptr<PostgresConnection> connection);
  absl::Status Connect(std::unique_ptr<PostgresConnection>& connection);
  absl::Status Ask(PostgresConnection& connection);
  void Distrust(const absl::Status& why);
  bool Trusted() const { return clock_.MonotonicNs() < trusted_until_ns_; }

  const PostgresConnectionOptions options_;
  const Clock& clock_;
  const int wake_;  // a descriptor that can be read once this is to end
  mutable std::atomic<uint64_t> generation_{0};
  std::atomic<int64_t> trusted_until_ns_;
  std::atomic<bool> ending_{false};
  int64_t deletions_ = -1;  // at the last answer; used by whoever asks
  mutable Mutex mutex_;
  absl::Status failed_ STEPCAST_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace stepcast::server
