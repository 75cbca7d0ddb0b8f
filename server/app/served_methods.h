// Every method the server answers, for its metrics.
#pragma once

#include <string>
#include <vector>

#include "server/metrics/call_metrics.h"

namespace stepcast::server {

// From the descriptors that are compiled in, so that a new method cannot be forgotten.
std::vector<MethodLabels> ServedMethods();

// The names of all services, for reflection; sorted.
std::vector<std::string> AllServices();

// The names of this service's own gRPC services, which health is reported for.
std::vector<std::string> ServedServices();

}  // namespace stepcast::server
