// Any message of the contract: its bytes, the same for the same content, and the fields in it that
// this server does not know.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/message_lite.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "core/base/error.h"

namespace stepcast::server {

// The fields of a message that this server does not know. They would be ignored silently, so a
// request that sets one is refused.

// A fault, at its path, for each field that `message` or a message in it has and its type has not.
// Cost: a look at each message in it. Threads: pure function.
std::vector<Fault> UnknownFields(const google::protobuf::Message& message);

// INVALID_ARGUMENT, reason REQUEST_INVALID, with those faults.
absl::Status CheckFieldsAreKnown(const google::protobuf::Message& message);

// The serialisation of a message that is the same for the same content: what digests and keys are
// of. Maps are in the order of their keys. The same within one version of protobuf's library, which
// digests that are stored rely on; a test pins one.
std::string DeterministicBytes(const google::protobuf::MessageLite& message);

}  // namespace stepcast::server
