#include "server/app/server_security.h"

#include <fcntl.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "server/app/listen_address.h"
#include "server/app/settings.h"
#include "server/convert/sha256.h"

namespace stepcast::server {

namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;

absl::Status FlagFault(const std::string& flag, const std::string& why) {
  return FaultsError("FLAG_INVALID", {{.field = flag, .description = why}});
}

// A file whose content nobody else must know.
absl::Status CheckPrivate(const std::string& path, std::string_view reason) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0 || (facts.st_mode & S_IRWXO) == 0) return absl::OkStatus();
  return FaultsError(
      reason, {{.field = path,
                .description = "every user of the system may use it; `chmod o= FILE` mends that"}});
}

absl::StatusOr<std::string> Read(const std::string& path, std::string_view reason) {
  absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxFileBytes);
  if (!text.ok())
    return FaultsError(reason,
                       {{.field = path, .description = std::string(text.status().message())}});
  return text;
}

absl::Status LoadCertificates(const SecurityOptions& options, int64_t now,
                              Credentials& credentials) {
  constexpr char kCertificateInvalid[] = "CERTIFICATE_INVALID";
  const std::pair<const std::string*, PemFile*> files[] = {
      {&options.tls_cert, &credentials.certificates.certificate},
      {&options.tls_key, &credentials.certificates.key},
      {&options.tls_client_ca, &credentials.certificates.client_ca}};
  for (const auto& [path, file] : files) {
    if (path->empty()) continue;
    absl::StatusOr<std::string> text = Read(*path, kCertificateInvalid);
    if (!text.ok()) return text.status();
    *file = {.path = *path, .text = *std::move(text)};
  }
  if (absl::Status status = CheckPrivate(options.tls_key, kCertificateInvalid); !status.ok())
    return status;
  absl::StatusOr<CertificateFacts> facts = CheckCertificates(credentials.certificates, now);
  if (!facts.ok()) return facts.status();
  credentials.facts = *std::move(facts);
  return absl::OkStatus();
}

absl::StatusOr<Principals> ParsePrincipals(const std::string& path, const std::string& text) {
  absl::StatusOr<Principals> principals = Principals::Parse(text);
  if (principals.ok()) return principals;
  std::vector<Fault> faults = DetailsOf(principals.status()).faults;
  for (Fault& fault : faults)
    fault.field = absl::StrCat(path, fault.field.empty() ? "" : ":", fault.field);
  return FaultsError("TOKENS_INVALID", std::move(faults));
}

}  // namespace

absl::StatusOr<Credentials> LoadCredentials(const SecurityOptions& options,
                                            int64_t now_unix_seconds) {
  Credentials credentials;
  if (!options.tls_cert.empty()) {
    if (absl::Status status = LoadCertificates(options, now_unix_seconds, credentials);
        !status.ok())
      return status;
  }
  std::string tokens;
  if (!options.tokens.empty()) {
    absl::StatusOr<std::string> text = Read(options.tokens, "TOKENS_INVALID");
    if (!text.ok()) return text.status();
    if (absl::Status status = CheckPrivate(options.tokens, "TOKENS_INVALID"); !status.ok())
      return status;
    absl::StatusOr<Principals> principals = ParsePrincipals(options.tokens, *text);
    if (!principals.ok()) return principals.status();
    credentials.principals = std::make_shared<const Principals>(*std::move(principals));
    tokens = *std::move(text);
  }
  const CertificateFiles& files = credentials.certificates;
  credentials.digest =
      Sha256Hex(absl::StrCat(Sha256Hex(files.certificate.text), Sha256Hex(files.key.text),
                             Sha256Hex(files.client_ca.text), Sha256Hex(tokens)));
  return credentials;
}

