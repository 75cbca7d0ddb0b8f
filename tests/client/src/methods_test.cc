#include "client/src/methods.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "google/longrunning/operations.pb.h"

#include "stepcast/v1/job_service.pb.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::client::methods_test {
namespace {

using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

// The unary methods of the contract, by their paths.
std::set<std::string> UnaryPaths() {
  std::set<std::string> paths;
  for (const FileDescriptor* file :
       {v1::GetProfileRequest::descriptor()->file(), v1::GenerateTraceRequest::descriptor()->file(),
        v1::StartJobRequest::descriptor()->file(),
        google::longrunning::Operation::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      const ServiceDescriptor& service = *file->service(i);
      for (int k = 0; k < service.method_count(); ++k) {
        const MethodDescriptor& method = *service.method(k);
        if (!method.client_streaming() && !method.server_streaming())
          paths.insert("/" + service.full_name() + "/" + method.name());
      }
    }
  }
  return paths;
}

const MethodDescriptor* Find(const Method& method) {
  std::string name = std::string(method.path).substr(1);
  name[name.find('/')] = '.';
  return google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
}

TEST(MethodsTest, AreAllUnaryOnesOfTheContract) {
  std::set<std::string> paths;
  for (const Method& method : kMethods) paths.insert(method.path);
  EXPECT_EQ(paths, UnaryPaths());
}

// A deletion reports NOT_FOUND the second time; to store something twice is wrong without a name
// for the request.
TEST(MethodsTest, AreRepeatedByRequestIdWhereThereIsOneAndNeverWhereTheyDelete) {
  for (const Method& method : kMethods) {
    const MethodDescriptor* const descriptor = Find(method);
    ASSERT_NE(descriptor, nullptr) << method.path;
    const bool is_identified = descriptor->input_type()->FindFieldByName("request_id") != nullptr;
    const bool deletes = descriptor->name().rfind("Delete", 0) == 0;
    const Retry expected = is_identified ? Retry::kByRequestId
                           : deletes     ? Retry::kNever
                                         : Retry::kAlways;
    EXPECT_EQ(method.retry, expected) << method.path;
  }
}

}  // namespace
}  // namespace stepcast::client::methods_test
