#include "server/app/served_methods.h"

#include <google/protobuf/descriptor.h>

#include <set>
#include <utility>

#include "google/longrunning/operations.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"

#include "stepcast/v1/admin_service.pb.h"
#include "stepcast/v1/job_service.pb.h"
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
      methods.push_back({.service = service.full_name(),
                         .method = service.method(j)->name(),
                         .type = TypeOf(*service.method(j))});
    }
  }
}

}  // namespace

std::vector<MethodLabels> ServedMethods() {
  std::vector<MethodLabels> methods;
  AddServices(*v1::CreateProfileRequest::descriptor()->file(), methods);
  AddServices(*v1::GenerateTraceRequest::descriptor()->file(), methods);
  AddServices(*v1::StartJobRequest::descriptor()->file(), methods);
  AddServices(*google::longrunning::Operation::descriptor()->file(), methods);
  AddServices(*v1::PingRequest::descriptor()->file(), methods);
  AddServices(*grpc::health::v1::HealthCheckRequest::descriptor()->file(), methods);
  AddServices(*grpc::reflection::v1::ServerReflectionRequest::descriptor()->file(), methods);
  AddServices(*grpc::reflection::v1alpha::ServerReflectionRequest::descriptor()->file(), methods);
  return methods;
}

std::vector<std::string> AllServices() {
  std::set<std::string> services;
  for (MethodLabels& method : ServedMethods()) services.insert(std::move(method.service));
  return {services.begin(), services.end()};
}

std::vector<std::string> ServedServices() {
  return {v1::CreateProfileRequest::descriptor()->file()->service(0)->full_name(),
          v1::GenerateTraceRequest::descriptor()->file()->service(0)->full_name(),
          v1::StartJobRequest::descriptor()->file()->service(0)->full_name(),
          google::longrunning::Operation::descriptor()->file()->service(0)->full_name(),
          v1::PingRequest::descriptor()->file()->service(0)->full_name()};
}

}  // namespace stepcast::server
