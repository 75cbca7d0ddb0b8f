#include "server/security/certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"

namespace stepcast::server {

namespace {

template <auto Free>
struct Freed {
  template <typename Value>
  void operator()(Value* value) const {
    Free(value);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

absl::Status Unfit(const PemFile& file, const std::string& why) {
  return FaultsError("CERTIFICATE_INVALID", {{.field = file.path, .description = why}});
}

Bio Open(const PemFile& file) {
  return Bio(BIO_new_mem_buf(file.text.data(), static_cast<int>(file.text.size())));
}

// Asked for a passphrase, the library would ask the terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return -1;
}

// All there are, in order; none if one of them is broken.
std::vector<Certificate> CertificatesIn(const PemFile& file) {
  std::vector<Certificate> found;
  bool was_asked = false;
  const Bio bio = Open(file);
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, &NoPassphrase, &was_asked))
    found.emplace_back(certificate);
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) found.clear();
  ERR_clear_error();
  return found;
}

int64_t UnixSeconds(const ASN1_TIME* time) {
  std::tm utc{};
  return ASN1_TIME_to_tm(time, &utc) == 1 ? static_cast<int64_t>(timegm(&utc)) : 0;
}

std::string UtcText(int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32] = "";
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc));
}

std::string SubjectOf(const X509& certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(&certificate), 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

absl::Status CheckTime(const PemFile& file, const X509& certificate, int64_t now) {
  const int64_t begin = UnixSeconds(X509_get0_notBefore(&certificate));
  const int64_t end = UnixSeconds(X509_get0_notAfter(&certificate));
  if (now >= end)
    return Unfit(file, absl::StrCat("the certificate of ", Quoted(SubjectOf(certificate)),
                                    " expired at ", UtcText(end)));
  if (now < begin)
    return Unfit(file, absl::StrCat("the certificate of ", Quoted(SubjectOf(certificate)),
                                    " is not valid before ", UtcText(begin)));
  return absl::OkStatus();
}

absl::StatusOr<Key> KeyIn(const PemFile& file) {
  bool is_encrypted = false;
  const Bio bio = Open(file);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassphrase, &is_encrypted));
  ERR_clear_error();
  if (is_encrypted)
    return Unfit(file,
                 "the key is encrypted; it must be plain, in a file that only the server reads");
  if (key == nullptr) return Unfit(file, "has no private key in PEM form");
  return key;
}

}  // namespace

absl::StatusOr<CertificateFacts> CheckCertificates(const CertificateFiles& files,
                                                   int64_t now_unix_seconds) {
  const std::vector<Certificate> chain = CertificatesIn(files.certificate);
  if (chain.empty())
    return Unfit(files.certificate, "has no certificate in PEM form, or a broken one");
  const absl::StatusOr<Key> key = KeyIn(files.key);
  if (!key.ok()) return key.status();
  const bool fits = X509_check_private_key(chain.front().get(), key->get()) == 1;
  ERR_clear_error();
  if (!fits)
    return Unfit(files.key,
                 absl::StrCat("is not the key of the certificate in ", files.certificate.path));
  CertificateFacts facts{
      .subject = SubjectOf(*chain.front()),
      .expiry_unix_seconds = UnixSeconds(X509_get0_notAfter(chain.front().get()))};
  for (const Certificate& each : chain) {
    if (absl::Status status = CheckTime(files.certificate, *each, now_unix_seconds); !status.ok())
      return status;
    facts.expiry_unix_seconds =
        std::min(facts.expiry_unix_seconds, UnixSeconds(X509_get0_notAfter(each.get())));
  }
  if (!files.client_ca.path.empty() && CertificatesIn(files.client_ca).empty())
    return Unfit(files.client_ca, "has no certificate in PEM form, or a broken one");
  return facts;
}

}  // namespace stepcast::server
