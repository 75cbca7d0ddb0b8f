// Conversions between the messages of JobService and google.longrunning.Operations and their plain
// requests and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "google/longrunning/operations.pb.h"

#include "server/convert/stored_requests.h"
#include "stepcast/v1/job_service.pb.h"

namespace stepcast::server {

// The method whose requests are such messages: "PredictThroughput".
std::string_view MethodNameOf(const google::protobuf::Descriptor& request);
// The request of the method that a job is to compute; null: none was given.
const google::protobuf::Message* ComputationOf(const v1::StartJobRequest& wire);

// The request_id of any call: a UUID in small letters, which is the same in capitals (RFC 4122);
// what is none as it is.
std::string RequestIdFromWire(const std::string& text);

// The bytes to be kept are the message without its request_id, the same for equal ones.
StartJobCall FromWire(const v1::StartJobRequest& wire);
ListOperationsCall FromWire(const google::longrunning::ListOperationsRequest& wire);
WaitOperationCall FromWire(const google::longrunning::WaitOperationRequest& wire);

// One that is done without a result has the error that its state stands for.
google::longrunning::Operation ToWire(const StoredOperation& operation);
google::longrunning::ListOperationsResponse ToWire(const ListOperationsAnswer& answer);

// The form in which an operation's error is kept: a serialised google.rpc.Status. REQUIRES:
// !status.ok().
std::string ErrorBytes(const absl::Status& status);

}  // namespace stepcast::server
