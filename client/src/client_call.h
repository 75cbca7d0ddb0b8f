// What the methods of Client and JobClient have in common: from options to a call, and from its
// reply to a struct.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/src/connection.h"
#include "client/src/request_id.h"

#include "stepcast/client_options.h"

namespace stepcast::client {

inline Call InForce(const ClientOptions& client, const CallOptions& call) {
  return {.timeout = call.timeout.value_or(client.timeout),
          .retry = call.retry.value_or(client.retry)};
}

inline std::string Identified(const std::string& request_id) {
  return request_id.empty() ? NewRequestId() : request_id;
}

// Not a reference: a StatusOr that failed has nothing to convert.
template <typename Struct, typename Message>
absl::StatusOr<Struct> Converted(const absl::StatusOr<Message>& reply) {
  if (!reply.ok()) return reply.status();
  Struct result;
  FromProto(*reply, result);
  return result;
}

}  // namespace stepcast::client
