#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"

#include "core/base/quoted.h"
#include "server/rpc/grpc_wire.h"
#include "server/rpc/services.h"

namespace stepcast::server {

namespace {

namespace v1_wire = grpc::reflection::v1;
namespace v1alpha_wire = grpc::reflection::v1alpha;

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using Request = v1_wire::ServerReflectionRequest;
using Response = v1_wire::ServerReflectionResponse;

void Refuse(absl::StatusCode code, const std::string& why, Response& response) {
  response.mutable_error_response()->set_error_code(static_cast<int>(code));
  response.mutable_error_response()->set_error_message(why);
}

// The file, then each that it imports, once.
void AddFiles(const FileDescriptor& file, std::set<const FileDescriptor*>& added,
              v1_wire::FileDescriptorResponse& response) {
  if (!added.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), added, response);
}

void AnswerFile(const FileDescriptor* file, const std::string& asked, Response& response) {
  if (file == nullptr)
    return Refuse(absl::StatusCode::kNotFound, absl::StrCat(Quoted(asked), " is not known here"),
                  response);
  std::set<const FileDescriptor*> added;
  AddFiles(*file, added, *response.mutable_file_descriptor_response());
}

const FileDescriptor* FileOfExtension(const DescriptorPool& pool,
                                      const v1_wire::ExtensionRequest& asked) {
  const google::protobuf::Descriptor* type = pool.FindMessageTypeByName(asked.containing_type());
  const auto* extension =
      type == nullptr ? nullptr : pool.FindExtensionByNumber(type, asked.extension_number());
  return extension == nullptr ? nullptr : extension->file();
}

void AnswerExtensionNumbers(const DescriptorPool& pool, const std::string& name,
                            Response& response) {
  const google::protobuf::Descriptor* type = pool.FindMessageTypeByName(name);
  if (type == nullptr)
    return Refuse(absl::StatusCode::kNotFound, absl::StrCat(Quoted(name), " is not known here"),
                  response);
  std::vector<const google::protobuf::FieldDescriptor*> extensions;
  pool.FindAllExtensions(type, &extensions);
  response.mutable_all_extension_numbers_response()->set_base_type_name(name);
  for (const auto* extension : extensions)
    response.mutable_all_extension_numbers_response()->add_extension_number(extension->number());
}

// One answer to one question, from the generated pool. A file comes with all it imports. What there
// is not is an error_response with NOT_FOUND, a question of no kind one with INVALID_ARGUMENT.
// `services` are the names that list_services gives. Threads: safe.
Response AnswerReflection(const Request& request, const std::vector<std::string>& services) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  Response response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      AnswerFile(pool.FindFileByName(request.file_by_filename()), request.file_by_filename(),
                 response);
      break;
    case Request::kFileContainingSymbol:
      AnswerFile(pool.FindFileContainingSymbol(request.file_containing_symbol()),
                 request.file_containing_symbol(), response);
      break;
    case Request::kFileContainingExtension:
      AnswerFile(FileOfExtension(pool, request.file_containing_extension()),
                 request.file_containing_extension().containing_type(), response);
      break;
    case Request::kAllExtensionNumbersOfType:
      AnswerExtensionNumbers(pool, request.all_extension_numbers_of_type(), response);
      break;
    case Request::kListServices:
      for (const std::string& name : services)
        response.mutable_list_services_response()->add_service()->set_name(name);
      break;
    case Request::MESSAGE_REQUEST_NOT_SET:
      Refuse(absl::StatusCode::kInvalidArgument, "the question is of no kind", response);
      break;
  }
  return response;
}

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
