#include "client/src/connection_probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/src/error_status.h"
#include "client/src/stub.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

namespace {

using Clock = std::chrono::steady_clock;

template <auto release>
struct Release {
  template <typename T>
  void operator()(T* held) const {
    release(held);
  }
};
using SslContext = std::unique_ptr<SSL_CTX, Release<SSL_CTX_free>>;
using Ssl = std::unique_ptr<SSL, Release<SSL_free>>;
using Certificate = std::unique_ptr<X509, Release<X509_free>>;
using Bio = std::unique_ptr<BIO, Release<BIO_free_all>>;

// First words of an HTTP/2 client: the preface, and an empty SETTINGS frame.
constexpr std::string_view kGreeting("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
constexpr size_t kFrameHeaderBytes = 9;
constexpr size_t kFrameTypeAt = 3;
constexpr char kSettingsFrame = 4;

std::string NameOf(const ProbeTarget& target) {
  return absl::StrContains(target.host, ':') ? absl::StrCat("[", target.host, "]:", target.port)
                                             : absl::StrCat(target.host, ":", target.port);
}

absl::Status Mistake(std::string_view reason, const std::string& message,
                     const std::map<std::string, std::string>& metadata = {}) {
  return MakeLocalError(absl::StatusCode::kFailedPrecondition, reason, message, metadata);
}

// A TCP connection, each of whose waits ends.
class Socket {
 public:
  Socket(const ProbeTarget& target, Clock::time_point until) : until_(until) { Connect(target); }
  ~Socket() {
    if (file_ >= 0) close(file_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Empty: it is connected.
  const std::string& failure() const { return failure_; }
  bool is_local() const { return is_local_; }
  // True if the other end has closed it.
  bool is_closed() const { return is_closed_; }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (sent < 0 && !Await(POLLOUT)) return false;
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Empty: the end, an error, or nothing in time.
  std::string Receive() {
    std::array<char, 4096> buffer;
    while (Await(POLLIN)) {
      const ssize_t read = recv(file_, buffer.data(), buffer.size(), 0);
      is_closed_ = read == 0 || (read < 0 && errno == ECONNRESET);
      if (read >= 0) return {buffer.data(), static_cast<size_t>(read)};
      if (errno != EAGAIN && errno != EINTR) break;
    }
    return "";
  }

 private:
  bool Await(short event) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - Clock::now());
    pollfd descriptor{.fd = file_, .events = event, .revents = 0};
    return left.count() > 0 && poll(&descriptor, 1, static_cast<int>(left.count())) > 0;
  }

  void Connect(const ProbeTarget& target) {
    const addrinfo hints{.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    addrinfo* found = nullptr;
    const int error = getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &found);
    if (error != 0) {
      failure_ = gai_strerror(error);
      return;
    }
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
      if (ConnectTo(*each)) break;
    }
    freeaddrinfo(found);
  }

  bool ConnectTo(const addrinfo& address) {
    if (file_ >= 0) close(file_);
    file_ = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = file_ < 0 || connect(file_, address.ai_addr, address.ai_addrlen) < 0 ? errno : 0;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      if (!Await(POLLOUT)) {
        error = ETIMEDOUT;
      } else if (getsockopt(file_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
      }
    }
    failure_ = error == 0 ? "" : std::generic_category().message(error);
    is_local_ = IsLoopback(*address.ai_addr);
    return error == 0;
  }

  static bool IsLoopback(const sockaddr& address) {
    constexpr uint32_t kNet = 127;
    if (address.sa_family == AF_INET) {
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
      return ntohl(v4.sin_addr.s_addr) >> 24 == kNet;
    }
    return address.sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  }

  const Clock::time_point until_;
  int file_ = -1;
  std::string failure_;
  bool is_local_ = false;
  bool is_closed_ = false;
};

// A TLS connection over a socket. OpenSSL's own writing would raise SIGPIPE.
class TlsConnection {
 public:
  TlsConnection(SSL_CTX* context, Socket& socket) : ssl_(SSL_new(context)), socket_(socket) {
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in_, -1);
    SSL_set_bio(ssl_.get(), in_, out_);
    SSL_set_connect_state(ssl_.get());
  }

  SSL* get() const { return ssl_.get(); }
  // All that came, before decryption.
  const std::string& received() const { return received_; }

