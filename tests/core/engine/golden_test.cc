// The engine against exact answers of a reference that shares nothing with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/communication/parameter_servers.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "tests/support/profile_json.h"

namespace stepcast::golden_test {
namespace {

using ::nlohmann::json;

const json& Cases() {
  static const json* const cases = new json(
      testing::ReadJsonFile(STEPCAST_SOURCE_DIR "/tests/data/golden/parameter_server.json"));
  return *cases;
}

struct GoldenRun {
  Profile profile;
  Scenario scenario;
  RunOptions options;
};

GoldenRun Load(const json& golden) {
  const absl::StatusOr<Profile> profile =
      Profile::Create(testing::ProfileFromJson(golden.at("profile")));
  EXPECT_TRUE(profile.ok()) << profile.status();
  const json& asked = golden.at("scenario");
  Scenario scenario{
      .workers = asked.at("workers").get<int32_t>(),
      .bandwidth_bytes_per_second = profile->platform().bandwidth_bytes_per_second,
      .communication = ParameterServers{.servers = profile->parameter_servers(),
                                        .parsing_overhead = profile->platform().parsing_overhead}};
  if (!asked.at("window_bytes").is_null())
    scenario.servers().multiplexing = Window{.bytes = asked.at("window_bytes").get<int64_t>()};
  RunOptions options{.steps_per_worker = asked.at("steps_per_worker").get<int32_t>(),
                     .warmup_steps = asked.at("warmup_steps").get<int32_t>(),
                     .keep_step_ends = true};
  for (const json& offset : asked.at("start_offsets_ns"))
    options.start_offsets.push_back(Nanoseconds(offset.get<int64_t>()));
  return {.profile = *profile, .scenario = scenario, .options = options};
}

std::vector<int32_t> RanksByName(const Profile& profile, const Program& graph,
                                 const json& priorities) {
  std::vector<int32_t> ranks(static_cast<size_t>(graph.size()), Ranking::kUnranked);
  for (OpIndex op = 0; op < graph.size(); ++op) {
    const auto found =
        priorities.find(profile.operations()[static_cast<size_t>(graph.source(op))].name);
    if (graph.IsTransfer(op) && found != priorities.end())
      ranks[static_cast<size_t>(op)] = found->get<int32_t>();
  }
  return ranks;
}

class GoldenTest : public ::testing::TestWithParam<size_t> {};

TEST_P(GoldenTest, AgreesToOneMillionth) {
  const json& golden = Cases().at(GetParam());
  GoldenRun run = Load(golden);
  const auto program = std::make_shared<const Program>(BuildProgram(run.profile, run.scenario));
  Ranking ranking;
  if (const json& priorities = golden.at("scenario").at("transfer_priorities");
      !priorities.is_null()) {
    ranking = {.rule = Ranking::Rule::kFixed,
               .ranks = RanksByName(run.profile, *program, priorities)};
  }
  const JobGraph job = JobOf(program, std::make_shared<const Ranking>(ranking), run.scenario);
  const absl::StatusOr<RunResult> result = Simulate(job, run.options, NeverStop);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->measured);
  const auto expected = golden.at("steps_per_second").get<double>();
  EXPECT_NEAR(result->steps_per_second, expected, expected * 1e-6);
  const json& step_ends = golden.at("step_end_ns");
  ASSERT_EQ(result->step_ends.size(), step_ends.size());
  for (size_t worker = 0; worker < step_ends.size(); ++worker) {
    ASSERT_GE(result->step_ends[worker].size(), step_ends[worker].size());
    for (size_t step = 0; step < step_ends[worker].size(); ++step) {
      const double end = step_ends[worker][step].get<double>();
      EXPECT_NEAR(static_cast<double>(ToNanoseconds(result->step_ends[worker][step])), end,
                  end * 1e-6)
          << "worker " << worker << " step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ParameterServer, GoldenTest, ::testing::Range(size_t{0}, size_t{80}));

TEST(GoldenFileTest, HasAsManyCasesAsAreRun) { EXPECT_EQ(Cases().size(), 80U); }

}  // namespace
}  // namespace stepcast::golden_test
