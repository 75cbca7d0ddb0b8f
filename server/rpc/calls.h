// The three kinds of call, with one request and one reply, answered by a stream, and uploads, and
// the state that they have in common.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/message_lite.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/error.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/handlers/expected_work.h"
#include "server/jobs/cancellation.h"
#include "server/jobs/flights.h"
#include "server/jobs/job_admission.h"
#include "server/jobs/job_pool.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/grpc_wire.h"

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

// The state that a unary call and an upload have in common: whether to go on, what the call may
// hold and take, and who is told of its failure.
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
  // The client that turns, shares and quotas are of.
  std::string client() const;
  // The time at which the call is given up, so that why arrives; none: it has no deadline.
  std::optional<int64_t> end_ns() const { return end_ns_; }
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
  const std::optional<int64_t> end_ns_;
  Cancellation cancellation_;
  ByteBudget::Share bytes_;
  std::optional<JobLimit> job_limit_;
};

// The bytes of an answer, for the call that it was computed for and for all others.
struct SharedReply {
  grpc::ByteBuffer computed;
  grpc::ByteBuffer shared;  // says that it is `cached`
};

using SharedReplyPointer = std::shared_ptr<const SharedReply>;

// A unary call as gRPC hands it over.
struct UnaryWire {
  std::string_view method;  // GetProfile
  grpc::CallbackServerContext* context;
  const grpc::ByteBuffer* request;
  grpc::ByteBuffer* reply;
};

// One unary call: a reactor that hands its work to job pools, part after part, and writes the
// reply.
//
// Request and reply are raw bytes, so that parsing a large one does not hold up gRPC's own threads,
// and so that malformed ones are refused as every other bad request is. Lifetime: deletes itself
// when gRPC is done with it; not to be touched after Finish. Threads: the parts run one after the
// other; cancellation may come at any time.
class UnaryCall final : public grpc::ServerUnaryReactor, public Waiter<SharedReplyPointer> {
 public:
  // A part of the work. Ends with exactly one of Reply, Fail and SharedAnswers::Answer.
  using Part = absl::AnyInvocable<void(UnaryCall&) &&>;

  // `service`: stepcast.v1.ProfileService.
  UnaryCall(const CallEnvironment& environment, std::string_view service, const UnaryWire& wire);

  // `prefix` and the request's bytes, where these are no more than `max_bytes`; else empty.
  std::string BytesAfter(std::string prefix, size_t max_bytes) const;
  // Runs the first part on the pool for the store, unless the caller is not admitted or the
  // requests under way hold too many bytes already.
  void Start(Part part);

  absl::Status Read(google::protobuf::Message& message);
  void Reply(const google::protobuf::MessageLite& message);
  void Reply(const grpc::ByteBuffer& bytes);
  void Fail(const absl::Status& status);

  CallState& state() { return state_; }

  // The check of a call that waits for a shared answer.
  absl::Status Check() const override { return state_.Check(); }
  void Tell(const absl::StatusOr<SharedReplyPointer>& result, bool is_first) override;

  void OnCancel() override { state_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  CallState state_;
  const grpc::ByteBuffer& request_;
  grpc::ByteBuffer& reply_;
};

// Has `part` end a new call, with the parsed request, on the pool for the store.
template <typename Request, typename Part>
UnaryCall* StartUnary(const CallEnvironment& environment, std::string_view service,
                      const UnaryWire& wire, Part part) {
  auto* call = new UnaryCall(environment, service, wire);
  call->Start([part = std::move(part)](UnaryCall& started) {
    Request message;
    const absl::Status parsed = started.Read(message);
    if (!parsed.ok()) return started.Fail(parsed);
    part(started, message);
  });
  return call;
}

// One call that is answered by a stream: a reactor that hands its work to job pools, part after
// part, and writes what they give it.
//
// Back-pressure: kMaxWaiting messages wait for the caller to take them; with so many, Write blocks
// the job's thread. Request, lifetime and threads: as UnaryCall. A part must not touch the call
// after End.
class StreamCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  static constexpr size_t kMaxWaiting = 4;

  // A part of the work. Ends with exactly one of End and Compute.
  using Part = absl::AnyInvocable<void(StreamCall&) &&>;

  StreamCall(const CallEnvironment& environment, const CalledMethod& method,
             const grpc::CallbackServerContext& context, const grpc::ByteBuffer& request);

  // Runs the first part on the pool for the store, unless the caller is not admitted or the
  // requests under way hold too many bytes already.
  void Start(Part part);
  // Runs `part` on the pool for simulations, unless that refuses it or the caller has gone
  // meanwhile: then the call ends.
  void Compute(const ExpectedWork& work, Part part);