  bool Handshake() {
    return Run([this] { return SSL_do_handshake(ssl_.get()); });
  }
  bool Write(std::string_view bytes) {
    return Run([&] { return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())); });
  }
  std::string Read() {
    std::array<char, 4096> buffer;
    int read = 0;
    const bool done = Run([&] {
      return read = SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()));
    });
    return done ? std::string(buffer.data(), static_cast<size_t>(read)) : "";
  }

 private:
  // Until `step` is done (above 0), or failed.
  template <typename Step>
  bool Run(Step step) {
    while (true) {
      ERR_clear_error();
      const int result = step();
      const int error = SSL_get_error(ssl_.get(), result);
      if (!Flush()) return false;
      if (result > 0) return true;
      if (error != SSL_ERROR_WANT_READ) return false;
      const std::string more = socket_.Receive();
      if (more.empty()) return false;
      received_ += more;
      BIO_write(in_, more.data(), static_cast<int>(more.size()));
    }
  }

  bool Flush() {
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(out_, &bytes);
    const bool sent = size <= 0 || socket_.Send({bytes, static_cast<size_t>(size)});
    BIO_reset(out_);
    return sent;
  }

  const Ssl ssl_;
  Socket& socket_;
  BIO* in_;   // the connection's
  BIO* out_;  // the connection's
  std::string received_;
};

bool LooksLikeTls(std::string_view bytes) {
  constexpr char kAlert = 0x15;
  constexpr char kHandshake = 0x16;
  return bytes.size() >= 3 && (bytes[0] == kAlert || bytes[0] == kHandshake) && bytes[1] == 3;
}

bool LooksLikeHttp1(std::string_view bytes) { return bytes.substr(0, 7) == "HTTP/1."; }

bool LooksLikeHttp2(std::string_view bytes) {
  return bytes.size() >= kFrameHeaderBytes && bytes[kFrameTypeAt] == kSettingsFrame;
}

absl::Status NoGrpc(const std::string& name) {
  return Mistake("SERVER_SPEAKS_NO_GRPC",
                 absl::StrCat("what listens at ", name,
                              " speaks HTTP/1, not gRPC: is that the port of its pages?"));
}

absl::Status NoTls(const std::string& name) {
  return Mistake("SERVER_SPEAKS_NO_TLS",
                 absl::StrCat("the server at ", name, " speaks no TLS, and was spoken to over it"));
}

// Probe of a client that speaks in clear.
absl::Status ProbeInClear(const std::string& name, Socket& socket, bool has_token) {
  const SslContext context(SSL_CTX_new(TLS_client_method()));
  TlsConnection tls(context.get(), socket);
  tls.Handshake();
  const std::string_view answer = tls.received();
  if (LooksLikeTls(answer)) {
    return Mistake("SERVER_SPEAKS_TLS",
                   absl::StrCat("the server at ", name, " speaks TLS, and was spoken to in clear"));
  }
  if (LooksLikeHttp1(answer)) return NoGrpc(name);
  if (has_token && !socket.is_local()) {
    return Mistake("TOKEN_NEEDS_TLS", absl::StrCat("a token is not sent in clear to another "
                                                   "machine, which ",
                                                   name, " is"));
  }
  return absl::OkStatus();
}

absl::Status BadCredentials(const std::string& what) {
  return Mistake("CLIENT_CREDENTIALS_INVALID", what);
}

Bio TextBio(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::Status UseRoots(SSL_CTX* context, const std::string& roots) {
  if (roots.empty()) {
    SSL_CTX_set_default_verify_paths(context);
    return absl::OkStatus();
  }
  const Bio bio = TextBio(roots);
  int count = 0;
  while (const Certificate root{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), root.get());
    ++count;
  }
  if (count > 0) return absl::OkStatus();
  return BadCredentials("the certificates of authorities to believe hold no certificate in PEM");
}

absl::Status UseCertificate(SSL_CTX* context, const ClientCredentials& credentials) {
  if (credentials.certificate.empty() && credentials.private_key.empty()) return absl::OkStatus();
  const Bio bio = TextBio(credentials.certificate);
  const Certificate own(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1)
    return BadCredentials("the client's certificate holds no certificate in PEM");
  while (X509* const next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))
    SSL_CTX_add_extra_chain_cert(context, next);
  using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;
  const Bio key_bio = TextBio(credentials.private_key);
  // An encrypted key must not ask at the terminal.
  char no_password[] = "";
  const Key key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, no_password));
  if (key == nullptr)
    return BadCredentials("the client's key holds no key in PEM that needs no password");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    return BadCredentials("the client's key is not that of its certificate");
  return absl::OkStatus();
}

