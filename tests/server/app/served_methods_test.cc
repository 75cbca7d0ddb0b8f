#include "server/app/served_methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::server {
namespace {

TEST(ServedMethodsTest, EveryMethodHasItsTypeInGosSpelling) {
  std::map<std::string, std::string> types;
  for (const MethodLabels& method : ServedMethods()) types[method.service + "/" + method.method] = method.type;
  EXPECT_EQ(types.at("stepcast.v1.ProfileService/UploadProfile"), "client_stream");
  EXPECT_EQ(types.at("stepcast.v1.ProfileService/GetProfile"), "unary");
  EXPECT_EQ(types.at("stepcast.v1.PredictionService/PredictThroughput"), "unary");
  EXPECT_EQ(types.at("stepcast.v1.PredictionService/GenerateTrace"), "server_stream");
  EXPECT_EQ(types.at("grpc.health.v1.Health/Watch"), "server_stream");
  EXPECT_EQ(types.at("grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"), "bidi_stream");
}

TEST(ServedMethodsTest, HealthIsReportedForTheServicesOfTheContract) {
  EXPECT_THAT(ServedServices(), ::testing::ElementsAre("stepcast.v1.ProfileService", "stepcast.v1.PredictionService"));
}

}  // namespace
}  // namespace stepcast::server
