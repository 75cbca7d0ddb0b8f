#include "server/app/grpc_endpoint.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "server/security/principals.h"
#include "stepcast/v1/admin_service.pb.h"
#include "stepcast/v1/job_service.pb.h"

namespace stepcast::server::grpc_endpoint_test {
namespace {

TEST(ServedMethodsTest, ReflectionListsEachServiceOnce) {
  EXPECT_THAT(AllServices(), ::testing::IsSupersetOf({"grpc.health.v1.Health",
                                                      "grpc.reflection.v1.ServerReflection",
                                                      "stepcast.v1.ProfileService"}));
  const std::vector<std::string> services = AllServices();
  EXPECT_EQ(std::set<std::string>(services.begin(), services.end()).size(), services.size());
}

TEST(ServedMethodsTest, EveryMethodHasItsTypeInGosSpelling) {
  std::map<std::string, std::string> types;
  for (const MethodLabels& method : ServedMethods())
    types[method.service + "/" + method.method] = method.type;
  EXPECT_EQ(types.at("stepcast.v1.ProfileService/UploadProfile"), "client_stream");
  EXPECT_EQ(types.at("stepcast.v1.ProfileService/GetProfile"), "unary");
  EXPECT_EQ(types.at("stepcast.v1.PredictionService/PredictThroughput"), "unary");
  EXPECT_EQ(types.at("stepcast.v1.PredictionService/GenerateTrace"), "server_stream");
  EXPECT_EQ(types.at("grpc.health.v1.Health/Watch"), "server_stream");
  EXPECT_EQ(types.at("grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"),
            "bidi_stream");
}

// Of all services that are compiled in, served yet or not.
std::set<std::string> AllMethods() {
  v1::StartJobRequest::descriptor();
  v1::PingRequest::descriptor();
  std::set<std::string> methods;
  for (const char* const file :
       {"stepcast/v1/profile_service.proto", "stepcast/v1/prediction_service.proto",
        "stepcast/v1/job_service.proto", "stepcast/v1/admin_service.proto",
        "google/longrunning/operations.proto", "grpc/health/v1/health.proto",
        "grpc/reflection/v1/reflection.proto", "grpc/reflection/v1alpha/reflection.proto"}) {
    const auto* descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindFileByName(file);
    EXPECT_NE(descriptor, nullptr) << file;
    for (int i = 0; descriptor != nullptr && i < descriptor->service_count(); ++i) {
      const auto* service = descriptor->service(i);
      for (int j = 0; j < service->method_count(); ++j)
        methods.insert(service->full_name() + "/" + service->method(j)->name());
    }
  }
  return methods;
}

TEST(ServedMethodsTest, EveryMethodAndNoOtherHasARowOfAccess) {
  std::set<std::string> rows;
  for (const MethodAccess& row : MethodAccessTable()) rows.emplace(row.method);
  EXPECT_THAT(rows, ::testing::ContainerEq(AllMethods()));
  for (const MethodLabels& method : ServedMethods())
    EXPECT_EQ(rows.count(method.service + "/" + method.method), 1u) << method.service;
}

TEST(ServedMethodsTest, HealthIsReportedForTheServicesOfTheContract) {
  EXPECT_THAT(ServedServices(),
              ::testing::ElementsAre("stepcast.v1.ProfileService", "stepcast.v1.PredictionService",
                                     "stepcast.v1.JobService", "google.longrunning.Operations",
                                     "stepcast.v1.AdminService"));
}

}  // namespace
}  // namespace stepcast::server::grpc_endpoint_test
