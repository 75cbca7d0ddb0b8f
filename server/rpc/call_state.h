// The state that a unary call and an upload have in common: whether to go on, what the call may
// hold and take, and who is told of its failure.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"

#include "server/base/clock.h"
#include "server/handlers/expected_work.h"
#include "server/jobs/cancellation.h"
#include "server/jobs/job_admission.h"
#include "server/rpc/byte_budget.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/call_gate.h"

namespace stepcast::server {

// The time limit of one computation.
//
// Threads: safe.
class JobLimit {
 public:
  // The time counts from here.
  explicit JobLimit(const CallEnvironment& environment);

  // OK: go on. DEADLINE_EXCEEDED, reason JOB_TOO_LONG, once the job has taken max_job_seconds.
  absl::Status Check() const;

 private:
  const Clock* clock_;
  double max_seconds_;
  int64_t end_ns_;
};

class CallState {
 public:
  // Asks the gate, and takes the call's deadline from its context, which is borrowed.
  CallState(const CallEnvironment& environment, const CalledMethod& method,
            const grpc::CallbackServerContext& context);

  const CallEnvironment& environment() const { return environment_; }
  ByteBudget::Share& bytes() { return bytes_; }
  // OK, or why the call must end before it has done anything.
  const absl::Status& admitted() const { return admitted_; }
  // The caller's name; empty where it has none.
  std::string caller() const { return caller_ == nullptr ? "" : caller_->name; }
  // For a job of this call.
  JobTicket Ticket(const ExpectedWork& work) const;

  // Counts in `share` what `size` bytes take beyond that once they are parsed, which is `parsed` in
  // all. INVALID_ARGUMENT, reason MESSAGE_TOO_LARGE, if that is more than all requests together
  // may.
  absl::Status CountParsed(int64_t size, int64_t parsed, ByteBudget::Share& share) const;
  // ParseMessage up to the limit of a message, after CountParsed.
  absl::Status Read(const grpc::ByteBuffer& buffer, google::protobuf::Message& message,
                    ByteBudget::Share& share) const;

  // The caller has gone. Threads: any.
  void Cancel() { cancellation_.Cancel(); }
  // The time a job may take counts from now on. REQUIRES: before the job asks Check, on its thread.
  void StartJob() { job_limit_.emplace(environment_); }
  // OK: go on. CANCELLED, DEADLINE_EXCEEDED, up to 250 ms before the deadline so that it arrives,
  // or DEADLINE_EXCEEDED, reason JOB_TOO_LONG, once a started job has taken max_job_seconds.
  absl::Status Check() const;

  // The status for the wire, after whoever must know of it was told. REQUIRES: here and below, the
  // call has not been finished.
  grpc::Status Failed(const absl::Status& status) const;
  void Succeeded() const;

 private:
  CallLabels Labels() const;

  const CallEnvironment& environment_;
  const CalledMethod method_;
  const grpc::CallbackServerContext& context_;
  absl::Status admitted_;
  std::shared_ptr<const Caller> caller_;  // null: nameless
  const std::optional<int64_t> deadline_ns_;
  Cancellation cancellation_;
  ByteBudget::Share bytes_;
  std::optional<JobLimit> job_limit_;
};

}  // namespace stepcast::server
