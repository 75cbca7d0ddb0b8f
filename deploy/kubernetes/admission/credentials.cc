#include "deploy/kubernetes/admission/credentials.h"

#include <sys/stat.h>

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "core/base/error.h"
#include "server/app/settings.h"

namespace stepcast::admission {

namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr size_t kMaxTokenBytes = 4096;

absl::Status FileFault(const std::string& path, const std::string& why, const char* reason) {
  return FaultsError(reason, {{.field = path, .description = why}});
}

// The text of a file; empty where there is none. `is_secret`: nobody else must know it.
absl::Status ReadInto(const std::string& path, const char* reason, bool is_secret,
                      std::string& text) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> read = server::ReadSmallFile(path, kMaxFileBytes);
  if (!read.ok()) return FileFault(path, std::string(read.status().message()), reason);
  struct stat facts {};
  if (is_secret && stat(path.c_str(), &facts) == 0 && (facts.st_mode & S_IRWXO) != 0) {
    return FileFault(path, "every user of the system may use it; `chmod o= FILE` mends that",
                     reason);
  }
  text = *std::move(read);
  return absl::OkStatus();
}

absl::Status ReadToken(const std::string& path, std::string& token) {
  constexpr char kReason[] = "TOKEN_INVALID";
  if (absl::Status read = ReadInto(path, kReason, /*is_secret=*/true, token); !read.ok())
    return read;
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (path.empty()) return absl::OkStatus();
  for (const char c : token) {
    if (c <= ' ' || c > '~') return FileFault(path, "has more than one word of ASCII", kReason);
  }
  if (token.empty() || token.size() > kMaxTokenBytes)
    return FileFault(path, absl::StrCat("has ", token.size(), " bytes, not 1 to ", kMaxTokenBytes),
                     kReason);
  return absl::OkStatus();
}

// The parts, told apart whatever is in them.
std::string Joined(std::initializer_list<const std::string*> parts) {
  std::string all;
  for (const std::string* part : parts) absl::StrAppend(&all, part->size(), ":", *part);
  return all;
}

}  // namespace

absl::StatusOr<Credentials> LoadCredentials(const AdmissionOptions& options,
                                            int64_t now_unix_seconds) {
  constexpr char kReason[] = "CERTIFICATE_INVALID";
  Credentials credentials;
  TlsIdentity& own = credentials.identity;
  client::ClientCredentials& shown = credentials.client;
  const std::tuple<const std::string*, bool, std::string*> files[] = {
      {&options.tls_cert, false, &own.certificate},
      {&options.tls_key, true, &own.key},
      {&options.tls_client_ca, false, &own.client_ca},
      {&options.server_ca, false, &shown.root_certificates},
      {&options.server_cert, false, &shown.certificate},
      {&options.server_key, true, &shown.private_key}};
  for (const auto& [path, is_secret, text] : files) {
    if (absl::Status read = ReadInto(*path, kReason, is_secret, *text); !read.ok()) return read;
  }
  if (absl::Status read = ReadToken(options.server_token_file, shown.token); !read.ok())
    return read;
  absl::StatusOr<server::CertificateFacts> facts =
      server::CheckCertificates({.certificate = {options.tls_cert, own.certificate},
                                 .key = {options.tls_key, own.key},
                                 .client_ca = {options.tls_client_ca, own.client_ca}},
                                now_unix_seconds);
  if (!facts.ok()) return facts.status();
  credentials.facts = *std::move(facts);
  credentials.identity_text = Joined({&own.certificate, &own.key, &own.client_ca});
  credentials.client_text =
      Joined({&shown.root_certificates, &shown.certificate, &shown.private_key, &shown.token});
  return credentials;
}

}  // namespace stepcast::admission
