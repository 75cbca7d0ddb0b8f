// The server: every long-lived object of the process, put together.
//
// Usable in-process: nothing about it is global but gRPC's own threads, so tests start as many as
// they like. Threads: Start, Drain and the destructor on one thread; everything else is safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "server/app/server_options.h"

namespace stepcast::server {

class Server {
 public:
  // Serving when it returns. UNAVAILABLE, reason LISTEN_FAILED, names the address that cannot be
  // listened on; otherwise what the store fails with.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  // Drains, if that was not done.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // HOST:PORT with the port in use; the second is empty where there are no pages.
  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& http_address() const { return http_address_; }

  // The text that /metrics shows.
  std::string MetricsText();

  // Takes what can change while serving from new options, or says in the log why none could be had:
  // then all is as it was. Log level, drain delay and drain timeout, tokens, certificates and the
  // limits of queues, requests and the store change at once; other settings that differ are named
  // in the log, and wait for a restart.
  void Reload(const absl::StatusOr<ServerOptions>& options);
  // Reads tokens and certificates again, if their files have changed.
  void RefreshCredentials();

  // Stops: health turns NOT_SERVING and /readyz 503; after drain_delay new calls are refused, and
  // calls in flight get drain_timeout to finish, then they are cancelled. Returns when the last job
  // is done. Idempotent.
  void Drain();

 private:
  struct Parts;

  explicit Server(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
  std::string grpc_address_;
  std::string http_address_;
};

}  // namespace stepcast::server
