// Errors that replies carry, between statuses and messages.
//
// ToProto fills a message that is empty before.
#pragma once

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"

namespace stepcast::client {

// Details travel as the payloads of a status, by their type: see wire_status.h. A status gives them
// in random order; here they come in the order of their types, but ErrorInfo first, as the server
// writes it.
void ToProto(const absl::Status& from, google::rpc::Status& to);
void FromProto(const google::rpc::Status& from, absl::Status& to);

}  // namespace stepcast::client
