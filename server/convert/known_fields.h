// The fields of a message that this server does not know. They would be ignored silently, so a
// request that sets one is refused.
#pragma once

#include <google/protobuf/message.h>

#include <vector>

#include "absl/status/status.h"

#include "core/base/error.h"

namespace stepcast::server {

// A fault, at its path, for each field that `message` or a message in it has and its type has not.
// Cost: a look at each message in it. Threads: pure function.
std::vector<Fault> UnknownFields(const google::protobuf::Message& message);

// INVALID_ARGUMENT, reason REQUEST_INVALID, with those faults.
absl::Status CheckFieldsAreKnown(const google::protobuf::Message& message);

}  // namespace stepcast::server
