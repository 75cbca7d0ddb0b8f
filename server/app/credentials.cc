#include "server/app/credentials.h"

#include <sys/stat.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "server/app/listen_address.h"
#include "server/app/small_file.h"
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

}  // namespace stepcast::server
