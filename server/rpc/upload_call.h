// One call that uploads bytes: first a header, then chunks, then one reply.
//
// Content: what becomes of the messages after the header, CollectedBytes or SpooledImport; its
// Request says which call it is. The bytes are collected, within limits, and handed on only once
// the caller has ended the stream itself. A stream that broke looks the same to a reader at first,
// so before anything is done the initial metadata is sent, which fails on a broken stream. Lifetime
// and threads: as UnaryCall.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/error.h"
#include "server/rpc/byte_budget.h"
#include "server/rpc/call_state.h"
#include "server/rpc/grpc_wire.h"

namespace stepcast::server {

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
