// Messages of the contract as proto JSON, and back.
//
// Form: the proto3 JSON mapping with its lowerCamelCase names, indented by one space, ended by a
// newline. Fields without presence are always printed, also where they have their default; messages
// and `optional` fields only where they are set. As in all proto JSON, 64-bit integers are strings
// and durations are written "1.5s". Keys of maps are in ascending order, so that the same message
// gives the same text.
// Threads: pure functions; any number at once.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace stepcast::client {

// An Any names its type in "@type". Left out: one of a type that this program does not have, and
// times that are out of the bounds of proto JSON.
std::string ToJson(const google::protobuf::Message& message);

// Reads a message that is empty before, by either spelling of the fields' names. Failure:
// INVALID_ARGUMENT, reason REQUEST_UNREADABLE, with the fault that was found.
absl::Status FromJson(std::string_view json, google::protobuf::Message& message);

}  // namespace stepcast::client