void CheckName(SSL* ssl, const std::string& host) {
  X509_VERIFY_PARAM* const checks = SSL_get0_param(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(checks, host.c_str()) == 1) return;
  std::string name = host;  // the library's macro for this casts const away
  SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  X509_VERIFY_PARAM_set1_host(checks, host.c_str(), 0);
}

// The names and addresses in a certificate, separated by commas.
std::string NamesIn(X509* certificate) {
  using Names = std::unique_ptr<GENERAL_NAMES, Release<GENERAL_NAMES_free>>;
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string text;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    std::array<char, INET6_ADDRSTRLEN> address{};
    std::string one;
    if (name->type == GEN_DNS) {
      one.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                 static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      const bool is_v4 = ASN1_STRING_length(name->d.iPAddress) == 4;
      inet_ntop(is_v4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(name->d.iPAddress),
                address.data(), address.size());
      one = address.data();
    }
    if (!one.empty()) absl::StrAppend(&text, text.empty() ? "" : ", ", one);
  }
  return text;
}

std::string IssuerOf(X509* certificate) {
  std::array<char, 256> text{};
  X509_NAME_oneline(X509_get_issuer_name(certificate), text.data(), text.size());
  return text.data();
}

// Fault of the server's certificate; OK: none.
absl::Status JudgeCertificate(const std::string& name, const TlsConnection& tls,
                              const std::string& host) {
  const Certificate shown(SSL_get1_peer_certificate(tls.get()));
  const long verdict = SSL_get_verify_result(tls.get());
  if (shown == nullptr || verdict == X509_V_OK) return absl::OkStatus();
  const std::string why = X509_verify_cert_error_string(verdict);
  if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    const std::string names = NamesIn(shown.get());
    return Mistake("SERVER_NAME_MISMATCH",
                   absl::StrCat("the certificate of the server at ", name, " is for ",
                                names.empty() ? "no name" : names, ", not for ", host),
                   {{"names", names}});
  }
  if (verdict == X509_V_ERR_CERT_HAS_EXPIRED || verdict == X509_V_ERR_CERT_NOT_YET_VALID) {
    return Mistake("SERVER_CERTIFICATE_EXPIRED",
                   absl::StrCat("the certificate of the server at ", name,
                                " is not good today by this machine's clock: ", why));
  }
  return Mistake("SERVER_CERTIFICATE_UNTRUSTED",
                 absl::StrCat("the certificate of the server at ", name, " is not trusted: ", why,
                              " (issued by ", IssuerOf(shown.get()), ")"));
}

// Objection of the server to us after it showed its own certificate; OK: none is known.
// `is_closed`: the server ended the connection. gRPC's does without a word where it does not take
// the certificate.
absl::Status JudgeRefusal(const std::string& name, bool was_asked, bool has_certificate,
                          bool is_closed) {
  const unsigned long error = ERR_peek_last_error();
  const bool is_alert = ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) >= 1000;
  if (!was_asked) return absl::OkStatus();
  if (!has_certificate) {
    return Mistake("CLIENT_CERTIFICATE_MISSING",
                   absl::StrCat("the server at ", name, " asks for a client's certificate"));
  }
  if (!is_alert && !is_closed) return absl::OkStatus();
  return Mistake(
      "CLIENT_CERTIFICATE_REFUSED",
      absl::StrCat("the server at ", name, " refuses the client's certificate: ",
                   is_alert ? ERR_reason_error_string(error) : "it closes the connection"));
}

