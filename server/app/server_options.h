// The options of a server, with their defaults. Most are flags of stepcastd of the same name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/model/profile.h"
#include "server/app/log.h"
#include "server/jobs/job_pool.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

enum class StoreKind : uint8_t { kSqlite, kMemory, kPostgres };

// The nice(1) value of threads that simulate: they yield, so that calls are taken, and answered
// where the answer is known, while every processor simulates.
inline constexpr int kSimulationNice = 10;

// The security of a server: the callers it admits, and the encryption of their calls.
struct SecurityOptions {
  std::string tls_cert;  // files; empty: none
  std::string tls_key;
  std::string tls_client_ca;
  std::string tokens;
  bool allow_insecure = false;  // beyond loopback, in clear or for everybody
  double reload_seconds = 10;   // between looks at the files above; 0: none
};

// The options of long-running operations. The flags say `operation` where the names here need not.
struct OperationOptions {
  std::string replica_id;  // the beginning of this server's name among those on its store; empty:
                           // the host's name
  int max_running = 1;     // at one time on this server; 0: it computes none
  double lease_seconds = 15;
  double max_seconds = 86'400;  // of one attempt
  int64_t max_attempts = 5;
  double retention_seconds = 604'800;
  int64_t max_open = 10'000;
  int64_t max_done = 10'000;
  int64_t max_store_bytes = int64_t{1} << 30;
  int64_t max_job_bytes = int64_t{16} << 20;  // of one request
  int64_t max_waiting_calls = 1000;
};

struct ConnectionOptions {
  double max_age_seconds = 0;          // then the client is told to connect anew; 0: never
  double max_age_grace_seconds = 600;  // for calls in flight after that
  int max_calls = 1000;                // on one connection at one time
};

// The page on a profile's job, beside those that watch the server.
struct ReportOptions {
  bool enabled = false;
  int max_pages = 2;        // made at one time
  double max_seconds = 60;  // for one
};

struct ServerOptions {
  std::string listen = "127.0.0.1:50051";      // HOST:PORT; port 0: any free one
  std::string http_listen = "127.0.0.1:9464";  // the same; empty: no pages
  ReportOptions report;
  StoreKind store = StoreKind::kSqlite;
  std::string data_dir;  // REQUIRES: not empty with kSqlite
  std::string postgres;  // of kPostgres: libpq's connection string; what it lacks comes from the
                         // PG* environment. May hold a password
  double store_wait_seconds = 10;  // of kPostgres: to go on trying at start
  StoreLimits store_limits;
  int threads = 2;  // of simulations, at one time
  int queue_max = 64;
  double queue_max_seconds = 3600;  // of expected simulation that waits; 0: no bound
  int store_threads = 4;
  int store_queue_max = 256;
  int64_t max_message_bytes = int64_t{64} << 20;
  int64_t max_profile_bytes = int64_t{512} << 20;  // of one upload
  int64_t max_import_bytes = int64_t{2} << 30;     // of one import, a layer profile apart
  int64_t max_pending_bytes = int64_t{2} << 30;    // of all requests under way
  double max_job_seconds = 600;
  int64_t max_answer_cache_bytes = int64_t{64} << 20;
  int64_t max_profile_cache_bytes = int64_t{128} << 20;
  int64_t max_run_cache_bytes = int64_t{256} << 20;
  ProfileLimits profile_limits;
  OperationOptions operations;
  double drain_delay_seconds = 0;     // between turning NOT_SERVING and refusing calls
  double drain_timeout_seconds = 30;  // for calls in flight
  ConnectionOptions connections;
  LogOptions log;
  SecurityOptions security;
  std::map<std::string, std::string>
      settings;  // as they were given, by the names of flags, without secrets; only shown
  std::vector<std::string>
      unknown_variables;  // of the environment, that look like settings; only logged
  JobObserver* simulation_observer =
      nullptr;  // borrowed; told of the simulations' jobs beside the metrics. For tests
};

// The configuration of stepcastd: one table of settings, which flags, environment and configuration
// file share.
//
// Each setting is a flag, a variable of the environment, STEPCAST_ and its name in capitals, and a
// key of the file that --config names. A flag counts more than its variable, that more than the
// file, that more than the default.

// Text that was asked for instead of a server: --help, --version, --check-config or --print-config.
struct PrintText {
  std::string text;
};

// A copy that was asked for instead of a server: --backup-to or --restore-from.
struct DataCopy {
  std::string data_dir;
  std::string backup_to;     // empty: restore
  std::string restore_from;  // empty: back up
};

// Reads the environment and the file anew at each call. INVALID_ARGUMENT, reason FLAG_INVALID or
// CONFIG_INVALID, with all that is wrong.
absl::StatusOr<std::variant<ServerOptions, PrintText, DataCopy>> ParseCommandLine(
    int argc, const char* const* argv);

// The same for a server only: INVALID_ARGUMENT, reason FLAG_INVALID, where something else was asked
// for.
absl::StatusOr<ServerOptions> ParseOptions(int argc, const char* const* argv);

}  // namespace stepcast::server
