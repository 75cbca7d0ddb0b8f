// Messages whose bytes are the same each time.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace stepcast::client {

// The binary form, in which maps have an order only here.
std::string DeterministicBytes(const google::protobuf::Message& message);

}  // namespace stepcast::client
