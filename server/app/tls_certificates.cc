#include "server/app/tls_certificates.h"

#include <fcntl.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

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

}  // namespace stepcast::server
