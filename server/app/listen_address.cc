#include "server/app/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"

namespace stepcast::server {

namespace {

constexpr int kMaxPort = 65535;

// The host, without brackets.
std::string HostOf(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return host;
}

std::string PortOf(const std::string& address) { return address.substr(address.rfind(':') + 1); }

// The reason why an attempt fails; empty if it does not.
std::string TryToListen(const addrinfo& address) {
  const int socket_fd =
      socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol);
  if (socket_fd < 0) return std::strerror(errno);
  const int on = 1;
  setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  std::string why;
  if (bind(socket_fd, address.ai_addr, address.ai_addrlen) != 0 || listen(socket_fd, 1) != 0)
    why = std::strerror(errno);
  close(socket_fd);
  return why;
}

std::string WhyNot(const std::string& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(HostOf(address).c_str(), PortOf(address).c_str(), &hints, &found);
  if (error != 0) return gai_strerror(error);
  std::string why;
  for (const addrinfo* each = found; each != nullptr && why.empty(); each = each->ai_next)
    why = TryToListen(*each);
  freeaddrinfo(found);
  return why.empty() ? "it was in use a moment ago" : why;
}

}  // namespace

absl::Status CheckListenAddress(const std::string& flag, const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  const bool has_port = colon != std::string::npos && absl::SimpleAtoi(PortOf(address), &port) &&
                        port >= 0 && port <= kMaxPort;
  const std::string host = has_port ? address.substr(0, colon) : "";
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (has_port && !host.empty() && (bracketed || host.find_first_of(":[]") == std::string::npos))
    return absl::OkStatus();
  return FaultsError("FLAG_INVALID",
                     {{.field = flag, .description = Quoted(address) + " is no HOST:PORT"}});
}

bool IsLoopback(const std::string& address) {
  const std::string host = HostOf(address);
  in_addr v4{};
  in6_addr v6{};
  constexpr uint32_t kLoopbackNet = 127;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == kLoopbackNet;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

std::string WithPort(const std::string& address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

absl::Status ListenError(const std::string& address) {
  return MakeError(absl::StatusCode::kUnavailable,
                   absl::StrCat("cannot listen on ", address, ": ", WhyNot(address)),
                   {.reason = "LISTEN_FAILED", .metadata = {{"address", address}}});
}

}  // namespace stepcast::server
