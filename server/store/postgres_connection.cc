#include "server/store/postgres_connection.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/store/disk.h"

namespace stepcast::server {

namespace {

// Types of pg_type.dat; these never change.
constexpr unsigned kBytea = 17;
constexpr unsigned kInt8 = 20;
constexpr unsigned kText = 25;
constexpr unsigned kByteaArray = 1001;
constexpr int kBinaryParameter = 1;

void AppendBigEndian(std::string& to, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    to += static_cast<char>(value >> shift & 0xff);
}

}  // namespace

PostgresParameters& PostgresParameters::Integer(int64_t value) {
  std::string& encoded = owned_.emplace_back();
  AppendBigEndian(encoded, static_cast<uint64_t>(value), 8);
  return Add(kInt8, encoded);
}

PostgresParameters& PostgresParameters::Bytes(std::string_view value) { return Add(kBytea, value); }

PostgresParameters& PostgresParameters::NullBytes() {
  Add(kBytea, "");
  values_.back() = nullptr;
  return *this;
}

PostgresParameters& PostgresParameters::BytesArray(const std::vector<std::string_view>& values) {
  std::string& encoded = owned_.emplace_back();
  AppendBigEndian(encoded, values.empty() ? 0 : 1, 4);  // dimensions
  AppendBigEndian(encoded, 0, 4);                       // no nulls
  AppendBigEndian(encoded, kBytea, 4);
  if (!values.empty()) {
    AppendBigEndian(encoded, values.size(), 4);
    AppendBigEndian(encoded, 1, 4);  // the first index
  }
  for (const std::string_view value : values) {
    AppendBigEndian(encoded, value.size(), 4);
    encoded.append(value);
  }
  return Add(kByteaArray, encoded);
}

PostgresParameters& PostgresParameters::Text(std::string_view value) { return Add(kText, value); }

PostgresParameters& PostgresParameters::Add(unsigned type, std::string_view value) {
  types_.push_back(type);
  values_.push_back(value.data() == nullptr ? "" : value.data());  // a null pointer would be NULL
  lengths_.push_back(static_cast<int>(value.size()));
  formats_.push_back(kBinaryParameter);
  bytes_ += value.size();
  return *this;
}

namespace {

uint64_t BigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

// Takes so many bytes from the front; false if there are not so many.
bool Take(std::string_view& from, size_t size, std::string_view& taken) {
  if (from.size() < size) return false;
  taken = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}

}  // namespace

void PostgresResult::Clear::operator()(pg_result* result) const { PQclear(result); }

int PostgresResult::rows() const { return PQntuples(result_.get()); }

int64_t PostgresResult::changed() const {
  const std::string_view text = PQcmdTuples(result_.get());
  int64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

bool PostgresResult::IsNull(int row, int column) const {
  return PQgetisnull(result_.get(), row, column) != 0;
}

int64_t PostgresResult::Integer(int row, int column) const {
  const std::string_view bytes = Bytes(row, column);
  const uint64_t value = BigEndian(bytes);
  return bytes.size() == sizeof(int32_t) ? static_cast<int32_t>(value)
                                         : static_cast<int64_t>(value);
}

std::string_view PostgresResult::Bytes(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}

std::vector<std::string> PostgresResult::BytesArray(int row, int column) const {
  // Dimensions, a flag for nulls, the type of the elements; then for the one dimension its size and
  // first index; then the elements.
  constexpr size_t kWord = 4;
  std::string_view left = Bytes(row, column);
  std::string_view word;
  std::vector<std::string> values;
  if (!Take(left, kWord, word) || BigEndian(word) != 1 || !Take(left, 2 * kWord, word))
    return values;
  if (!Take(left, kWord, word)) return values;
  const uint64_t count = BigEndian(word);
  if (!Take(left, kWord, word)) return values;
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view value;
    if (!Take(left, kWord, word) || !Take(left, BigEndian(word), value)) return {};
    values.emplace_back(value);
  }
  return values;
}

namespace {

// Classes and single states, from https://www.postgresql.org/docs/15/errcodes-appendix.html.
constexpr std::string_view kUnavailable[] = {
    "08",     // the connection
    "25006",  // read-only: a standby, or told so
    "25P03",  // a transaction stood idle too long
    "28",     // who we are
    "3D000",  // no such database
    "40",     // serialization failure, deadlock, outcome of a commit unknown
    "42501",  // what we may do
    "42P01",  // a table was removed
    "53",     // out of memory, too many connections
    "55P03",  // a lock is held by another
    "57",     // statement timeout, shut down, starting up
    "58",     // the machine below it: I/O errors
};
constexpr std::string_view kFullDisk[] = {"53100"};
constexpr std::string_view kCorrupt[] = {"XX001", "XX002"};
constexpr std::string_view kTooLong[] = {"54000", "22001"};

template <size_t n>
bool IsOneOf(std::string_view sqlstate, const std::string_view (&starts)[n]) {
  return std::any_of(std::begin(starts), std::end(starts), [&](std::string_view start) {
    return sqlstate.substr(0, start.size()) == start;
  });
}

// One line, without the hints that follow a tab.
std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const char plain = c == '\n' || c == '\t' ? ' ' : c;
    if (plain != ' ' || (!line.empty() && line.back() != ' ')) line += plain;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace

absl::Status PostgresError(std::string_view sqlstate, std::string_view doing,
                           std::string_view said) {
  const std::string state(sqlstate);
  const std::string where = state.empty() ? "" : absl::StrCat(" (PostgreSQL state ", state, ")");
  const std::string message =
      absl::StrCat("cannot ", std::string(doing), ": ", OneLine(said), where);
  ErrorDetails details;
  if (!state.empty()) details.metadata["sqlstate"] = state;
  if (IsOneOf(state, kFullDisk)) {
    details.metadata["cause"] = message;
    return DiskFull({.where = "the database's disk",
                     .todo =
                         "make its volume larger, or delete profiles that nobody needs any more "
                         "and have PostgreSQL VACUUM; what is stored is still answered",
                     .metadata = std::move(details.metadata)});
  }
  if (state.empty() || IsOneOf(state, kUnavailable)) {
    details.reason = "STORE_UNAVAILABLE";
    details.retry_delay_ms = kRetryDelayMs;
    return MakeError(absl::StatusCode::kUnavailable, message, details);
  }
  if (IsOneOf(state, kCorrupt)) {
    details.reason = "STORE_CORRUPT";
    return MakeError(absl::StatusCode::kDataLoss, message, details);
  }
  if (IsOneOf(state, kTooLong)) {
    details.reason = "STORE_FULL";
    details.quota_subject = "postgres_value_bytes";
    return MakeError(absl::StatusCode::kResourceExhausted, message, details);
  }
  details.reason = "STORE_INTERNAL";
  return MakeError(absl::StatusCode::kInternal, message, details);
}

bool MayRunAgain(const absl::Status& status) {
  const ErrorDetails details = DetailsOf(status);
  const auto state = details.metadata.find("sqlstate");
  return state != details.metadata.end() && (state->second == "40001" || state->second == "40P01");
}

namespace {

constexpr int kBinaryResults = 1;
// The time that the server needs to say that a statement took too long, before we believe that it
// will not.
constexpr int kGraceMs = 1000;
constexpr char kUse[] = "use the database";

std::string Where(PGconn* connection) {
  const char* host = PQhost(connection);
  const char* port = PQport(connection);
  return absl::StrCat("database at ", host == nullptr ? "" : host, " port ",
                      port == nullptr ? "" : port);
}

// True: one of the events. False: nothing in time. A signal counts as an event: who waits looks
// again.
bool Poll(pollfd* descriptors, nfds_t count, int timeout_ms) {
  const int ready = poll(descriptors, count, timeout_ms);
  return ready > 0 || (ready < 0 && errno == EINTR);
}

absl::Status ErrorOf(PGresult* result) {
  const auto field = [&](int code) {
    const char* text = PQresultErrorField(result, code);
    return std::string(text == nullptr ? "" : text);
  };
  std::string state = field(PG_DIAG_SQLSTATE);
  const std::string primary = field(PG_DIAG_MESSAGE_PRIMARY);
  return PostgresError(state, kUse, primary.empty() ? PQresultErrorMessage(result) : primary);
}

}  // namespace

absl::Status CheckConninfo(const std::string& conninfo) {
  char* error = nullptr;
  PQconninfoOption* parsed = PQconninfoParse(conninfo.c_str(), &error);
  const bool good = parsed != nullptr;
  PQconninfoFree(parsed);
  PQfreemem(error);
  if (good) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      "is not a connection string of PostgreSQL (keyword=value ..., or postgresql://...)",
      {.reason = "CONNECTION_STRING_INVALID"});
}

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresConnection::Open(
    const PostgresConnectionOptions& options) {
  if (absl::Status status = CheckConninfo(options.conninfo); !status.ok()) return status;
  // Later ones count more, and `dbname` stands for all that is in the string.
  const std::string timeout = absl::StrCat(options.connect_timeout_seconds);
  const std::array<const char*, 4> keywords = {"connect_timeout", "fallback_application_name",
                                               "dbname", nullptr};
  const std::array<const char*, 4> values = {timeout.c_str(), "stepcastd", options.conninfo.c_str(),
                                             nullptr};
  PGconn* raw = PQconnectdbParams(keywords.data(), values.data(), 1);
  std::unique_ptr<PostgresConnection> connection(
      new PostgresConnection(raw, options.statement_timeout_ms + kGraceMs));
  if (PQstatus(raw) != CONNECTION_OK) {
    const std::string said = raw == nullptr ? "out of memory" : PQerrorMessage(raw);
    return PostgresError("", absl::StrCat("connect to the ", Where(raw)), said);
  }
  if (absl::Status status = connection->Configure(options.statement_timeout_ms); !status.ok())
    return status;
  return connection;
}

PostgresConnection::~PostgresConnection() { PQfinish(connection_); }

absl::Status PostgresConnection::Configure(int statement_timeout_ms) {
  PQsetNoticeProcessor(
      connection_, [](void* /*arg*/, const char* /*message*/) {}, nullptr);
  if (PQsetnonblocking(connection_, 1) != 0) return Lost();
  // A process that stops in the middle of a transaction must not hold its locks for ever.
  const std::string timeout = absl::StrCat(statement_timeout_ms);
  PostgresParameters parameters;
  parameters.Text(timeout);
  return Run("SELECT set_config(name, CASE WHEN name = 'synchronous_commit' THEN CASE setting WHEN "
             "'off' THEN 'on' ELSE setting END "
             "WHEN setting::bigint BETWEEN 1 AND $1::bigint THEN setting ELSE $1 END, false) FROM "
             "pg_settings "
             "WHERE name IN ('synchronous_commit', 'statement_timeout', "
             "'idle_in_transaction_session_timeout')",
             parameters)
      .status();
}

absl::StatusOr<PostgresResult> PostgresConnection::Run(const char* sql,
                                                       const PostgresParameters& parameters) {
  if (lost_) return Lost();
  if (PQsendQueryParams(connection_, sql, parameters.count(), parameters.types(),
                        parameters.values(), parameters.lengths(), parameters.formats(),
                        kBinaryResults) == 0) {
    return Lost();
  }
  return Collect();
}

absl::Status PostgresConnection::Script(const std::string& script) {
  if (lost_ || PQsendQuery(connection_, script.c_str()) == 0) return Lost();
  return Collect().status();
}

// The result of the last statement that was sent, or the first error of any.
absl::StatusOr<PostgresResult> PostgresConnection::Collect() {
  if (absl::Status status = Flush(); !status.ok()) return status;
  absl::Status failed;
  PostgresResult last(nullptr);
  while (true) {
    if (absl::Status status = AwaitResult(); !status.ok()) return failed.ok() ? status : failed;
    PGresult* raw = PQgetResult(connection_);
    if (raw == nullptr) break;
    last = PostgresResult(raw);
    const ExecStatusType kind = PQresultStatus(raw);
    if (failed.ok() && kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK &&
        kind != PGRES_EMPTY_QUERY)
      failed = ErrorOf(raw);
  }
  if (!failed.ok()) return failed;
  return last;
}

absl::Status PostgresConnection::Flush() {
  while (true) {
    const int left = PQflush(connection_);
    if (left == 0) return absl::OkStatus();
    if (left < 0) return Lost();
    // The server may want to say something before it reads on.
    pollfd descriptor{.fd = PQsocket(connection_), .events = POLLIN | POLLOUT, .revents = 0};
    if (!Poll(&descriptor, 1, patience_ms_)) return TimedOut();
    if ((descriptor.revents & (POLLIN | POLLERR | POLLHUP)) != 0 &&
        PQconsumeInput(connection_) == 0)
      return Lost();
  }
}

absl::Status PostgresConnection::AwaitResult() {
  while (PQisBusy(connection_) != 0) {
    pollfd descriptor{.fd = PQsocket(connection_), .events = POLLIN, .revents = 0};
    if (!Poll(&descriptor, 1, patience_ms_)) return TimedOut();
    if (PQconsumeInput(connection_) == 0) return Lost();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> PostgresConnection::AwaitNotification(std::chrono::milliseconds longest,
                                                           int wake) {
  if (lost_) return Lost();
  if (TakeNotifications()) return true;
  std::array<pollfd, 2> descriptors = {
      pollfd{.fd = PQsocket(connection_), .events = POLLIN, .revents = 0},
      pollfd{.fd = wake, .events = POLLIN, .revents = 0}};
  if (!Poll(descriptors.data(), descriptors.size(), static_cast<int>(longest.count())))
    return false;
  if (PQconsumeInput(connection_) == 0 || PQstatus(connection_) != CONNECTION_OK) return Lost();
  return TakeNotifications();
}

bool PostgresConnection::TakeNotifications() {
  bool any = false;
  while (PGnotify* notification = PQnotifies(connection_)) {
    PQfreemem(notification);
    any = true;
  }
  return any;
}

bool PostgresConnection::InTransaction() const {
  return PQtransactionStatus(connection_) != PQTRANS_IDLE;
}

bool PostgresConnection::IsBroken() {
  if (lost_ || PQstatus(connection_) != CONNECTION_OK) return true;
  pollfd descriptor{.fd = PQsocket(connection_), .events = POLLIN, .revents = 0};
  // A server that ends says so first, and only what is read after that is the end.
  while (!lost_ && Poll(&descriptor, 1, 0))
    lost_ = PQconsumeInput(connection_) == 0 || PQstatus(connection_) != CONNECTION_OK;
  return lost_;
}

absl::Status PostgresConnection::TimedOut() {
  lost_ = true;  // what would still come belongs to a statement nobody waits for
  return PostgresError(
      "", kUse,
      absl::StrCat("the ", Where(connection_), " did not answer within ", patience_ms_, " ms"));
}

absl::Status PostgresConnection::Lost() {
  lost_ = true;
  const std::string said = PQerrorMessage(connection_);
  return PostgresError("", kUse,
                       absl::StrCat("the ", Where(connection_), " is lost: ",
                                    said.empty() ? "the connection is closed" : said));
}

}  // namespace stepcast::server
