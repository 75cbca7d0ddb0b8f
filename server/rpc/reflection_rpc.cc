#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/slice.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "server/base/mutex.h"
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

// The parts of answers that hold files, each made once: however many callers do not read their
// answers, what waits for them is references to these.
//
// Threads: safe.
class DescribedFiles {
 public:
  // A serialised Response with nothing but the file and all that it imports.
  grpc::Slice Of(const FileDescriptor& file) {
    MutexLock lock(mutex_);
    const auto [at, is_new] = parts_.try_emplace(&file);
    if (is_new) {
      Response part;
      std::set<const FileDescriptor*> added;
      AddFiles(file, added, *part.mutable_file_descriptor_response());
      at->second = grpc::Slice(part.SerializeAsString());
    }
    return at->second;
  }

 private:
  Mutex mutex_;
  std::map<const FileDescriptor*, grpc::Slice> parts_ STEPCAST_GUARDED_BY(mutex_);
};

// One answer: a message, and the file that goes with it, if one does.
struct ReflectionAnswer {
  Response message;
  const FileDescriptor* file = nullptr;
};

void AnswerFile(const FileDescriptor* file, const std::string& asked, ReflectionAnswer& answer) {
  answer.file = file;
  if (file == nullptr)
    Refuse(absl::StatusCode::kNotFound, absl::StrCat(Quoted(asked), " is not known here"),
           answer.message);
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

// The answer to one question, from the generated pool. A file comes with all it imports. What there
// is not is an error_response with NOT_FOUND, a question of no kind one with INVALID_ARGUMENT.
// `services` are the names that list_services gives. Threads: safe.
ReflectionAnswer AnswerReflection(const Request& request,
                                  const std::vector<std::string>& services) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  ReflectionAnswer answer;
  Response& response = answer.message;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      AnswerFile(pool.FindFileByName(request.file_by_filename()), request.file_by_filename(),
                 answer);
      break;
    case Request::kFileContainingSymbol:
      AnswerFile(pool.FindFileContainingSymbol(request.file_containing_symbol()),
                 request.file_containing_symbol(), answer);
      break;
    case Request::kFileContainingExtension:
      AnswerFile(FileOfExtension(pool, request.file_containing_extension()),
                 request.file_containing_extension().containing_type(), answer);
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
  return answer;
}

constexpr int64_t kMaxQuestionBytes = 4096;

using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// The parts that all conversations have in common.
struct Reflected {
  CallGate& gate;
  const std::vector<std::string> services;
  DescribedFiles files;
};

// One stream: a question, its answer, the next question. The next one is read once the transport
// has taken the answer, so that a caller who does not read has one answer waiting.
class Conversation final : public Reactor {
 public:
  Conversation(Reflected& known, const absl::Status& admitted) : reflected_(known) {
    if (admitted.ok()) {
      StartRead(&question_);
    } else {
      Finish(ToGrpcStatus(admitted));
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    Request request;
    const absl::Status status =
        ParseMessage(question_, kMaxQuestionBytes, request, "reflection_request_bytes");
    if (!status.ok()) return Finish(ToGrpcStatus(status));
    SetAnswer(AnswerReflection(request, reflected_.services));
    StartWrite(&answer_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&question_);
  }

  void OnDone() override { delete this; }

 private:
  // Serialised messages one after the other are one message.
  void SetAnswer(const ReflectionAnswer& answer) {
    std::vector<grpc::Slice> parts{grpc::Slice(answer.message.SerializeAsString())};
    if (answer.file != nullptr) parts.push_back(reflected_.files.Of(*answer.file));
    answer_ = grpc::ByteBuffer(parts.data(), parts.size());
  }

  Reflected& reflected_;
  grpc::ByteBuffer question_;
  grpc::ByteBuffer answer_;
};

// `Base` is the generated service.
template <typename Base, typename Raw>
class Reflection : public Raw {
 public:
  explicit Reflection(Reflected& known) : reflected_(known) {}

  Reactor* ServerReflectionInfo(grpc::CallbackServerContext* context) override {
    const CalledMethod method{.service = Base::service_full_name(), .name = "ServerReflectionInfo"};
    return new Conversation(reflected_, reflected_.gate.Admit(method, *context).status());
  }

 private:
  Reflected& reflected_;
};

}  // namespace

class ReflectionRpc::Parts {
 public:
  Parts(CallGate& gate, const std::vector<std::string>& services)
      : reflected_{.gate = gate, .services = services, .files = {}} {}

  grpc::Service& v1() { return v1_; }
  grpc::Service& v1alpha() { return v1alpha_; }

 private:
  Reflected reflected_;
  Reflection<v1_wire::ServerReflection,
             v1_wire::ServerReflection::WithRawCallbackMethod_ServerReflectionInfo<
                 v1_wire::ServerReflection::Service>>
      v1_{reflected_};
  Reflection<v1alpha_wire::ServerReflection,
             v1alpha_wire::ServerReflection::WithRawCallbackMethod_ServerReflectionInfo<
                 v1alpha_wire::ServerReflection::Service>>
      v1alpha_{reflected_};
};

ReflectionRpc::ReflectionRpc(CallGate& gate, const std::vector<std::string>& services)
    : parts_(std::make_unique<Parts>(gate, services)) {}

ReflectionRpc::~ReflectionRpc() = default;

grpc::Service& ReflectionRpc::v1() { return parts_->v1(); }

grpc::Service& ReflectionRpc::v1alpha() { return parts_->v1alpha(); }

namespace {

class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

// The method of a path "/service/method"; a path of another form is all service.
CalledMethod Called(std::string_view path) {
  if (!path.empty() && path.front() == '/') path.remove_prefix(1);
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return {.service = path, .name = ""};
  return {.service = path.substr(0, slash), .name = path.substr(slash + 1)};
}

}  // namespace

grpc::ServerGenericBidiReactor* UnknownMethodRpc::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const absl::Status admitted = gate_.Admit(Called(context->method()), *context).status();
  if (!admitted.ok()) return new Refusal(admitted);
  return new Refusal(
      MakeError(absl::StatusCode::kUnimplemented,
                Quoted(context->method()) + " is not a method of this server",
                {.reason = "METHOD_UNKNOWN", .metadata = {{"method", Quoted(context->method())}}}));
}

}  // namespace stepcast::server
