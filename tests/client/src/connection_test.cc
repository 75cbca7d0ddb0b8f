#include "client/src/connection.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "stepcast/v1/job_service.pb.h"
#include "stepcast/v1/layout.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::client::connection_test {
namespace {

// A deletion reports NOT_FOUND the second time; to store something twice is wrong without a name
// for the request.
TEST(MethodsTest, AreAllUnaryOnesOfTheContractByTheirRetries) {
  const std::string profiles = "/stepcast.v1.ProfileService/";
  const std::string jobs = "/google.longrunning.Operations/";
  std::map<std::string, Retry> expected = {
      {profiles + "CreateProfile", Retry::kByRequestId},
      {profiles + "UpdateProfile", Retry::kByRequestId},
      {profiles + "GetProfile", Retry::kAlways},
      {profiles + "ListProfiles", Retry::kAlways},
      {profiles + "DeleteProfile", Retry::kNever},
      {"/stepcast.v1.JobService/StartJob", Retry::kByRequestId},
      {jobs + "GetOperation", Retry::kAlways},
      {jobs + "ListOperations", Retry::kAlways},
      {jobs + "WaitOperation", Retry::kAlways},
      {jobs + "CancelOperation", Retry::kAlways},
      {jobs + "DeleteOperation", Retry::kNever}};
  for (const char* const name :
       {"PredictThroughput", "RecommendWorkers", "OptimizeOrder", "OptimizeCommunication",
        "AllocateWorkers", "CompareModels", "DiagnoseJob", "OptimizeJob", "RecommendLayout",
        "FitRuns", "FitParsingOverhead", "FitCollectives", "FitContention"})
    expected.emplace(std::string("/stepcast.v1.PredictionService/") + name, Retry::kAlways);
  std::map<std::string, Retry> found;
  for (const Method& method : UnaryMethods()) found.emplace(method.path, method.retry);
  EXPECT_EQ(found, expected);
}

TEST(MethodsTest, AreFoundByTheirRequests) {
  const Method& method = MethodFor<v1::RecommendLayoutRequest>();
  EXPECT_EQ(method.path, "/stepcast.v1.PredictionService/RecommendLayout");
  EXPECT_EQ(method.reply, v1::RecommendLayoutResponse::descriptor());
  EXPECT_EQ(MethodFor<v1::DeleteProfileRequest>().retry, Retry::kNever);
}

}  // namespace
}  // namespace stepcast::client::connection_test
