#include "server/app/served_methods.h"

#include <google/protobuf/descriptor.h>

#include "grpc/health/v1/health.pb.h"

#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::server {

namespace {

const char* TypeOf(const google::protobuf::MethodDescriptor& method) {
  if (method.client_streaming()) return method.server_streaming() ? "bidi_stream" : "client_stream";
  return method.server_streaming() ? "server_stream" : "unary";
}

void AddServices(const google::protobuf::FileDescriptor& file, std::vector<MethodLabels>& methods) {
  for (int i = 0; i < file.service_count(); ++i) {
    const google::protobuf::ServiceDescriptor& service = *file.service(i);
    for (int j = 0; j < service.method_count(); ++j) {
      methods.push_back({.service = service.full_name(), .method = service.method(j)->name(), .type = TypeOf(*service.method(j))});
    }
  }
}

}  // namespace

std::vector<MethodLabels> ServedMethods() {
  std::vector<MethodLabels> methods;
  AddServices(*v1::CreateProfileRequest::descriptor()->file(), methods);
  AddServices(*v1::GenerateTraceRequest::descriptor()->file(), methods);
  AddServices(*grpc::health::v1::HealthCheckRequest::descriptor()->file(), methods);
  // Inside gRPC's own library, which shows no descriptor of it.
  methods.push_back({.service = "grpc.reflection.v1alpha.ServerReflection", .method = "ServerReflectionInfo", .type = "bidi_stream"});
  return methods;
}

std::vector<std::string> ServedServices() {
  return {v1::CreateProfileRequest::descriptor()->file()->service(0)->full_name(),
          v1::GenerateTraceRequest::descriptor()->file()->service(0)->full_name()};
}

}  // namespace stepcast::server
