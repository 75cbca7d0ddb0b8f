#include <google/protobuf/empty.pb.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/convert/profile_convert.h"
#include "server/rpc/calls.h"
#include "server/rpc/grpc_wire.h"
#include "server/rpc/services.h"
#include "server/rpc/upload_content.h"
#include "stepcast/v1/profile_service.grpc.pb.h"

namespace stepcast::server {

namespace {

using ProfileMethods = v1::ProfileService::WithRawCallbackMethod_CreateProfile<
    v1::ProfileService::WithRawCallbackMethod_UploadProfile<
        v1::ProfileService::WithRawCallbackMethod_ImportProfile<
            v1::ProfileService::WithRawCallbackMethod_GetProfile<
                v1::ProfileService::WithRawCallbackMethod_ListProfiles<
                    v1::ProfileService::WithRawCallbackMethod_UpdateProfile<
                        v1::ProfileService::WithRawCallbackMethod_DeleteProfile<
                            v1::ProfileService::Service>>>>>>>;

google::protobuf::Empty ToWire(absl::monostate) { return {}; }

// The same, of the one who makes the call.
template <typename ToStore>
ToStore Owned(ToStore to_store, const CallState& state) {
  to_store.placement.owner = state.caller();
  return to_store;
}

// Counts what the profile will take beyond its bytes.
absl::Status CountParsed(const v1::UploadProfileRequest::Header& header, std::string_view bytes,
                         CallState& state) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (size < kMinBytesToLookAt) return absl::OkStatus();
  const int64_t parsed =
      header.encoding() == v1::UploadProfileRequest::BINARY
          ? ParsedBytes(bytes, *v1::Profile::descriptor(), state.environment().budget.max())
          : ParsedBytesOfText(bytes);
  return state.CountParsed(size, parsed, state.bytes());
}

class ProfileRpc final : public ProfileMethods {
 public:
  ProfileRpc(const ProfileHandler& handler, const CallEnvironment& environment)
      : handler_(handler), environment_(environment) {}

  grpc::ServerUnaryReactor* CreateProfile(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* reply) override {
    return Start<v1::CreateProfileRequest>(
        {"CreateProfile", context, request, reply},
        [this](UnaryCall& call, const v1::CreateProfileRequest& message) {
          return handler_.Create(Owned(FromWire(message), call.state()),
                                 [&] { return call.state().Check(); });
        });
  }

  grpc::ServerUnaryReactor* UpdateProfile(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* reply) override {
    return Start<v1::UpdateProfileRequest>(
        {"UpdateProfile", context, request, reply},
        [this](UnaryCall& call, const v1::UpdateProfileRequest& message) {
          return handler_.Update(Owned(FromWire(message), call.state()),
                                 [&] { return call.state().Check(); });
        });
  }

  grpc::ServerUnaryReactor* GetProfile(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* reply) override {
    return Start<v1::GetProfileRequest>({"GetProfile", context, request, reply},
                                        [this](UnaryCall&, const v1::GetProfileRequest& message) {
                                          return handler_.Get(FromWire(message));
                                        });
  }

  grpc::ServerUnaryReactor* ListProfiles(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* reply) override {
    return Start<v1::ListProfilesRequest>(
        {"ListProfiles", context, request, reply},
        [this](UnaryCall&, const v1::ListProfilesRequest& message) {
          return handler_.List(FromWire(message));
        });
  }

  grpc::ServerUnaryReactor* DeleteProfile(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* reply) override {
    return Start<v1::DeleteProfileRequest>(
        {"DeleteProfile", context, request, reply},
        [this](UnaryCall&,
               const v1::DeleteProfileRequest& message) -> absl::StatusOr<absl::monostate> {
          absl::Status status = handler_.Delete(FromWire(message));
          if (!status.ok()) return status;
          return absl::monostate();
        });
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* UploadProfile(grpc::CallbackServerContext* context,
                                                           grpc::ByteBuffer* reply) override {
    using Call = UploadCall<CollectedBytes>;
    return new Call(environment_, Method("UploadProfile"), *context, *reply,
                    [this](const Call::Header& header, CollectedBytes& bytes,
                           CallState& state) -> absl::StatusOr<Call::Reply> {
                      absl::StatusOr<std::string> taken = bytes.Take(state.bytes());
                      if (!taken.ok()) return taken.status();
                      const absl::Status counted = CountParsed(header, *taken, state);
                      if (!counted.ok()) return counted;
                      const absl::StatusOr<ProfileAnswer> answer =
                          handler_.Upload(Owned(FromWire(header), state), *std::move(taken),
                                          [&] { return state.Check(); });
                      if (!answer.ok()) return answer.status();
                      return std::make_unique<v1::Profile>(server::ToWire(*answer));
                    });
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* ImportProfile(grpc::CallbackServerContext* context,
                                                           grpc::ByteBuffer* reply) override {
    using Call = UploadCall<SpooledImport>;
    return new Call(
        environment_, Method("ImportProfile"), *context, *reply,
        [this](const Call::Header& header, SpooledImport& import,
               CallState& state) -> absl::StatusOr<Call::Reply> {
          const std::vector<SpooledImport::NamedSource> recordings =
              import.Recordings(header, state.bytes());
          const std::unique_ptr<ByteSource> graph = import.Graph(header, state.bytes());
          ImportBytes bytes{.recording = *recordings.front().bytes, .graph = graph.get()};
          for (const SpooledImport::NamedSource& each : recordings) {
            if (recordings.size() > 1) bytes.recordings.push_back({each.bytes.get(), each.name});
          }
          const absl::StatusOr<ImportProfileAnswer> answer =
              handler_.Import(Owned(FromWire(header), state), bytes, [&] { return state.Check(); });
          if (!answer.ok()) return answer.status();
          return std::make_unique<v1::ImportProfileResponse>(server::ToWire(*answer));
        });
  }

 private:
  static CalledMethod Method(std::string_view name) {
    return {.service = v1::ProfileService::service_full_name(), .name = name};
  }

  // Replies with what `answer` makes of the parsed request.
  template <typename Request, typename Answer>
  grpc::ServerUnaryReactor* Start(const UnaryWire& wire, Answer answer) {
    return StartUnary<Request>(environment_, v1::ProfileService::service_full_name(), wire,
                               [answer](UnaryCall& call, const Request& message) {
                                 const auto answered = answer(call, message);
                                 if (!answered.ok()) return call.Fail(answered.status());
                                 call.Reply(ToWire(*answered));
                               });
  }

  const ProfileHandler& handler_;
  const CallEnvironment& environment_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeProfileService(const ProfileHandler& handler,
                                                  const CallEnvironment& environment) {
  return std::make_unique<ProfileRpc>(handler, environment);
}

}  // namespace stepcast::server
