// The model of a job's steps from the few that were recorded.
#include "core/model/step_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace stepcast::step_model_test {
namespace {

// Steps of one computation of a worker and one of a server, in nanoseconds.
Profile Recorded(const std::vector<std::pair<int64_t, int64_t>>& steps) {
  ProfileDraft draft;
  draft.batch_size = 1;
  draft.platform.bandwidth_bytes_per_second = 1e9;
  draft.parameter_servers = 1;
  draft.operations = {{.name = "compute", .resource = Resource::kWorker},
                      {.name = "send",
                       .resource = Resource::kUplink,
                       .size_bytes = 1000,
                       .waiting_for = {0},
                       .parameter = "w"},
                      {.name = "update",
                       .resource = Resource::kParameterServer,
                       .waiting_for = {1},
                       .parameter = "w"}};
  for (const auto& [worker, server] : steps) {
    const int64_t sent = worker + 1000;
    draft.steps.push_back({.start_ns = {0, worker, sent}, .end_ns = {worker, sent, sent + server}});
  }
  return Profile::Create(std::move(draft)).value();
}

TEST(StepModelTest, OneRecordedStepHasThePriorAlone) {
  const StepModel model = StepModelOf(Recorded({{1'000'000, 5000}}), StepPart::kWorkers);
  EXPECT_DOUBLE_EQ(model.own_deviation, StepModel::kPriorDeviation);
  EXPECT_EQ(model.common_deviation, 0);
  EXPECT_EQ(model.degrees, StepModel::kPriorSteps);
  EXPECT_DOUBLE_EQ(model.MeanError(model.steps), StepModel::kPriorDeviation);
}

TEST(StepModelTest, PoolsTheRecordedVarianceWithThePrior) {
  const StepModel model =
      StepModelOf(Recorded({{900'000, 1}, {1'000'000, 1}, {1'100'000, 1}}), StepPart::kWorkers);
  const double a = std::log(0.9);
  const double b = std::log(1.1);
  const double mean = (a + b) / 3;
  const double squares = (a - mean) * (a - mean) + mean * mean + (b - mean) * (b - mean);
  EXPECT_NEAR(model.own_deviation * model.own_deviation,
              (squares + StepModel::kPriorSteps * std::pow(StepModel::kPriorDeviation, 2)) /
                  (2 + StepModel::kPriorSteps),
              1e-12);
  ASSERT_EQ(model.logarithms.size(), 1U);
  EXPECT_NEAR(model.logarithms[0][0], a, 1e-12);
  EXPECT_NEAR(model.logarithms[0][1], 0, 1e-12);
}

TEST(StepModelTest, ServersVaryApartFromWorkersAndNothingVariesThatIsNotComputed) {
  const Profile profile = Recorded({{1'000'000, 4000}, {1'000'000, 6000}});
  EXPECT_NEAR(StepModelOf(profile, StepPart::kServers).logarithms[0][0], std::log(0.8), 1e-12);
  EXPECT_NEAR(StepModelOf(profile, StepPart::kWorkers).logarithms[0][0], 0, 1e-12);
  const StepModel none = StepModelOf(Recorded({{0, 4000}}), StepPart::kWorkers);
  EXPECT_EQ(none.deviation(), 0);
  EXPECT_EQ(none.logarithms[0][0], 0);
}

}  // namespace
}  // namespace stepcast::step_model_test
