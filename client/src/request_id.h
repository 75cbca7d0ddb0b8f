// Identifiers that make a repeated request harmless.
#pragma once

#include <string>

namespace stepcast::client {

// A random UUID (RFC 4122, version 4) in lower case, from the system's random device. Threads:
// safe.
std::string NewRequestId();

}  // namespace stepcast::client
