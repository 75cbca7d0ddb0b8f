#include "server/rpc/reflection_rpc.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"

#include "server/rpc/grpc_status.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/reflection_answer.h"

namespace stepcast::server {

namespace {

namespace v1_wire = grpc::reflection::v1;
namespace v1alpha_wire = grpc::reflection::v1alpha;

constexpr int64_t kMaxQuestionBytes = 4096;

using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// One stream: a question, its answer, the next question.
class Conversation final : public Reactor {
 public:
  Conversation(const std::vector<std::string>& services, const absl::Status& admitted)
      : services_(services) {
    if (admitted.ok()) {
      StartRead(&question_);
    } else {
      Finish(ToGrpcStatus(admitted));
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    const absl::Status status = Answer();
    if (!status.ok()) return Finish(ToGrpcStatus(status));
    StartWrite(&answer_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&question_);
  }

  void OnDone() override { delete this; }

 private:
  absl::Status Answer() {
    v1_wire::ServerReflectionRequest request;
    absl::Status status = ParseMessage(question_, kMaxQuestionBytes, request);
    return status.ok() ? SerializeMessage(AnswerReflection(request, services_), answer_) : status;
  }

  const std::vector<std::string>& services_;
  grpc::ByteBuffer question_;
  grpc::ByteBuffer answer_;
};

// `Base` is the generated service.
template <typename Base, typename Raw>
class Reflection : public Raw {
 public:
  Reflection(CallGate& gate, const std::vector<std::string>& services)
      : gate_(gate), services_(services) {}

  Reactor* ServerReflectionInfo(grpc::CallbackServerContext* context) override {
    const CalledMethod method{.service = Base::service_full_name(), .name = "ServerReflectionInfo"};
    return new Conversation(services_, gate_.Admit(method, *context).status());
  }

 private:
  CallGate& gate_;
  const std::vector<std::string>& services_;
};

}  // namespace

class ReflectionRpc::V1 final
    : public Reflection<v1_wire::ServerReflection,
                        v1_wire::ServerReflection::WithRawCallbackMethod_ServerReflectionInfo<
                            v1_wire::ServerReflection::Service>> {
  using Reflection::Reflection;
};

class ReflectionRpc::V1Alpha final
    : public Reflection<v1alpha_wire::ServerReflection,
                        v1alpha_wire::ServerReflection::WithRawCallbackMethod_ServerReflectionInfo<
                            v1alpha_wire::ServerReflection::Service>> {
  using Reflection::Reflection;
};

ReflectionRpc::ReflectionRpc(CallGate& gate, const std::vector<std::string>& services)
    : services_(services),
      v1_(std::make_unique<V1>(gate, services_)),
      v1alpha_(std::make_unique<V1Alpha>(gate, services_)) {}

ReflectionRpc::~ReflectionRpc() = default;

grpc::Service& ReflectionRpc::v1() { return *v1_; }

grpc::Service& ReflectionRpc::v1alpha() { return *v1alpha_; }

}  // namespace stepcast::server
