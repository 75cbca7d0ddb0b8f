#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"

#include "core/base/error.h"
#include "core/base/quoted.h"
#include "server/base/mutex.h"
#include "server/rpc/grpc_wire.h"
#include "server/rpc/services.h"

namespace stepcast::server {

namespace {

namespace health = grpc::health::v1;
using Serving = health::HealthCheckResponse::ServingStatus;

}  // namespace

class HealthRpc::Service final : public health::Health::CallbackService {
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
                                  const health::HealthCheckRequest* request,
                                  health::HealthCheckResponse* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (services_.count(request->service()) == 0) {
      reactor->Finish(ToGrpcStatus(MakeError(
          absl::StatusCode::kNotFound, Quoted(request->service()) + " is no service of this server",
          {.reason = "SERVICE_NOT_FOUND",
           .resource = {.type = "service", .name = Quoted(request->service())}})));
      return reactor;
    }
    MutexLock lock(mutex_);
    reply->set_status(StatusOf(request->service()));
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<health::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* /*context*/,
      const health::HealthCheckRequest* request) override {
    auto* watcher = new Watcher(*this, request->service());
    MutexLock lock(mutex_);
    watchers_.insert(watcher);
    watcher->Tell(StatusOf(watcher->name()));
    if (ended_) watcher->End();
    return watcher;
  }

 private:
  // One Watch: writes a status, and each later one that differs from the last it wrote.
  class Watcher final : public grpc::ServerWriteReactor<health::HealthCheckResponse> {
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
        message_.set_status(*next_);
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
    health::HealthCheckResponse message_ STEPCAST_GUARDED_BY(mutex_);
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
