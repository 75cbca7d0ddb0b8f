#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "server/base/mutex.h"
#include "server/rpc/grpc_wire.h"
#include "server/rpc/services.h"

namespace stepcast::server {

namespace {

namespace health = grpc::health::v1;
using Serving = health::HealthCheckResponse::ServingStatus;
using HealthMethods = health::Health::WithRawCallbackMethod_Check<
    health::Health::WithRawCallbackMethod_Watch<health::Health::Service>>;

constexpr int64_t kMaxHealthRequestBytes = 4096;

}  // namespace

// Requests are raw bytes, so that malformed ones are refused as every other bad request is; gRPC
// itself calls a method with such a request unimplemented.
class HealthRpc::Service final : public HealthMethods {
 public:
  explicit Service(const std::vector<std::string>& services)
      : services_(services.begin(), services.end()) {
    services_.insert("");
  }

  void SetServing(bool serving) {
    MutexLock lock(mutex_);
    serving_ = serving;
    for (Watcher* watcher : watchers_) watcher->Tell(StatusOf(watcher->name()));
  }

  void EndWatches() {
    MutexLock lock(mutex_);
    ended_ = true;
    for (Watcher* watcher : watchers_) watcher->End();
  }

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    health::HealthCheckRequest asked;
    absl::Status status =
        ParseMessage(*request, kMaxHealthRequestBytes, asked, "health_request_bytes");
    if (status.ok() && services_.count(asked.service()) == 0)
      status = MakeError(absl::StatusCode::kNotFound,
                         Quoted(asked.service()) + " is not a service of this server",
                         {.reason = "SERVICE_NOT_FOUND",
                          .resource = {.type = "service", .name = Quoted(asked.service())}});
    if (status.ok()) status = SerializeMessage(Now(asked.service()), *reply);
    reactor->Finish(ToGrpcStatus(status));
    return reactor;
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Watch(grpc::CallbackServerContext* /*context*/,
                                                    const grpc::ByteBuffer* request) override {
    health::HealthCheckRequest asked;
    const absl::Status parsed =
        ParseMessage(*request, kMaxHealthRequestBytes, asked, "health_request_bytes");
    if (!parsed.ok()) return new Refusal(parsed);
    auto* watcher = new Watcher(*this, asked.service());
    MutexLock lock(mutex_);
    watchers_.insert(watcher);
    watcher->Tell(StatusOf(watcher->name()));
    if (ended_) watcher->End();
    return watcher;
  }

 private:
  class Refusal final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
   public:
    explicit Refusal(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
    void OnDone() override { delete this; }
  };

  // One Watch: writes a status, and each later one that differs from the last it wrote.
  class Watcher final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
   public:
    Watcher(Service& service, std::string name) : service_(service), name_(std::move(name)) {}

    const std::string& name() const { return name_; }

    void Tell(Serving status) {
      MutexLock lock(mutex_);
      next_ = status;
      Go();
    }

    void End() {
      MutexLock lock(mutex_);
      ended_ = true;
      Go();
    }

    void OnWriteDone(bool ok) override {
      MutexLock lock(mutex_);
      writing_ = false;
      gone_ = gone_ || !ok;
      Go();
    }

    void OnCancel() override {
      MutexLock lock(mutex_);
      gone_ = true;
      Go();
    }

    void OnDone() override {
      service_.Forget(this);
      delete this;
    }

   private:
    // Starts what is to be done next, if nothing is under way.
    void Go() STEPCAST_REQUIRES(mutex_) {
      if (writing_ || finished_) return;
      if (!gone_ && next_ && next_ != written_) {
        written_ = next_;
        health::HealthCheckResponse message;
        message.set_status(*next_);
        // A message of two bytes can be sent.
        (void)SerializeMessage(message, message_);
        writing_ = true;
        StartWrite(&message_);
      } else if (gone_ || ended_) {
        finished_ = true;
        const absl::Status why =
            gone_ ? MakeError(absl::StatusCode::kCancelled, "the watch was cancelled",
                              {.reason = "CANCELLED"})
                  : MakeError(absl::StatusCode::kUnavailable, "the server is shutting down",
                              {.reason = "SHUTTING_DOWN"});
        Finish(ToGrpcStatus(why));
      }
    }

    Service& service_;
    const std::string name_;
    Mutex mutex_;
    std::optional<Serving> next_ STEPCAST_GUARDED_BY(mutex_);
    std::optional<Serving> written_ STEPCAST_GUARDED_BY(mutex_);
    grpc::ByteBuffer message_ STEPCAST_GUARDED_BY(mutex_);
    bool writing_ STEPCAST_GUARDED_BY(mutex_) = false;
    bool gone_ STEPCAST_GUARDED_BY(mutex_) = false;  // the caller
    bool ended_ STEPCAST_GUARDED_BY(mutex_) = false;
    bool finished_ STEPCAST_GUARDED_BY(mutex_) = false;
  };

  Serving StatusOf(const std::string& name) const STEPCAST_REQUIRES(mutex_) {
    if (services_.count(name) == 0) return health::HealthCheckResponse::SERVICE_UNKNOWN;
    return serving_ ? health::HealthCheckResponse::SERVING
                    : health::HealthCheckResponse::NOT_SERVING;
  }

  health::HealthCheckResponse Now(const std::string& name) {
    MutexLock lock(mutex_);
    health::HealthCheckResponse reply;
    reply.set_status(StatusOf(name));
    return reply;
  }

  void Forget(Watcher* watcher) {
    MutexLock lock(mutex_);
    watchers_.erase(watcher);
  }

  std::set<std::string> services_;  // unchanged after construction
  Mutex mutex_;                     // taken before a watcher's
  bool serving_ STEPCAST_GUARDED_BY(mutex_) = false;
  bool ended_ STEPCAST_GUARDED_BY(mutex_) = false;
  std::set<Watcher*> watchers_ STEPCAST_GUARDED_BY(mutex_);
};

HealthRpc::HealthRpc(const std::vector<std::string>& services)
    : service_(std::make_unique<Service>(services)) {}

HealthRpc::~HealthRpc() = default;

grpc::Service& HealthRpc::service() { return *service_; }

void HealthRpc::SetServing(bool serving) { service_->SetServing(serving); }

void HealthRpc::EndWatches() { service_->EndWatches(); }

}  // namespace stepcast::server
