#include "server/store/postgres_profile_store.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <utility>

#include "server/store/postgres_connection.h"
#include "server/store/profile_store.h"
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

absl::StatusOr<std::unique_ptr<PostgresProfileStore>> PostgresProfileStore::Open(
    PostgresDatabase& database, const StoreLimits& limits, const Clock& clock) {
  absl::StatusOr<std::unique_ptr<PostgresGeneration>> generation =
      PostgresGeneration::Follow(database.connection_options(), clock);
  if (!generation.ok()) return generation.status();
  return std::unique_ptr<PostgresProfileStore>(
      new PostgresProfileStore(database, limits, clock, *std::move(generation)));
}

absl::StatusOr<ProfileSummary> PostgresProfileStore::Put(const StoredProfile& profile,
                                                         const std::string& request_id) {
  return connections_.Run([&](PostgresConnection& connection) {
    return WriteOn(connection, profile, {.request_id = request_id});
  });
}

absl::StatusOr<ProfileSummary> PostgresProfileStore::Replace(const StoredProfile& profile,
                                                             const ReplaceTerms& terms) {
  absl::StatusOr<ProfileSummary> stored = connections_.Run([&](PostgresConnection& connection) {
    return WriteOn(connection, profile, {.request_id = terms.request_id, .replace = terms});
  });
  // A write whose connection broke may have been committed.
  if (stored.ok() || absl::IsUnavailable(stored.status())) generation_->Change();
  return stored;
}

absl::StatusOr<StoredProfile> PostgresProfileStore::Get(const std::string& id) {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  absl::StatusOr<std::optional<StoredProfile>> profile = ReadProfile(**connection, id);
  if (!profile.ok()) return profile.status();
  if (!profile->has_value()) return ProfileNotFound(id);
  return **std::move(profile);
}

absl::StatusOr<ProfileSummary> PostgresProfileStore::GetSummary(const std::string& id) {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  absl::StatusOr<std::optional<ProfileSummary>> summary = FindProfile(**connection, id);
  if (!summary.ok()) return summary.status();
  if (!summary->has_value()) return ProfileNotFound(id);
  return **std::move(summary);
}

absl::StatusOr<ProfilePage> PostgresProfileStore::List(const ListQuery& query) {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  return ListProfiles(**connection, query);
}

absl::Status PostgresProfileStore::Delete(const std::string& id, const std::string& etag) {
  absl::Status status = connections_.Run(
      [&](PostgresConnection& connection) { return DeleteOn(connection, id, etag); });
  // A write whose connection broke may have been committed.
  if (status.ok() || absl::IsUnavailable(status)) generation_->Change();
  return status;
}

absl::StatusOr<PostgresProfileStore::Found> PostgresProfileStore::Look(
    PostgresConnection& connection, const StoredProfile& profile, const WriteTerms& terms,
    const TotalsRow& totals) {
  const ProfileSummary& wanted = profile.summary;
  absl::StatusOr<std::optional<ProfileSummary>> there = FindProfile(connection, wanted.id);
  if (!there.ok()) return there.status();
  if (!terms.request_id.empty()) {
    const absl::StatusOr<std::optional<RequestRow>> seen =
        FindRequest(connection, terms.request_id);
    if (!seen.ok()) return seen.status();
    if (seen->has_value()) {
      absl::StatusOr<ProfileSummary> again = AnswerAgain(terms, **seen, *there, wanted);
      if (!again.ok()) return again.status();
      return Found{.answer = *std::move(again), .there = {}};
    }
  }
  const absl::StatusOr<bool> is_new = IsToBeWritten(wanted, *there, terms);
  if (!is_new.ok()) return is_new.status();
  if (*is_new) {
    const std::string& owner = there->has_value() ? (*there)->owner : wanted.owner;
    absl::Status quota = CheckQuota(connection, owner, GrowthOf(profile, *there), totals);
    if (!quota.ok()) return quota;
  }
  return Found{.answer = {}, .there = *std::move(there), .is_to_be_written = *is_new};
}

absl::Status PostgresProfileStore::CheckQuota(PostgresConnection& connection,
                                              const std::string& owner, const TotalsRow& growth,
                                              const TotalsRow& totals) {
  const StoreLimits limits = limits_.Get();
  if (HasShareLimit(owner, limits)) {
    // Asked after the totals were locked, not with them: a statement that waited for a lock sees
    // other tables as they were before.
    const absl::StatusOr<TotalsRow> owned = ReadOwned(connection, owner);
    if (!owned.ok()) return owned.status();
    if (absl::Status share = CheckShare(owner, *owned, limits, growth); !share.ok()) return share;
  }
  return CheckRoom(totals, limits, growth);
}

