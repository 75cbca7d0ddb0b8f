#include "client/src/connection.h"

#include <cassert>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/longrunning/operations.pb.h"

#include "stepcast/v1/job_service.pb.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::client {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

Retry RetryOf(const MethodDescriptor& method) {
  if (method.input_type()->FindFieldByName("request_id") != nullptr) return Retry::kByRequestId;
  return absl::StartsWith(method.name(), "Delete") ? Retry::kNever : Retry::kAlways;
}

// Calls `take` with each unary method.
template <typename Take>
void ForEachMethod(Take take) {
  for (const FileDescriptor* file :
       {v1::GetProfileRequest::descriptor()->file(), v1::GenerateTraceRequest::descriptor()->file(),
        v1::StartJobRequest::descriptor()->file(),
        google::longrunning::Operation::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      const ServiceDescriptor& service = *file->service(i);
      for (int k = 0; k < service.method_count(); ++k) {
        const MethodDescriptor& method = *service.method(k);
        if (method.client_streaming() || method.server_streaming()) continue;
        take(method, Method{.path = absl::StrCat("/", service.full_name(), "/", method.name()),
                            .retry = RetryOf(method),
                            .reply = method.output_type()});
      }
    }
  }
}

}  // namespace

const Method& MethodOf(const Descriptor& request) {
  static const auto& methods = *[] {
    auto* by_request = new std::map<const Descriptor*, Method>;
    ForEachMethod([&](const MethodDescriptor& method, Method row) {
      by_request->emplace(method.input_type(), std::move(row));
    });
    return by_request;
  }();
  const auto found = methods.find(&request);
  assert(found != methods.end());
  return found->second;
}

std::vector<Method> UnaryMethods() {
  std::vector<Method> methods;
  ForEachMethod([&](const MethodDescriptor&, Method row) { methods.push_back(std::move(row)); });
  return methods;
}

}  // namespace stepcast::client
