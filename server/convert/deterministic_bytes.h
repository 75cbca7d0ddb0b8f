// The serialisation of a message that is the same for the same content: what digests and keys are
// of.
#pragma once

#include <google/protobuf/message_lite.h>

#include <string>

namespace stepcast::server {

// Maps are in the order of their keys. The same within one version of protobuf's library, which
// digests that are stored rely on; a test pins one.
std::string DeterministicBytes(const google::protobuf::MessageLite& message);

}  // namespace stepcast::server
