// Identifiers that make a repeated request harmless.
#pragma once

#include <string>

namespace stepcast::client {

// A random UUID (RFC 4122, version 4) in lower case, from the system's random device. Threads:
// safe.
std::string NewRequestId();

// Gives a request a new request_id where it has none.
template <typename Request>
void Identify(Request& request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
}

}  // namespace stepcast::client
