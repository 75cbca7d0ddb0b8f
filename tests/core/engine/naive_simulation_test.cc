// The naive simulation against the golden cases, so that what the engine is compared with is right
// itself.
#include "tests/core/engine/naive_simulation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "tests/support/profile_json.h"

namespace stepcast::testing::naive_simulation_test {
namespace {

using ::nlohmann::json;

const json& Cases() {
  static const json* const cases =
      new json(ReadJsonFile(STEPCAST_SOURCE_DIR "/tests/data/golden/parameter_server.json"));
  return *cases;
}

Scenario ScenarioOf(const json& asked, const Profile& profile) {
  ScenarioDraft draft{.workers = asked.at("workers").get<int32_t>()};
  if (!asked.at("window_bytes").is_null())
    draft.servers().multiplexing = WindowDraft{.bytes = asked.at("window_bytes").get<int64_t>()};
  if (!asked.at("transfer_priorities").is_null()) {
    for (const auto& [name, rank] : asked.at("transfer_priorities").items())
      draft.servers().transfer_priorities[name] = rank.get<int32_t>();
  }
  draft.start_offsets_ns = asked.at("start_offsets_ns").get<std::vector<int64_t>>();
  const absl::StatusOr<Scenario> scenario = ResolveScenario(profile, draft);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return *scenario;
}

class NaiveGoldenTest : public ::testing::TestWithParam<size_t> {};

TEST_P(NaiveGoldenTest, EveryStepEndsAtItsNanosecond) {
  const json& golden = Cases().at(GetParam());
  const absl::StatusOr<Profile> profile = Profile::Create(ProfileFromJson(golden.at("profile")));
  ASSERT_TRUE(profile.ok()) << profile.status();
  const json& asked = golden.at("scenario");
  const NaiveResult result =
      SimulateNaively(*profile, ScenarioOf(asked, *profile),
                      {.steps_per_worker = asked.at("steps_per_worker").get<int>(),
                       .warmup_steps = asked.at("warmup_steps").get<int>(),
                       .sample = [](size_t, size_t) { return size_t{0}; }});
  ASSERT_TRUE(result.steps_per_second.has_value());
  const auto expected = golden.at("steps_per_second").get<double>();
  EXPECT_NEAR(result.steps_per_second->convert_to<double>(), expected, expected * 1e-8);
  const json& step_ends = golden.at("step_end_ns");
  ASSERT_EQ(result.step_ends_ns.size(), step_ends.size());
  for (size_t w = 0; w < step_ends.size(); ++w) {
    ASSERT_GE(result.step_ends_ns[w].size(), step_ends[w].size());
    for (size_t n = 0; n < step_ends[w].size(); ++n) {
      EXPECT_NEAR(result.step_ends_ns[w][n].convert_to<double>(), step_ends[w][n].get<double>(), 1)
          << "worker " << w << " step " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ParameterServer, NaiveGoldenTest, ::testing::Range(size_t{0}, size_t{80}));

}  // namespace
}  // namespace stepcast::testing::naive_simulation_test
