#include "server/app/server_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/base/version.h"
#include "server/app/listen_address.h"
#include "server/app/server_security.h"
#include "server/app/setting_flags.h"
#include "server/app/settings.h"
#include "server/report/page.h"
#include "server/store/postgres_connection.h"

namespace stepcast::server {

namespace {

constexpr double kMaxSeconds = 1e6;
constexpr int kMaxThreads = 1024;
constexpr int64_t kMaxMessage = std::numeric_limits<int>::max();
constexpr int64_t kMaxIndex = std::numeric_limits<int>::max();

const char* const kStoreNames =
    "sqlite (durable), postgres (durable, shared by replicas) or memory (forgets when it ends)";

// ${XDG_STATE_HOME:-$HOME/.local/state}/stepcast; empty if the environment has neither.
std::string DefaultDataDirectory() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') return absl::StrCat(state, "/stepcast");
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? absl::StrCat(home, "/.local/state/stepcast") : "";
}

void AddService(CLI::App& app, ServerOptions& options) {
  AddSetting(app, "--listen", options.listen,
             "HOST:PORT for gRPC; port 0: any free one, printed at start");
  AddSetting(app, "--http-listen", options.http_listen,
             "HOST:PORT for /metrics, /healthz and /readyz; port 0 as above; none: no pages");
  app.add_flag("--report", options.report.enabled,
               "Serve a page on each profile's job at /report/profiles/PROFILE, to those who may "
               "ask for predictions")
      ->envname(VariableOf("--report"))
      ->default_str("false");
  AddRange(app, "--max-reports", options.report.max_pages, 1, 64,
           "Such pages that are made at one time");
  AddRange(app, "--max-report-seconds", options.report.max_seconds, 0.001, kMaxSeconds,
           "Longest time for one");
  AddChoice<StoreKind>(app, "--store", options.store,
                       {{"sqlite", StoreKind::kSqlite},
                        {"postgres", StoreKind::kPostgres},
                        {"memory", StoreKind::kMemory}},
                       absl::StrCat("Where profiles are kept: ", kStoreNames));
  AddSetting(app, "--data-dir", options.data_dir,
             "Directory of the sqlite store, created if missing");
  AddSetting(
      app, "--postgres", options.postgres,
      "Database of the postgres store: a connection string or URL of libpq, what it lacks from "
      "PGHOST, PGPASSFILE and so on; better not on the "
      "command line if it holds a password")
      ->group(kSecretGroup);
  AddRange(app, "--store-wait-seconds", options.store_wait_seconds, 0.0, kMaxSeconds,
           "Seconds to go on trying to reach the database at start");
  AddLog(app, options.log);
  AddLength(app, "--drain-delay", options.drain_delay_seconds, kMaxSeconds,
            "Time between turning not ready and refusing calls, when told to stop");
  AddLength(app, "--drain-timeout", options.drain_timeout_seconds, kMaxSeconds,
            "Time that calls in flight then get to finish");
}

void AddLimits(CLI::App& app, ServerOptions& options) {
  AddRange(app, "--threads", options.threads, 1, kMaxThreads,
           "Simulations at one time; those that idle make others faster; default: the number of "
           "processors");
  AddRange(app, "--queue-max", options.queue_max, 0, 1'000'000, "Simulations that may wait");
  AddRange(app, "--queue-max-seconds", options.queue_max_seconds, 0.0, kMaxSeconds,
           "Expected seconds of simulation that may wait, on one thread; 0: no bound");
  AddRange(app, "--store-threads", options.store_threads, 1, kMaxThreads,
           "Threads for the store and for checking requests");
  AddRange(app, "--store-queue-max", options.store_queue_max, 0, 1'000'000,
           "Requests that may wait for one of those");
  AddRange(app, "--max-message-bytes", options.max_message_bytes, int64_t{1024}, kMaxMessage,
           "Largest request message");
  AddRange(app, "--max-profile-bytes", options.max_profile_bytes, int64_t{1024}, kMaxMessage,
           "Largest uploaded profile");
  AddRange(app, "--max-import-bytes", options.max_import_bytes, int64_t{1024},
           std::numeric_limits<int64_t>::max() / 4,
           "Largest imported recording, which beyond 4 MiB waits in a file in the data directory");
  AddRange(app, "--max-pending-bytes", options.max_pending_bytes, int64_t{1024},
           std::numeric_limits<int64_t>::max() / 4, "Bytes of all requests under way together");
  AddRange(app, "--max-job-seconds", options.max_job_seconds, 0.001, kMaxSeconds,
           "Longest computation for one call");
  AddRange(app, "--max-answer-cache-bytes", options.max_answer_cache_bytes, int64_t{0},
           std::numeric_limits<int64_t>::max() / 4,
           "Answers that are kept for equal requests; 0: none");
  AddRange(app, "--max-profile-cache-bytes", options.max_profile_cache_bytes, int64_t{0},
           std::numeric_limits<int64_t>::max() / 4,
           "Profiles that are kept ready to compute with and, of a durable store, as they were "
           "read; 0: none");
  AddRange(app, "--max-run-cache-bytes", options.max_run_cache_bytes, int64_t{0},
           std::numeric_limits<int64_t>::max() / 4,
           "Simulated runs that are kept for other requests; 0: none");
  AddRange(app, "--max-profiles", options.store_limits.max_profiles, int64_t{1},
           std::numeric_limits<int64_t>::max() / 4, "Profiles in the store");
  AddRange(app, "--max-store-bytes", options.store_limits.max_total_bytes, int64_t{1},
           std::numeric_limits<int64_t>::max() / 4, "Bytes of all profiles in the store");
  AddRange(app, "--max-client-profiles", options.store_limits.max_client_profiles, int64_t{0},
           std::numeric_limits<int64_t>::max() / 4,
           "Profiles that one client may have in the store, by the name that --tokens gives it; 0: "
           "no limit, as clients without a name never have");
  AddRange(app, "--max-client-store-bytes", options.store_limits.max_client_store_bytes, int64_t{0},
           std::numeric_limits<int64_t>::max() / 4,
           "Bytes of the profiles that one client may have in the store; the same");
}

void AddOperations(CLI::App& app, OperationOptions& options) {
  constexpr int64_t kMaxCount = int64_t{1} << 40;
  AddSetting(app, "--replica-id", options.replica_id,
             "Beginning of this server's name among those on its store; default: the host's name");
  AddRange(app, "--max-running-operations", options.max_running, 0, kMaxThreads,
           "Long-running operations computed here at one time, beside the calls; 0: this server "
           "computes none");
  AddRange(app, "--operation-lease-seconds", options.lease_seconds, 0.1, kMaxSeconds,
           "Seconds after which another server takes the operations of one that is gone");
  AddRange(app, "--max-operation-seconds", options.max_seconds, 0.001, kMaxSeconds,
           "Longest computation of an operation");
  AddRange(app, "--max-operation-attempts", options.max_attempts, int64_t{1}, int64_t{1000},
           "Attempts at an operation, each ended by its server's death, before it is given up");
  AddRange(app, "--operation-retention-seconds", options.retention_seconds, 0.0, 1e9,
           "Seconds that a done operation is kept");
  AddRange(app, "--max-open-operations", options.max_open, int64_t{1}, kMaxCount,
           "Operations in the store that are not done");
  AddRange(app, "--max-done-operations", options.max_done, int64_t{0}, kMaxCount,
           "Done operations that are kept");
  AddRange(app, "--max-operation-store-bytes", options.max_store_bytes, int64_t{1},
           std::numeric_limits<int64_t>::max() / 4,
           "Bytes of requests and results of operations beyond which no other is started");
  AddRange(app, "--max-job-bytes", options.max_job_bytes, int64_t{1024}, kMaxMessage,
           "Largest request of an operation");
  AddRange(app, "--max-waiting-calls", options.max_waiting_calls, int64_t{0}, kMaxCount,
           "Calls that wait for operations at one time");
}

// Limits that bound what the engine can compute with can only be lowered.
void AddProfileLimits(CLI::App& app, ProfileLimits& limits) {
  AddRange(app, "--max-operations", limits.max_operations, int64_t{1}, kMaxIndex,
           "Operations of a profile");
  AddRange(app, "--max-steps", limits.max_steps, int64_t{1}, kMaxIndex,
           "Recorded steps of a profile");
  AddRange(app, "--max-recorded-times", limits.max_recorded_times, int64_t{1},
           std::numeric_limits<int64_t>::max() / 4, "Operations times steps of a profile");
  AddRange(app, "--max-dependencies", limits.max_dependencies, int64_t{1}, kMaxIndex,
           "Dependencies of a profile");
  AddRange(app, "--max-parameter-servers", limits.max_parameter_servers, int64_t{1},
           ProfileLimits().max_parameter_servers, "Parameter servers of a profile");
  AddRange(app, "--max-batch-size", limits.max_batch_size, int64_t{1},
           ProfileLimits().max_batch_size, "Examples per step of a profile");
  AddRange(app, "--max-transfer-bytes", limits.max_transfer_bytes, int64_t{1},
           ProfileLimits().max_transfer_bytes, "Bytes of a transfer");
  AddRange(app, "--max-step-ns", limits.max_step_ns, int64_t{1}, ProfileLimits().max_step_ns,
           "Nanoseconds of a recorded step");
  AddRange(app, "--max-name-bytes", limits.max_name_bytes, size_t{1}, size_t{65536},
           "Bytes of an operation's or parameter's name");
  AddRange(app, "--max-text-bytes", limits.max_text_bytes, size_t{1}, size_t{65536},
           "Bytes of a display name, model, framework or label's value");
  AddRange(app, "--max-labels", limits.max_labels, size_t{0}, size_t{1024}, "Labels of a profile");
  AddRange(app, "--max-label-key-bytes", limits.max_label_key_bytes, size_t{1}, size_t{1024},
           "Bytes of a label's key");
}

void AddSecurity(CLI::App& app, SecurityOptions& options) {
  AddSetting(app, "--tls-cert", options.tls_cert,
             "PEM file of the server's certificate, then those it was signed with: serve over TLS");
  AddSetting(app, "--tls-key", options.tls_key, "PEM file of its key");
  AddSetting(
      app, "--tls-client-ca", options.tls_client_ca,
      "PEM file of those who sign clients' certificates: only clients that have one may connect");
  AddSetting(
      app, "--tokens", options.tokens,
      "YAML file of who may call, with which token or certificate, and as what: reader, writer or "
      "admin");
  app.add_flag("--allow-insecure", options.allow_insecure,
               "Serve beyond loopback in clear, or to everybody")
      ->envname(VariableOf("--allow-insecure"))
      ->default_str("false");
  AddRange(app, "--reload-seconds", options.reload_seconds, 0.0, kMaxSeconds,
           "How often those files are looked at, besides at SIGHUP, and read again if they have "
           "changed; 0: never");
}

void AddConnections(CLI::App& app, ConnectionOptions& options) {
  AddRange(
      app, "--max-connection-age-seconds", options.max_age_seconds, 0.0, kMaxSeconds,
      "Age at which clients are told to connect anew, which spreads them over servers; 0: never");
  AddRange(app, "--max-connection-age-grace-seconds", options.max_age_grace_seconds, 0.0,
           kMaxSeconds, "What calls in flight then get to finish");
  AddRange(app, "--max-calls-per-connection", options.max_calls, 1, 1'000'000,
           "Calls on one connection at one time; more wait at the client");
}

// A page travels as the other pages do, in clear, and with it its caller's token.
absl::Status CheckReport(const ServerOptions& options) {
  if (!options.report.enabled) return absl::OkStatus();
  const auto fault = [](std::string why) {
    return FaultsError("FLAG_INVALID", {{.field = "--report", .description = std::move(why)}});
  };
  if (const absl::Status built = CheckReportIsBuilt(); !built.ok())
    return fault(std::string(built.message()));
  if (options.http_listen.empty()) return fault("needs --http-listen");
  // Nobody has a certificate there, by which the others are known.
  if (!options.security.tls_client_ca.empty() && options.security.tokens.empty())
    return fault("needs --tokens where callers are known by --tls-client-ca");
  if (!options.security.allow_insecure && !IsLoopback(options.http_listen))
    return fault(absl::StrCat(Quoted(options.http_listen),
                              " can be reached from beyond this machine, and is served in clear: "
                              "listen on loopback behind a proxy with TLS, or give "
                              "--allow-insecure"));
  return absl::OkStatus();
}

absl::Status Check(const ServerOptions& options) {
  if (absl::Status status = CheckListenAddress("--listen", options.listen); !status.ok())
    return status;
  if (absl::Status status = options.http_listen.empty()
                                ? absl::OkStatus()
                                : CheckListenAddress("--http-listen", options.http_listen);
      !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckExposure(options.listen, options.security); !status.ok())
    return status;
  if (absl::Status status = CheckReport(options); !status.ok()) return status;
  if (options.store == StoreKind::kSqlite && options.data_dir.empty()) {
    return FaultsError(
        "FLAG_INVALID",
        {{.field = "--data-dir",
          .description = "is required where neither XDG_STATE_HOME nor HOME is set"}});
  }
  if (options.store == StoreKind::kPostgres) {
    const absl::Status readable = CheckConninfo(options.postgres);
    if (!readable.ok())
      return FaultsError("FLAG_INVALID",
                         {{.field = "--postgres", .description = std::string(readable.message())}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::variant<ServerOptions, PrintText, DataCopy>> ParseCommandLine(
    int argc, const char* const* argv) {
  ServerOptions options;
  options.threads =
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
  options.data_dir = DefaultDataDirectory();
  CLI::App table(
      "stepcastd serves Stepcast: it stores training profiles and predicts from them how fast a "
      "distributed training job runs.",
      "stepcastd");
  table.footer(
      "A flag counts more than its variable, that more than the file of --config. SIGHUP reads all "
      "three again.");
  AddService(table, options);
  AddLimits(table, options);
  AddOperations(table, options.operations);
  AddProfileLimits(table, options.profile_limits);
  AddConnections(table, options.connections);
  AddSecurity(table, options.security);

  using Wish = TypedFlags::Wish;
  const absl::StatusOr<TypedFlags> typed = ReadFlags(argc, argv, table, /*copies_data=*/true);
  if (!typed.ok()) return typed.status();
  if (typed->wish == Wish::kHelp) return PrintText{table.help()};
  if (typed->wish == Wish::kVersion)
    return PrintText{absl::StrCat("stepcastd ", ProgramVersion(), "\n")};

  const absl::StatusOr<std::vector<GivenSetting>> given = GivenSettings(*typed, table);
  if (!given.ok()) return given.status();
  const absl::Status applied = Apply(*given, table);
  if (options.http_listen == "none") options.http_listen.clear();
  const absl::Status checked = BothFaults(applied, Check(options));
  if (!checked.ok()) return checked;
  if (typed->wish == Wish::kCheckConfig) {
    const absl::Status loaded =
        LoadCredentials(options.security, absl::ToUnixSeconds(absl::Now())).status();
    if (!loaded.ok()) return loaded;
  }
  if (typed->wish == Wish::kCheckConfig) return PrintText{"ok\n"};
  if (typed->wish == Wish::kPrintConfig) return PrintText{ConfigText(*given, table)};
  if (!typed->backup_to.empty() || !typed->restore_from.empty()) {
    return DataCopy{.data_dir = options.data_dir,
                    .backup_to = typed->backup_to,
                    .restore_from = typed->restore_from};
  }
  options.settings = ShownSettings(*given, table);
  options.unknown_variables = UnknownVariables(table);
  return options;
}

absl::StatusOr<ServerOptions> ParseOptions(int argc, const char* const* argv) {
  absl::StatusOr<std::variant<ServerOptions, PrintText, DataCopy>> command =
      ParseCommandLine(argc, argv);
  if (!command.ok()) return command.status();
  if (auto* options = std::get_if<ServerOptions>(&*command)) return std::move(*options);
  return FaultsError("FLAG_INVALID", {{.field = "", .description = "no server was asked for"}});
}

}  // namespace stepcast::server