absl::Status CheckExposure(const std::string& listen, const SecurityOptions& options) {
  const bool has_tls = !options.tls_cert.empty();
  if (has_tls != !options.tls_key.empty())
    return FlagFault(has_tls ? "--tls-key" : "--tls-cert",
                     "--tls-cert and --tls-key need each other");
  if (!options.tls_client_ca.empty() && !has_tls)
    return FlagFault("--tls-client-ca", "needs --tls-cert and --tls-key");
  if (options.allow_insecure || IsLoopback(listen)) return absl::OkStatus();
  const std::string beyond =
      absl::StrCat(Quoted(listen), " can be reached from beyond this machine, and ");
  if (!has_tls)
    return FlagFault(
        "--listen",
        absl::StrCat(
            beyond,
            "would be served in clear: give --tls-cert and --tls-key, or --allow-insecure"));
  if (options.tls_client_ca.empty() && options.tokens.empty()) {
    return FlagFault(
        "--listen",
        absl::StrCat(
            beyond,
            "everybody might do everything: give --tokens, --tls-client-ca, or --allow-insecure"));
  }
  return absl::OkStatus();
}

namespace {

absl::Status Failed(const char* what) {
  return MakeError(
      absl::StatusCode::kUnavailable,
      absl::StrCat("cannot keep certificates in memory: ", what, ": ", std::strerror(errno)),
      {.reason = "TLS_FAILED"});
}

absl::Status WriteAll(int file, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written <= 0) return Failed("write");
    done += static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

}  // namespace

// A file without a directory, whose content changes at one instant.
class TlsCertificates::MemoryFile {
 public:
  MemoryFile() = default;
  ~MemoryFile() {
    if (file_ >= 0) close(file_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return absl::StrCat("/proc/self/fd/", file_); }

  absl::Status Set(const std::string& text) {
    const int next = memfd_create("stepcast-tls", MFD_CLOEXEC);
    if (next < 0) return Failed("memfd_create");
    absl::Status status = WriteAll(next, text);
    // A reader takes what it has read for one content if the file's time, in seconds, was the same
    // before and after: so each content has another.
    const timespec time{.tv_sec = ++generation_, .tv_nsec = 0};
    const timespec times[] = {time, time};
    if (status.ok() && futimens(next, times) != 0) status = Failed("futimens");
    if (status.ok() && file_ < 0) {
      file_ = next;
      return status;
    }
    if (status.ok() && dup3(next, file_, O_CLOEXEC) < 0) status = Failed("dup3");
    close(next);
    return status;
  }

 private:
  int file_ = -1;
  time_t generation_ = 0;
};

TlsCertificates::TlsCertificates() : identity_(std::make_unique<MemoryFile>()) {}

TlsCertificates::~TlsCertificates() = default;

absl::StatusOr<std::unique_ptr<TlsCertificates>> TlsCertificates::Create(
    const CertificateFiles& files) {
  std::unique_ptr<TlsCertificates> certificates(new TlsCertificates);
  if (!files.client_ca.path.empty()) certificates->client_ca_ = std::make_unique<MemoryFile>();
  if (absl::Status status = certificates->Replace(files); !status.ok()) return status;
  return certificates;
}

std::shared_ptr<grpc::ServerCredentials> TlsCertificates::Credentials() const {
  using grpc::experimental::FileWatcherCertificateProvider;
  const std::string identity = identity_->path();
  const std::string client_ca = client_ca_ == nullptr ? "" : client_ca_->path();
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<FileWatcherCertificateProvider>(identity, identity, client_ca,
                                                       static_cast<unsigned int>(kDelaySeconds)));
  options.watch_identity_key_cert_pairs();
  if (client_ca_ != nullptr) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

absl::Status TlsCertificates::Replace(const CertificateFiles& files) {
  if (client_ca_ != nullptr) {
    if (absl::Status status = client_ca_->Set(files.client_ca.text); !status.ok()) return status;
  }
  return identity_->Set(absl::StrCat(files.key.text, "\n", files.certificate.text));
}

namespace {

constexpr int64_t kSecondsPerDay = 86'400;
constexpr int64_t kWarnDays = 14;

int64_t UnixSeconds(const Clock& clock) { return clock.WallNs() / kNsPerSecond; }

absl::Status RestartNeeded(const char* flag) {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat(flag, " cannot be turned on or off while serving"),
                   {.reason = "RESTART_NEEDED"});
}

}  // namespace