  absl::Status Read(google::protobuf::Message& message);
  // Waits until there is room, and hands the message on. Failure: what CallState::Check says,
  // CANCELLED for a broken stream.
  absl::Status Write(const google::protobuf::MessageLite& message);
  // Ends the call. Messages that were handed on are written before an OK; before any other status
  // they are dropped.
  void End(const absl::Status& status);

  CallState& state() { return state_; }

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  enum class Admission { kTaken, kFull, kBroken };

  // Moves from `message` only if it is taken. Where there is no room, waits a while for some.
  Admission Enqueue(grpc::ByteBuffer& message);

  CallState state_;
  const grpc::ByteBuffer& request_;
  Mutex mutex_;
  CondVar changed_;  // there is room, or never will be
  // The first one is being written if `writing_`; gRPC takes one at a time.
  std::deque<grpc::ByteBuffer> waiting_ STEPCAST_GUARDED_BY(mutex_);
  bool writing_ STEPCAST_GUARDED_BY(mutex_) = false;
  bool broken_ STEPCAST_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> end_ STEPCAST_GUARDED_BY(mutex_);
};

// One call that uploads bytes: first a header, then chunks, then one reply.
//
// Content: what becomes of the messages after the header, CollectedBytes or SpooledImport; its
// Request says which call it is. The bytes are collected, within limits, and handed on only once
// the caller has ended the stream itself. A stream that broke looks the same to a reader at first,
// so before anything is done the initial metadata is sent, which fails on a broken stream. Lifetime
// and threads: as UnaryCall.
template <typename Content>
class UploadCall final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  using Request = typename Content::Request;
  using Header = typename Request::Header;
  using Reply = std::unique_ptr<google::protobuf::MessageLite>;
  // The work on a complete upload, on the pool for the store.
  using Work = absl::AnyInvocable<absl::StatusOr<Reply>(const Header& header, Content& content,
                                                        CallState& state) &&>;

  UploadCall(const CallEnvironment& environment, const CalledMethod& method,
             const grpc::CallbackServerContext& context, grpc::ByteBuffer& reply, Work work)
      : state_(environment, method, context),
        reply_(reply),
        work_(std::move(work)),
        header_bytes_(environment.budget),
        content_(std::in_place, environment) {
    if (state_.admitted().ok()) {
      StartRead(&message_);
    } else {
      End(state_.admitted());
    }
  }

  void OnReadDone(bool ok) override {
    const absl::Status status = ok ? Take() : CheckComplete();
    if (!status.ok()) return End(status);
    if (ok) {
      StartRead(&message_);
    } else {
      StartSendInitialMetadata();
    }
  }

  void OnSendInitialMetadataDone(bool ok) override {
    if (!ok) state_.Cancel();
    const absl::Status submitted = state_.environment().store_jobs.Submit([this] { End(Run()); });
    if (!submitted.ok()) End(submitted);
  }

  void OnCancel() override { state_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  // Ends the call, and before that gives back what was taken, so that a caller who knows of the end
  // can count on it.
  void End(const absl::Status& status) {
    content_.reset();
    header_.reset();
    state_.bytes().Release();
    header_bytes_.Release();
    Finish(state_.Failed(status));
  }

  absl::Status Take() {
    Request request;
    ByteBudget::Share while_read(state_.environment().budget);
    absl::Status parsed = state_.Read(message_, request, while_read);
    const auto size = static_cast<int64_t>(message_.Length());
    message_.Clear();
    if (!parsed.ok()) return parsed;
    if (request.has_header()) {
      if (header_) return Misplaced("header", "a second header");
      header_ = std::move(*request.mutable_header());
      return header_bytes_.Add(size + while_read.bytes());
    }
    if (!header_) return Misplaced("header", "the first message must be the header");
    return content_->Add(*header_, request, state_.bytes());
  }

  absl::Status CheckComplete() const {
    return header_ ? absl::OkStatus() : Misplaced("header", "the stream ended before its header");
  }

  static absl::Status Misplaced(const char* field, const char* description) {
    return FaultsError("REQUEST_INVALID", {{.field = field, .description = description}});
  }

  absl::Status Run() {
    if (absl::Status go_on = state_.Check(); !go_on.ok()) return go_on;
    absl::StatusOr<Reply> reply = std::move(work_)(*header_, *content_, state_);
    return reply.ok() ? SerializeMessage(**reply, reply_) : reply.status();
  }

  CallState state_;
  grpc::ByteBuffer& reply_;
  Work work_;
  grpc::ByteBuffer message_;
  std::optional<Header> header_;
  ByteBudget::Share header_bytes_;
  std::optional<Content> content_;  // until the end
};

}  // namespace stepcast::server