absl::StatusOr<ProfileSummary> PostgresProfileStore::WriteOn(PostgresConnection& connection,
                                                             const StoredProfile& profile,
                                                             const WriteTerms& terms) {
  // First without a turn: most repetitions and refusals end here, and a content that is not to be
  // stored is not sent.
  const absl::StatusOr<TotalsRow> totals = ReadTotals(connection);
  if (!totals.ok()) return totals.status();
  const absl::StatusOr<Found> found = Look(connection, profile, terms, *totals);
  if (!found.ok()) return found.status();
  if (found->answer.has_value()) return *found->answer;
  if (!found->is_to_be_written && terms.request_id.empty()) return *found->there;

  return WriteInTurn(connection, profile, terms, found->is_to_be_written);
}

absl::StatusOr<ProfileSummary> PostgresProfileStore::WriteInTurn(PostgresConnection& connection,
                                                                 const StoredProfile& profile,
                                                                 const WriteTerms& terms,
                                                                 bool seems_new) {
  PostgresTransaction transaction(connection);
  if (!transaction.status().ok()) return transaction.status();
  std::optional<int64_t> sequence;
  if (seems_new) {
    const absl::StatusOr<int64_t> inserted = InsertContent(connection, profile);
    if (!inserted.ok()) return inserted.status();
    sequence = *inserted;
  }
  const absl::StatusOr<TotalsRow> totals = LockTotals(connection);
  if (!totals.ok()) return totals.status();
  // Another may have had its turn meanwhile, so all is asked again.
  const absl::StatusOr<Found> found = Look(connection, profile, terms, *totals);
  if (!found.ok()) return found.status();
  if (found->answer.has_value()) return *found->answer;
  absl::StatusOr<ProfileSummary> stored = Settle(connection, profile, *found, sequence);
  if (!stored.ok()) return stored;
  if (!terms.request_id.empty()) {
    if (absl::Status status = InsertRequest(connection, terms.request_id, RowOf(*stored, terms),
                                            limits_.Get().max_request_ids);
        !status.ok())
      return status;
  }
  if (absl::Status status = transaction.Commit(); !status.ok()) return status;
  return stored;
}

absl::StatusOr<ProfileSummary> PostgresProfileStore::Settle(PostgresConnection& connection,
                                                            const StoredProfile& profile,
                                                            const Found& found,
                                                            std::optional<int64_t> sequence) {
  if (!found.is_to_be_written) {
    const absl::Status deleted =
        sequence.has_value() ? DeleteContent(connection, *sequence) : absl::OkStatus();
    return deleted.ok() ? absl::StatusOr<ProfileSummary>(*found.there) : deleted;
  }
  if (!sequence.has_value()) {  // it was deleted or replaced since
    const absl::StatusOr<int64_t> inserted = InsertContent(connection, profile);
    if (!inserted.ok()) return inserted.status();
    sequence = *inserted;
  }
  absl::StatusOr<ProfileSummary> written = AsWritten(profile.summary, found.there, clock_.WallNs());
  if (!written.ok()) return written.status();
  absl::Status status =
      found.there.has_value() ? DeleteProfile(connection, profile.summary.id) : absl::OkStatus();
  if (status.ok())
    status = InsertProfile(connection, *sequence, *written,
                           static_cast<int64_t>(profile.content.size()));
  if (!status.ok()) return status;
  return written;
}

absl::Status PostgresProfileStore::DeleteOn(PostgresConnection& connection, const std::string& id,
                                            const std::string& etag) {
  PostgresTransaction transaction(connection);
  if (!transaction.status().ok()) return transaction.status();
  if (absl::Status locked = LockTotals(connection).status(); !locked.ok()) return locked;
  const absl::StatusOr<std::optional<ProfileSummary>> there = FindProfile(connection, id);
  if (!there.ok()) return there.status();
  if (!there->has_value()) return ProfileNotFound(id);
  if (!etag.empty() && etag != (*there)->etag) return EtagMismatch(id, etag, (*there)->etag);
  if (absl::Status status = DeleteProfile(connection, id); !status.ok()) return status;
  return transaction.Commit();
}

}  // namespace stepcast::server
