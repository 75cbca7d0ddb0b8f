#include "server/app/server.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "core/base/error.h"
#include "core/base/version.h"
#include "core/predict/throughput.h"
#include "server/app/back_end.h"
#include "server/app/grpc_endpoint.h"
#include "server/app/listen_address.h"
#include "server/app/log.h"
#include "server/app/report_pages.h"
#include "server/app/server_security.h"
#include "server/app/stores.h"
#include "server/base/clock.h"
#include "server/http/http_server.h"
#include "server/methods/prediction_methods.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/services.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

namespace {

// A name that no other replica has, and no earlier process of this one had: `given`, or the host's
// name, and some random digits.
std::string ReplicaId(const std::string& given) {
  constexpr size_t kRandomDigits = 8;
  std::array<char, 256> host{};
  const bool has_name = gethostname(host.data(), host.size() - 1) == 0;
  const absl::StatusOr<std::string> random = NewEtag();
  const std::string name = !given.empty() ? given : has_name ? host.data() : "stepcastd";
  return absl::StrCat(name, "-",
                      random.ok() ? random->substr(0, kRandomDigits) : absl::StrCat(getpid()));
}

// The settings that Reload takes over.
bool IsReloaded(const std::string& name) {
  static const auto& reloaded = *new std::set<std::string>{"log-level",
                                                           "drain-delay",
                                                           "drain-timeout",
                                                           "tls-cert",
                                                           "tls-key",
                                                           "tls-client-ca",
                                                           "tokens",
                                                           "queue-max",
                                                           "queue-max-seconds",
                                                           "store-queue-max",
                                                           "max-pending-bytes",
                                                           "max-profiles",
                                                           "max-store-bytes",
                                                           "max-client-profiles",
                                                           "max-client-store-bytes"};
  return reloaded.count(name) > 0;
}

// Takes the settings over that may be; the names of the others that differ.
std::string TakeOver(const std::map<std::string, std::string>& next,
                     std::map<std::string, std::string>& now) {
  std::vector<std::string> waiting;
  for (const auto& [name, value] : next) {
    const auto old = now.find(name);
    if (IsReloaded(name)) {
      now.insert_or_assign(name, value);
    } else if (old != now.end() && old->second != value) {
      waiting.push_back(name);
    }
  }
  return absl::StrJoin(waiting, ",");
}

}  // namespace

// Member order is lifetime: each is declared after what it uses, what others ask last.
struct Server::Parts {
  explicit Parts(const ServerOptions& given)
      : options(given),
        log(given.log),
        metrics({.methods = ServedMethods(),
                 .simulating_methods = SimulatingMethods(),
                 .version = ProgramVersion(),
                 .engine_version = kEngineVersion,
                 .max_profiles = given.store_limits.max_profiles}),
        health(ServedServices()) {}

  absl::Status ReadyToRead() {
    if (!serving)
      return MakeError(absl::StatusCode::kUnavailable, "starting or shutting down",
                       {.reason = "NOT_SERVING"});
    return back_end->Check();
  }

  absl::Status Ready() {
    absl::Status reads = ReadyToRead();
    return reads.ok() ? stores.CheckRoom() : reads;
  }

  std::string MetricsText() {
    metrics.store.Refresh(*stores.profiles, clock);
    metrics.store.SetDisk(!stores.CheckRoom().ok(), stores.Space());
    metrics.operations.Refresh(*stores.operations, stores.shards.get());
    return metrics.Text();
  }

  ServerOptions options;  // those of Reload change
  const RealClock clock;
  const std::string replica = ReplicaId(options.operations.replica_id);
  Log log;
  ServerMetrics metrics;
  std::unique_ptr<ServerSecurity> security;
  Stores stores;
  std::unique_ptr<BackEnd> back_end;
  HealthRpc health;
  std::unique_ptr<ReflectionRpc> reflection;
  std::atomic<bool> serving{false};
  bool drained = false;
  std::unique_ptr<GrpcEndpoint> grpc;
  std::unique_ptr<ReportPages> reports;
  std::unique_ptr<HttpServer> http;  // its pages ask the one above
};

Server::Server(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)),
      grpc_address_(WithPort(parts_->options.listen, parts_->grpc->port())),
      http_address_(parts_->http == nullptr
                        ? ""
                        : WithPort(parts_->options.http_listen, parts_->http->port())) {}

