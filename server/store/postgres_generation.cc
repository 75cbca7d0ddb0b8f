#include "server/store/postgres_generation.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <utility>

#include "server/store/store_error.h"

namespace stepcast::server {

namespace {

constexpr auto kBetweenQuestions = std::chrono::seconds(1);
constexpr int kBetweenConnectionsMs = 200;
// A question is small; one that takes longer finds the trust gone anyway.
constexpr int kQuestionTimeoutMs = 2000;
constexpr int kConnectTimeoutSeconds = 3;
constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresGeneration>> PostgresGeneration::Follow(
    const PostgresConnectionOptions& options, const Clock& clock) {
  const int wake = eventfd(0, EFD_CLOEXEC);
  if (wake < 0) return StoreUnavailable("the system gives no descriptor for a thread to wait on");
  std::unique_ptr<PostgresGeneration> generation(new PostgresGeneration(options, clock, wake));
  std::unique_ptr<PostgresConnection> connection;
  if (absl::Status status = generation->Connect(connection); !status.ok()) return status;
  if (absl::Status status = generation->Ask(*connection); !status.ok()) return status;
  PostgresGeneration& started = *generation;
  generation->thread_ = std::thread(
      [&started, first = std::move(connection)]() mutable { started.Run(std::move(first)); });
  return generation;
}

PostgresGeneration::PostgresGeneration(const PostgresConnectionOptions& options, const Clock& clock,
                                       int wake)
    : options_({.conninfo = options.conninfo,
                .connect_timeout_seconds = kConnectTimeoutSeconds,
                .statement_timeout_ms = kQuestionTimeoutMs}),
      clock_(clock),
      wake_(wake),
      trusted_until_ns_(kNever) {}

PostgresGeneration::~PostgresGeneration() {
  ending_ = true;
  eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
  close(wake_);
}

uint64_t PostgresGeneration::Current() const {
  return Trusted() ? generation_.load() : ++generation_;
}

absl::Status PostgresGeneration::Check() const {
  if (Trusted()) return absl::OkStatus();
  MutexLock lock(mutex_);
  return failed_.ok() ? StoreUnavailable("the database has not answered for too long") : failed_;
}

void PostgresGeneration::Run(std::unique_ptr<PostgresConnection> connection) {
  while (!ending_) {
    absl::Status status = connection == nullptr
                              ? Connect(connection)
                              : connection->AwaitNotification(kBetweenQuestions, wake_).status();
    if (status.ok()) status = Ask(*connection);
    if (status.ok()) continue;
    Distrust(status);
    connection = nullptr;
    pollfd wake{.fd = wake_, .events = POLLIN, .revents = 0};
    poll(&wake, 1, kBetweenConnectionsMs);
  }
}

absl::Status PostgresGeneration::Connect(std::unique_ptr<PostgresConnection>& connection) {
  absl::StatusOr<std::unique_ptr<PostgresConnection>> made = PostgresConnection::Open(options_);
  if (!made.ok()) return made.status();
  connection = *std::move(made);
  return connection->Script("LISTEN stepcast_profile_removed");
}

// Asks for the generation. What was committed before the question is in its answer, so until it is
// asked again only what is notified of can be missed, and not for long.
absl::Status PostgresGeneration::Ask(PostgresConnection& connection) {
  const int64_t asked_ns = clock_.MonotonicNs();
  const absl::StatusOr<PostgresResult> answer =
      connection.Run("SELECT deletions FROM stepcast_totals");
  if (!answer.ok()) return answer.status();
  if (answer->rows() != 1) return StoreUnavailable("the table of totals is empty");
  const int64_t deletions = answer->Integer(0, 0);
  // Numbers that were given while nothing was trusted must not come again, hence the change after
  // such a time too.
  if (std::exchange(deletions_, deletions) != deletions || !Trusted()) Change();
  trusted_until_ns_ = asked_ns + kTrustNs;
  return absl::OkStatus();
}

void PostgresGeneration::Distrust(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    failed_ = why;
  }
  trusted_until_ns_ = kNever;
}

}  // namespace stepcast::server
