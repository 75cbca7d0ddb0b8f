#include "client/cli/flags/credential_flags.h"

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/input_files.h"

namespace stepcast::client {

namespace {

std::string OrVariable(const std::string& given, const char* name) {
  const char* const value = std::getenv(name);
  return given.empty() && value != nullptr ? value : given;
}

// `kind`: what the file must hold in PEM; empty: anything.
absl::Status ReadInto(const std::string& path, const std::string& kind, std::string& content) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> read = ReadSecretInput(path);
  if (!read.ok()) return read.status();
  if (!absl::StrContains(*read, absl::StrCat(kind, kind.empty() ? "" : "-----"))) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds no ", absl::AsciiStrToLower(kind), " in PEM"));
  }
  content = *std::move(read);
  return absl::OkStatus();
}

bool IsToken(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
}

}  // namespace

void CredentialFlags::Declare(CLI::App& app) {
  app.add_flag("--tls", use_tls_, "Use TLS with the system's certificate authorities");
  app.add_option(
         "--tls-ca", tls_ca_,
         "Use TLS with the authorities of this PEM file (or the environment's STEPCAST_TLS_CA)")
      ->type_name("FILE");
  CLI::Option* certificate =
      app.add_option("--tls-cert", tls_cert_, "Show the server this certificate, a PEM file")
          ->type_name("FILE");
  CLI::Option* key =
      app.add_option("--tls-key", tls_key_, "Its key, a PEM file")->type_name("FILE");
  certificate->needs(key);
  key->needs(certificate);
  app.add_option("--token-file", token_file_,
                 "Show the server the token in this file (or the environment's "
                 "STEPCAST_TOKEN_FILE); never in clear to another machine")
      ->type_name("FILE");
}

absl::StatusOr<ClientCredentials> CredentialFlags::Read() const {
  ClientCredentials credentials{.use_tls = use_tls_};
  const std::string token_file = OrVariable(token_file_, "STEPCAST_TOKEN_FILE");
  absl::Status status = ReadInto(OrVariable(tls_ca_, "STEPCAST_TLS_CA"), "CERTIFICATE",
                                 credentials.root_certificates);
  status.Update(ReadInto(tls_cert_, "CERTIFICATE", credentials.certificate));
  status.Update(ReadInto(tls_key_, "PRIVATE KEY", credentials.private_key));
  status.Update(ReadInto(token_file, "", credentials.token));
  if (!status.ok()) return status;
  absl::StripAsciiWhitespace(&credentials.token);
  if (!token_file.empty() && !IsToken(credentials.token)) {
    return absl::InvalidArgumentError(
        absl::StrCat(token_file, " must hold one token and nothing else"));
  }
  return credentials;
}

}  // namespace stepcast::client
