#include "server/methods/prediction_methods.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "stepcast/v1/job_service.pb.h"
#include "stepcast/v1/prediction_service.pb.h"

namespace stepcast::server::prediction_methods_test {
namespace {

std::set<std::string> Rows() {
  std::set<std::string> rows;
  ForEachPredictionMethod([&]<typename Method>(Method) { rows.emplace(Method::Name()); });
  return rows;
}

TEST(PredictionMethodsTest, EveryUnaryMethodOfTheContractHasARow) {
  const google::protobuf::ServiceDescriptor& service =
      *v1::GenerateTraceRequest::descriptor()->file()->FindServiceByName("PredictionService");
  std::set<std::string> contract;
  for (int i = 0; i < service.method_count(); ++i) {
    if (!service.method(i)->server_streaming()) contract.insert(service.method(i)->name());
  }
  EXPECT_EQ(Rows(), contract);
}

TEST(PredictionMethodsTest, EveryComputationOfAJobHasARow) {
  const std::set<std::string> rows = Rows();
  const auto& computation = *v1::StartJobRequest::descriptor()->FindOneofByName("computation");
  EXPECT_EQ(computation.field_count(), 9);
  for (int i = 0; i < computation.field_count(); ++i) {
    const std::string method(MethodNameOf(*computation.field(i)->message_type()));
    EXPECT_TRUE(rows.contains(method)) << method;
  }
}

// Methods that simulate are counted by their kinds of jobs; a fit of measurements simulates
// nothing.
TEST(PredictionMethodsTest, ThoseThatSimulateAreAllButFits) {
  std::set<std::string> simulating;
  for (const SimulatingMethod& method : SimulatingMethods()) simulating.emplace(method.name);
  std::set<std::string> expected = {"GenerateTrace"};
  for (const std::string& row : Rows()) {
    if (row.rfind("Fit", 0) != 0) expected.insert(row);
  }
  EXPECT_EQ(simulating, expected);
}

}  // namespace
}  // namespace stepcast::server::prediction_methods_test
