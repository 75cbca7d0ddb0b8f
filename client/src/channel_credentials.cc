#include "client/src/channel_credentials.h"

#include <grpc/grpc_security_constants.h>

#include <map>
#include <string>
#include <utility>

namespace stepcast::client {

namespace {

class TokenPlugin final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TokenPlugin(const std::string& token) : authorization_("Bearer " + token) {}
  bool IsBlocking() const override { return false; }
  grpc::Status GetMetadata(grpc::string_ref /*service_url*/, grpc::string_ref /*method_name*/,
                           const grpc::AuthContext& /*channel*/,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace("authorization", authorization_);
    return grpc::Status::OK;
  }

 private:
  const std::string authorization_;
};

}  // namespace

bool UsesTls(const ClientCredentials& options) {
  return options.use_tls || !options.root_certificates.empty() || !options.certificate.empty();
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const ClientCredentials& options) {
  if (UsesTls(options)) {
    std::shared_ptr<grpc::ChannelCredentials> channel =
        grpc::SslCredentials({.pem_root_certs = options.root_certificates,
                              .pem_private_key = options.private_key,
                              .pem_cert_chain = options.certificate});
    return options.token.empty() ? channel
                                 : grpc::CompositeChannelCredentials(
                                       channel, grpc::AccessTokenCredentials(options.token));
  }
  if (options.token.empty()) return grpc::InsecureChannelCredentials();
  // These are in clear as well, but make no connection that leaves the machine.
  return grpc::CompositeChannelCredentials(
      grpc::experimental::LocalCredentials(LOCAL_TCP),
      grpc::experimental::MetadataCredentialsFromPlugin(
          std::make_unique<TokenPlugin>(options.token), GRPC_SECURITY_NONE));
}

}  // namespace stepcast::client
