#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/rpc/calls.h"
#include "server/rpc/services.h"
#include "stepcast/v1/admin_service.grpc.pb.h"

namespace stepcast::server {

namespace {

using google::protobuf::util::TimeUtil;
using AdminMethods = v1::AdminService::WithRawCallbackMethod_Ping<
    v1::AdminService::WithRawCallbackMethod_GetServerInfo<
        v1::AdminService::WithRawCallbackMethod_ListRunning<
            v1::AdminService::WithRawCallbackMethod_SetLogLevel<v1::AdminService::Service>>>>;

constexpr size_t kMaxListed = 1000;

v1::ServerInfo ToWire(const ServerDescription& description) {
  v1::ServerInfo info;
  info.set_version(description.version);
  info.set_engine_version(description.engine_version);
  info.set_replica(description.replica);
  *info.mutable_start_time() = TimeUtil::NanosecondsToTimestamp(description.start_time_ns);
  info.set_store(description.store);
  info.mutable_settings()->insert(description.settings.begin(), description.settings.end());
  return info;
}

v1::ListRunningResponse ToWire(const std::vector<JobListing>& jobs) {
  v1::ListRunningResponse reply;
  reply.set_total(static_cast<int32_t>(jobs.size()));
  for (size_t i = 0; i < std::min(jobs.size(), kMaxListed); ++i) {
    v1::ListRunningResponse::Running& running = *reply.add_running();
    running.set_method(jobs[i].ticket.method);
    running.set_client(jobs[i].ticket.client);
    running.set_state(jobs[i].is_running ? v1::ListRunningResponse::Running::COMPUTING
                                         : v1::ListRunningResponse::Running::WAITING);
    *running.mutable_age() =
        TimeUtil::NanosecondsToDuration(static_cast<int64_t>(jobs[i].age_seconds * 1e9));
    *running.mutable_expected() = TimeUtil::NanosecondsToDuration(
        static_cast<int64_t>(jobs[i].ticket.expected_seconds * 1e9));
    running.set_request_id(jobs[i].ticket.request_id);
  }
  return reply;
}

class AdminRpc final : public AdminMethods {
 public:
  AdminRpc(AdminEnvironment admin, const CallEnvironment& environment)
      : admin_(std::move(admin)), environment_(environment) {}

  grpc::ServerUnaryReactor* Ping(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* reply) override {
    auto* call = new UnaryCall(environment_, v1::AdminService::service_full_name(),
                               {"Ping", context, request, reply});
    if (call->state().admitted().ok()) {
      const grpc::Slice empty;
      call->Reply(grpc::ByteBuffer(&empty, 1));
    } else {
      call->Fail(call->state().admitted());
    }
    return call;
  }

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* reply) override {
    return Start<v1::GetServerInfoRequest>(
        {"GetServerInfo", context, request, reply},
        [this](UnaryCall& call, const auto&) { call.Reply(ToWire(admin_.describe())); });
  }

  grpc::ServerUnaryReactor* ListRunning(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* reply) override {
    return Start<v1::ListRunningRequest>(
        {"ListRunning", context, request, reply},
        [this](UnaryCall& call, const auto&) { call.Reply(ToWire(List())); });
  }

  grpc::ServerUnaryReactor* SetLogLevel(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* reply) override {
    return Start<v1::SetLogLevelRequest>(
        {"SetLogLevel", context, request, reply},
        [this](UnaryCall& call, const v1::SetLogLevelRequest& message) {
          if (message.level() == v1::LOG_LEVEL_UNSPECIFIED ||
              !v1::LogLevel_IsValid(message.level())) {
            return call.Fail(FaultsError(
                "REQUEST_INVALID", {{.field = "level",
                                     .description = absl::StrCat(static_cast<int>(message.level()),
                                                                 " is none of DEBUG to OFF")}}));
          }
          v1::SetLogLevelResponse response;
          response.set_previous(static_cast<v1::LogLevel>(
              admin_.set_log_level(static_cast<WireLogLevel>(message.level()))));
          call.Reply(response);
        });
  }

 private:
  // The oldest first.
  std::vector<JobListing> List() const {
    std::vector<JobListing> jobs = environment_.simulation_jobs.List();
    for (JobListing& job : admin_.long_running()) jobs.push_back(std::move(job));
    std::stable_sort(jobs.begin(), jobs.end(), [](const JobListing& a, const JobListing& b) {
      return a.age_seconds > b.age_seconds;
    });
    return jobs;
  }

  template <typename Request, typename Part>
  grpc::ServerUnaryReactor* Start(const UnaryWire& wire, Part part) {
    return StartUnary<Request>(environment_, v1::AdminService::service_full_name(), wire,
                               std::move(part));
  }

  const AdminEnvironment admin_;
  const CallEnvironment& environment_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService(AdminEnvironment admin,
                                                const CallEnvironment& environment) {
  return std::make_unique<AdminRpc>(std::move(admin), environment);
}

}  // namespace stepcast::server
