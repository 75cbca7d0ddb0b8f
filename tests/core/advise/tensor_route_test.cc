#include "core/advise/tensor_route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/stop_check.h"
#include "core/predict/throughput.h"
#include "tests/core/advise/chain_job.h"

namespace stepcast::tensor_route_test {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

// Two parameters on as many servers, each downloaded, computed with, uploaded and updated.
Profile ServerJob() {
  ProfileDraft draft{
      .batch_size = 1, .platform = {.bandwidth_bytes_per_second = 119.5e6}, .parameter_servers = 2};
  const auto add = [&](std::string name, Resource resource, int64_t bytes, int32_t parameter,
                       std::vector<int32_t> waiting_for) {
    draft.operations.push_back({.name = std::move(name),
                                .resource = resource,
                                .size_bytes = bytes,
                                .waiting_for = std::move(waiting_for)});
    if (parameter < 0) return;
    draft.operations.back().parameter = std::string(1, static_cast<char>('a' + parameter));
    draft.operations.back().parameter_server = parameter;
  };
  add("recv/a", Resource::kDownlink, 1000, 0, {});
  add("recv/b", Resource::kDownlink, 3000, 1, {});
  add("forward", Resource::kWorker, 0, -1, {0, 1});
  add("backward", Resource::kWorker, 0, -1, {2});
  add("send/b", Resource::kUplink, 3000, 1, {2});
  add("send/a", Resource::kUplink, 1000, 0, {3});
  add("update/b", Resource::kParameterServer, 0, 1, {4});
  add("update/a", Resource::kParameterServer, 0, 0, {5});
  draft.steps.push_back({.start_ns = {0, 0, 100, 300, 300, 700, 900, 950},
                         .end_ns = {50, 100, 300, 700, 400, 800, 910, 960}});
  return Profile::Create(std::move(draft)).value();
}

Scenario ServersOf(const Profile& profile, int32_t workers) {
  return ResolveScenario(profile, {.workers = workers}).value();
}

TEST(TensorRouteTest, UpdatesAndDownloadsGoWithTheUploadOfTheirParameter) {
  const Profile profile = ServerJob();
  const Scenario scenario = ServersOf(profile, 2);
  const auto route = TensorRoute::Of(profile, scenario);
  EXPECT_THAT(route->CarriersOf(), ElementsAre(5, 4, -1, -1, 4, 5, 4, 5));
  EXPECT_TRUE(route->KeepsLoneTensors());
  EXPECT_EQ(route->ParameterOf({4, 5}), "a");
  EXPECT_EQ(route->PartOf("a", 1), "a#2");
  EXPECT_FALSE(route->IsChain());
  // When the computations that each waits for had ended.
  EXPECT_THAT(route->ReadySeconds({}),
              ElementsAre(0, 0, 0, 0, DoubleNear(300e-9, 1e-15), DoubleNear(700e-9, 1e-15), 0, 0));
}

TEST(TensorRouteTest, CollectivesTakeNothingAlongAndTheirTimesAddUp) {
  const Profile profile = ProfileOf({.lengths_ns = {5000}, .gradient_bytes = {{1001}}});
  const Scenario scenario = ResolveScenario(profile, RingOf(4, 1e-7)).value();
  const auto route = TensorRoute::Of(profile, scenario);
  const std::vector<int32_t> carriers = route->CarriersOf();
  for (size_t i = 0; i < carriers.size(); ++i)
    EXPECT_EQ(carriers[i], IsGradient(profile.operations()[i]) ? static_cast<int32_t>(i) : -1);
  EXPECT_FALSE(route->KeepsLoneTensors());
  EXPECT_EQ(route->PartOf("a", 1), "");
  EXPECT_TRUE(route->IsChain());
  const double whole = route->SecondsOf(3000, 1).value();
  EXPECT_DOUBLE_EQ(route->SecondsOf(6000, 2).value(), 2 * whole);
}

// Three workers whose short parts follow each other on two servers starved each other for ever,
// where links are served in turns.
TEST(TensorRouteTest, PartsAloneOnServersInTurnsTakeAStepThatEnds) {
  const Profile profile = ServerJob();
  for (const int32_t workers : {2, 3, 4, 8}) {
    ScenarioDraft asked{.workers = workers};
    asked.servers().link_sharing = TurnsDraft{.bytes = 65'160};
    const Scenario scenario = ResolveScenario(profile, asked).value();
    const auto route = TensorRoute::Of(profile, scenario);
    EXPECT_EQ(route->SecondsOf(55'360, 3), std::nullopt);
    const absl::StatusOr<AppliedStrategy> job = route->LonePartsOf(55'360, 3);
    ASSERT_TRUE(job.ok()) << job.status();
    ASSERT_EQ(job->profile.operations().size(), 4);
    ThroughputQuery query{.scenarios = {job->scenario}};
    query.options = *ResolveOptions({.steps_per_worker = 20, .replications = 1});
    // Far more looks than such runs take, where none was ever enough.
    int looks = 0;
    const auto stop = [&looks] {
      return ++looks < 1000 ? absl::OkStatus() : absl::DeadlineExceededError("it never ends");
    };
    const absl::StatusOr<ThroughputAnswer> answer = PredictThroughput(job->profile, query, stop);
    ASSERT_TRUE(answer.ok()) << workers << " workers: " << answer.status();
    // The busier server's link bounds it.
    EXPECT_LE(answer->predictions[0].steps_per_second, 119.5e6 / (2.0 / 3 * 55'360) * 1.05);
  }
}

}  // namespace
}  // namespace stepcast::tensor_route_test
