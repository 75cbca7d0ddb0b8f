// The name of one server process among those on its store.
#pragma once

#include <string>

namespace stepcast::server {

// A name that no other replica has, and no earlier process of this one had: `given`, or the host's
// name, and some random digits.
std::string ReplicaId(const std::string& given);

}  // namespace stepcast::server
