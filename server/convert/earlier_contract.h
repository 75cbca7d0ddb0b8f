// Messages of the contract as it was before 2026-11-22, when a scenario's fields were flat and a
// warning was a text.
//
// Stored operations keep requests and replies as bytes; what was stored then is read as it would be
// written now. What a caller sends must be of today's contract. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "google/protobuf/message.h"

#include "core/model/fault_list.h"

namespace stepcast::server {

// Rewrites every scenario and every warning in the message. False where it is of today already.
bool UpgradeStored(google::protobuf::Message& message);

// The same for the bytes of a message of that full name; other bytes, and bytes that are none, are
// returned as they are.
std::string UpgradedBytes(std::string_view full_name, std::string bytes);

// Every field of the former contract that a caller has set in a scenario of the message, and what
// it is called now: else it would be ignored silently.
//
// `path`: of the message in the request; empty: it is the request. Profiles have no scenarios and
// are not looked into.
void RefuseFormerFields(const google::protobuf::Message& message, const std::string& path,
                        FaultList& faults);

}  // namespace stepcast::server