Server::~Server() { Drain(); }

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  auto parts = std::make_unique<Parts>(options);
  Parts& part = *parts;

  // The security: who may ask.
  absl::StatusOr<std::unique_ptr<ServerSecurity>> security =
      ServerSecurity::Create(options.security, part.log, part.metrics, part.clock);
  if (!security.ok()) return security.status();
  part.security = *std::move(security);
  part.reflection = std::make_unique<ReflectionRpc>(part.security->gate(), AllServices());

  // The stores that hold the data, and the back end that works on it.
  absl::StatusOr<Stores> stores = OpenStores(options, part.clock);
  if (!stores.ok()) return stores.status();
  part.stores = *std::move(stores);
  const BackEnd::Environment environment{.replica = part.replica,
                                         .clock = part.clock,
                                         .log = part.log,
                                         .metrics = part.metrics,
                                         .gate = part.security->gate(),
                                         .stores = part.stores};
  part.back_end = std::make_unique<BackEnd>(options, environment);

  // The pages, by which it is watched; not ready yet.
  if (!options.http_listen.empty()) {
    HttpPages pages{.version = ProgramVersion(),
                    .metrics = [&part] { return part.MetricsText(); },
                    .ready = [&part] { return part.Ready(); },
                    .ready_to_read = [&part] { return part.ReadyToRead(); }};
    if (options.report.enabled) {
      part.reports = std::make_unique<ReportPages>(
          ReportPagesOptions{.only_local = IsLoopback(options.http_listen),
                             .max_pages = options.report.max_pages,
                             .max_seconds = options.report.max_seconds});
      pages.report = [&part](const HttpRequest& request) { return part.reports->Answer(request); };
      pages.max_reports = options.report.max_pages;
    }
    absl::StatusOr<std::unique_ptr<HttpServer>> http =
        HttpServer::Start(options.http_listen, pages);
    if (!http.ok()) return http.status();
    part.http = *std::move(http);
  }

  // The endpoint, by which it is asked.
  const GrpcEndpointOptions endpoint{
      .address = options.listen,
      .credentials = part.security->ListenerCredentials(),
      .max_message_bytes = options.max_message_bytes,
      .connections = options.connections,
      .services = {&part.back_end->profile_service(), &part.back_end->prediction_service(),
                   &part.back_end->admin_service(), &part.back_end->operations().job_service(),
                   &part.back_end->operations().operations_service(), &part.health.service(),
                   &part.reflection->v1(), &part.reflection->v1alpha()}};
  absl::StatusOr<std::unique_ptr<GrpcEndpoint>> grpc =
      GrpcEndpoint::Start(endpoint, part.security->gate(), part.metrics.calls, part.clock);
  if (!grpc.ok()) return grpc.status();
  part.grpc = *std::move(grpc);

  if (part.reports != nullptr) part.reports->Serve(part.grpc->InProcessChannel());
  part.serving = true;
  part.health.SetServing(true);
  std::unique_ptr<Server> server(new Server(std::move(parts)));
  part.log.Info("serving", {{"version", ProgramVersion()},
                            {"grpc", server->grpc_address()},
                            {"http", server->http_address()},
                            {"replica", server->parts_->replica},
                            {"store", StoreText(options)},
                            {"threads", absl::StrCat(options.threads)}});
  for (const std::string& name : options.unknown_variables)
    server->parts_->log.Warning("variable ignored",
                                {{"name", name}, {"why", "it is not a setting"}});
  return server;
}

std::string Server::MetricsText() { return parts_->MetricsText(); }

void Server::Reload(const absl::StatusOr<ServerOptions>& options) {
  Parts& part = *parts_;
  const absl::Status status =
      options.ok() ? part.security->Reload(options->security) : options.status();
  part.metrics.security.OnReload(status.ok());
  if (!status.ok()) return part.log.Error("not reloaded", {{"why", std::string(status.message())}});
  const std::string waiting = TakeOver(options->settings, part.options.settings);
  part.options.drain_delay_seconds = options->drain_delay_seconds;
  part.options.drain_timeout_seconds = options->drain_timeout_seconds;
  part.log.SetLevel(options->log.level);
  ServerOptions next = *options;
  next.settings = part.options.settings;
  part.back_end->SetLimits(next);
  part.metrics.SetMaxProfiles(options->store_limits.max_profiles);
  part.log.Info("reloaded");
  if (!waiting.empty()) part.log.Warning("settings wait for a restart", {{"settings", waiting}});
}

void Server::RefreshCredentials() { parts_->security->Refresh(); }

void Server::Drain() {
  Parts& part = *parts_;
  if (std::exchange(part.drained, true)) return;
  part.log.Info("draining",
                {{"delay_seconds", absl::StrCat(part.options.drain_delay_seconds)},
                 {"timeout_seconds", absl::StrCat(part.options.drain_timeout_seconds)}});
  part.serving = false;
  part.health.SetServing(false);
  // Others on the store go on with what is computed here, while calls may still be.
  part.back_end->operations().Leave();
  // Balancers need this long to notice; calls that come meanwhile are served.
  std::this_thread::sleep_for(std::chrono::duration<double>(part.options.drain_delay_seconds));
  part.health.EndWatches();
  if (part.reports != nullptr) part.reports->Stop();
  part.grpc->Shutdown(part.options.drain_timeout_seconds);
  part.back_end->Drain();
  part.log.Info("stopped");
}

}  // namespace stepcast::server
