#include "server/rpc/reflection_answer.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "core/base/quoted.h"

namespace stepcast::server {

namespace {

namespace wire = grpc::reflection::v1;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using Request = wire::ServerReflectionRequest;
using Response = wire::ServerReflectionResponse;

void Refuse(absl::StatusCode code, const std::string& why, Response& response) {
  response.mutable_error_response()->set_error_code(static_cast<int>(code));
  response.mutable_error_response()->set_error_message(why);
}

// The file, then each that it imports, once.
void AddFiles(const FileDescriptor& file, std::set<const FileDescriptor*>& added,
              wire::FileDescriptorResponse& response) {
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
                                      const wire::ExtensionRequest& asked) {
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

}  // namespace

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

}  // namespace stepcast::server
