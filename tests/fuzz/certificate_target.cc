// The files a server's TLS is made of: one text that is its certificate, its key, and what clients'
// certificates are signed by.
#include <string>
#include <utility>

#include "server/security/certificate.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/text_mutator.h"

namespace stepcast::fuzz {

namespace {

constexpr int64_t kNow = 1'800'000'000;  // 2027

// Signed by itself, for a hundred years, and of no use elsewhere.
constexpr char kPem[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBkjCCATmgAwIBAgIUHBVrlqgywIFHqarS3nX/QNHJgD0wCgYIKoZIzj0EAwIw\n"
    "EzERMA8GA1UEAwwIc3RlcGNhc3QwIBcNMjYxMTIxMjMzNjA5WhgPMjEyNjEwMjgy\n"
    "MzM2MDlaMBMxETAPBgNVBAMMCHN0ZXBjYXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0D\n"
    "AQcDQgAEZ+AhlKe/Deft7ug8XHh5QeWvm/ZT7xNC846xTOgZEyKiP0h8TQcmPsT7\n"
    "7S2y7PH4pDrplKxbvowG+SOb0LEOVKNpMGcwHQYDVR0OBBYEFK4623ectreg9+Xm\n"
    "fjUxIhIp2D4iMB8GA1UdIwQYMBaAFK4623ectreg9+XmfjUxIhIp2D4iMA8GA1Ud\n"
    "EwEB/wQFMAMBAf8wFAYDVR0RBA0wC4IJbG9jYWxob3N0MAoGCCqGSM49BAMCA0cA\n"
    "MEQCIAtTg3uQmKq6f5/OCKEpSQrmJNDTae2MVgcYXOXhSGYLAiBaO1pECSqIvrOX\n"
    "BtyC6wiwx8PJn9G8W/w1Ol6bFCn67Q==\n"
    "-----END CERTIFICATE-----\n"
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgXojGPo7AF5ZvLYLk\n"
    "kwBBGU389P+lmrVW3r7ur8CcrlmhRANCAARn4CGUp78N5+3u6DxceHlB5a+b9lPv\n"
    "E0LzjrFM6BkTIqI/SHxNByY+xPvtLbLs8fikOumUrFu+jAb5I5vQsQ5U\n"
    "-----END PRIVATE KEY-----\n";

class CertificateTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override { return {kPem}; }

  bool Run(std::string_view input) override {
    const server::PemFile file{.path = "all.pem", .text = std::string(input)};
    const auto facts =
        server::CheckCertificates({.certificate = file, .key = file, .client_ca = file}, kNow);
    if (!facts.ok()) {
      DemandSoundRefusal(facts.status());
      return false;
    }
    Demand(facts->expiry_unix_seconds > kNow, "what is fit to serve with has not expired");
    return true;
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateText(std::move(input), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<CertificateTarget>(); }

}  // namespace stepcast::fuzz