ServerSecurity::ServerSecurity(Log& log, ServerMetrics& metrics, const Clock& clock)
    : log_(log),
      metrics_(metrics.security),
      clock_(clock),
      rejections_(log, metrics.rejections, clock),
      gate_(rejections_) {}

absl::StatusOr<std::unique_ptr<ServerSecurity>> ServerSecurity::Create(
    const SecurityOptions& options, Log& log, ServerMetrics& metrics, const Clock& clock) {
  std::unique_ptr<ServerSecurity> security(new ServerSecurity(log, metrics, clock));
  absl::StatusOr<Credentials> credentials = security->Load(options);
  if (!credentials.ok()) return credentials.status();
  if (credentials->facts) {
    absl::StatusOr<std::unique_ptr<TlsCertificates>> certificates =
        TlsCertificates::Create(credentials->certificates);
    if (!certificates.ok()) return certificates.status();
    security->certificates_ = *std::move(certificates);
  }
  security->options_ = options;
  security->Use(*credentials);
  return security;
}

std::shared_ptr<grpc::ServerCredentials> ServerSecurity::ListenerCredentials() const {
  return certificates_ == nullptr ? grpc::InsecureServerCredentials()
                                  : certificates_->Credentials();
}

absl::Status ServerSecurity::Reload(const SecurityOptions& options) {
  if (options.tls_cert.empty() != options_.tls_cert.empty()) return RestartNeeded("--tls-cert");
  if (options.tls_client_ca.empty() != options_.tls_client_ca.empty())
    return RestartNeeded("--tls-client-ca");
  absl::StatusOr<Credentials> credentials = Load(options);
  if (!credentials.ok()) return credentials.status();
  if (certificates_ != nullptr) {
    if (absl::Status status = certificates_->Replace(credentials->certificates); !status.ok())
      return status;
  }
  options_ = options;
  Use(*credentials);
  return absl::OkStatus();
}

void ServerSecurity::Refresh() {
  WarnOfExpiry();
  const absl::StatusOr<Credentials> credentials = Load(options_);
  if (credentials.ok() && credentials->digest == digest_) {
    failed_.clear();
    return;
  }
  const absl::Status status = credentials.ok() ? Reload(options_) : credentials.status();
  const std::string failed(status.message());
  if (!status.ok() && std::exchange(failed_, failed) == failed) return;
  metrics_.OnReload(status.ok());
  if (!status.ok()) return log_.Error("credentials not reloaded", {{"why", failed}});
  log_.Info("credentials reloaded");
}

absl::StatusOr<Credentials> ServerSecurity::Load(const SecurityOptions& options) const {
  return LoadCredentials(options, UnixSeconds(clock_));
}

void ServerSecurity::Use(const Credentials& credentials) {
  gate_.SetPrincipals(credentials.principals);
  digest_ = credentials.digest;
  failed_.clear();
  facts_ = credentials.facts;
  if (!facts_) return;
  metrics_.SetCertificateExpiry(facts_->expiry_unix_seconds);
  warned_day_ = 0;
  WarnOfExpiry();
}

void ServerSecurity::WarnOfExpiry() {
  if (!facts_) return;
  const int64_t now = UnixSeconds(clock_);
  const int64_t left = facts_->expiry_unix_seconds - now;
  if (left > kWarnDays * kSecondsPerDay ||
      std::exchange(warned_day_, now / kSecondsPerDay) == now / kSecondsPerDay)
    return;
  log_.Warning("certificate expires soon",
               {{"subject", facts_->subject}, {"days_left", absl::StrCat(left / kSecondsPerDay)}});
}

}  // namespace stepcast::server