// Probe of a client that speaks TLS.
absl::Status ProbeTls(const ProbeTarget& target, const std::string& name, SSL_CTX* context,
                      Socket& socket, bool has_certificate) {
  TlsConnection tls(context, socket);
  bool was_asked = false;
  SSL_set_cert_cb(
      tls.get(),
      [](SSL*, void* asked) {
        *static_cast<bool*>(asked) = true;
        return 1;
      },
      &was_asked);
  CheckName(tls.get(), target.host);
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(tls.get(), kHttp2, sizeof kHttp2);
  const bool is_met = tls.Handshake();
  if (LooksLikeHttp1(tls.received())) return NoTls(name);
  if (LooksLikeHttp2(tls.received()) && !LooksLikeTls(tls.received())) return NoTls(name);
  if (!tls.received().empty() && !LooksLikeTls(tls.received())) return absl::OkStatus();
  if (absl::Status judged = JudgeCertificate(name, tls, target.host); !judged.ok()) return judged;
  if (!is_met) return JudgeRefusal(name, was_asked, has_certificate, socket.is_closed());
  // Who refuses a certificate says so behind the handshake, and what is sent meanwhile would reset
  // the connection and lose it; who takes it speaks first, too.
  std::string answer = was_asked ? tls.Read() : "";
  if (answer.empty() && tls.Write(kGreeting)) answer = tls.Read();
  if (LooksLikeHttp2(answer)) return absl::OkStatus();
  if (LooksLikeHttp1(answer)) return NoGrpc(name);
  return JudgeRefusal(name, was_asked, has_certificate, socket.is_closed());
}

bool IsProxied() {
  const char* const names[] = {"grpc_proxy", "https_proxy", "http_proxy"};
  return std::any_of(std::begin(names), std::end(names), [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0';
  });
}

}  // namespace

std::optional<ProbeTarget> ProbeTargetOf(const std::string& target) {
  std::string_view rest = target;
  for (const std::string_view scheme : {"dns:///", "dns:", "ipv4:", "ipv6:"}) {
    if (rest.substr(0, scheme.size()) == scheme) {
      rest.remove_prefix(scheme.size());
      break;
    }
  }
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || rest.find('/') != std::string_view::npos ||
      rest.find(',') != std::string_view::npos)
    return std::nullopt;
  std::string_view host = rest.substr(0, colon);
  const std::string_view port = rest.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;
  }
  const bool is_number = !port.empty() && std::all_of(port.begin(), port.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
  if (host.empty() || !is_number) return std::nullopt;
  return ProbeTarget{.host = std::string(host), .port = std::string(port)};
}

absl::Status ProbeServer(const ProbeTarget& target, const ClientCredentials& credentials,
                         std::chrono::nanoseconds patience) {
  const std::string name = NameOf(target);
  const SslContext context(SSL_CTX_new(TLS_client_method()));
  if (UsesTls(credentials)) {
    absl::Status usable = UseRoots(context.get(), credentials.root_certificates);
    if (usable.ok()) usable = UseCertificate(context.get(), credentials);
    if (!usable.ok()) return usable;
  }
  Socket socket(target, Clock::now() + std::chrono::duration_cast<Clock::duration>(patience));
  if (!socket.failure().empty()) {
    return MakeLocalError(absl::StatusCode::kUnavailable, "SERVER_UNREACHABLE",
                          absl::StrCat("no server answers at ", name, ": ", socket.failure()));
  }
  return UsesTls(credentials)
             ? ProbeTls(target, name, context.get(), socket, !credentials.certificate.empty())
             : ProbeInClear(name, socket, !credentials.token.empty());
}

UnreachableServer::UnreachableServer(const ClientOptions& options)
    : server_(options.server),
      target_(IsProxied() ? std::nullopt : ProbeTargetOf(options.server)),
      credentials_(options.credentials) {}

absl::Status UnreachableServer::Explain(const absl::Status& status, std::chrono::nanoseconds left) {
  if (!absl::IsUnavailable(status) || !GetErrorDetails(status).reason.empty()) return status;
  if (absl::StrContains(status.message(), "DNS resolution failed")) {
    return MakeLocalError(absl::StatusCode::kUnavailable, "SERVER_UNREACHABLE",
                          absl::StrCat("the name of the server ", server_, " is not known here"));
  }
  if (!target_) return status;
  constexpr std::chrono::nanoseconds kPatience = std::chrono::seconds(2);
  constexpr std::chrono::seconds kKnownFor(1);
  const std::lock_guard lock(mutex_);
  if (Clock::now() >= known_until_) {
    known_ = ProbeServer(*target_, credentials_, std::min(kPatience, left));
    known_until_ = Clock::now() + kKnownFor;
  }
  return known_.ok() ? status : known_;
}

}  // namespace stepcast::client
