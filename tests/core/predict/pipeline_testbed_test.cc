// Pipelines that real PyTorch trained over gloo, predicted from the trace of one process.
//
// The data: two models, two and three stages, one to three replicas, on shaped links of 119.55 MB/s
// of payload (tests/data/pp). Each trace is imported, and each point asked for as a user would: its
// layout and cuts, gloo's transport, buckets of 5 MiB.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/stop_check.h"
#include "core/importing/pytorch/pytorch_trace.h"
#include "core/model/scenario.h"
#include "core/pipeline/shares.h"
#include "core/predict/pipeline_job.h"
#include "tests/core/importing/unpacked_file.h"
#include "tests/support/profile_json.h"

namespace stepcast::pipeline_testbed_test {
namespace {

using ::nlohmann::json;

// Of a start of an all-reduce's round, and of a transfer, as ping-pongs of the testbed have them.
constexpr double kRoundSeconds = 259e-6;
constexpr double kTransferSeconds = 350e-6;

Profile ProfileOf(const std::string& model) {
  const std::string text =
      testing::UnpackedFile(STEPCAST_SOURCE_DIR "/tests/data/pp/" + model + "-plain.json.gz");
  TextSource source(text);
  absl::StatusOr<ImportedProfile> imported = ImportPyTorchTrace(
      source, {.recording = {.batch_size = 32, .platform = {.bandwidth_bytes_per_second = 1e9}}},
      {}, NeverStop);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported->profile;
}

ScenarioDraft DraftOf(const Profile& profile, const json& point) {
  static const std::map<std::string, PipelineReceives> kReceives = {
      {"eager", PipelineReceives::kEager},
      {"late", PipelineReceives::kLate},
      {"fused", PipelineReceives::kFused},
      {"paired", PipelineReceives::kPaired}};
  const double rate = point.at("rate").get<double>() * 0.11955;
  PipelineDraft pipeline{.stages = point.at("stages").get<int32_t>(),
                         .micro_batches = point.at("microbatches").get<int32_t>(),
                         .schedule = point.at("schedule") == "gpipe"
                                         ? PipelineSchedule::kGpipe
                                         : PipelineSchedule::kOneForwardOneBackward,
                         .receives = kReceives.at(point.at("p2p")),
                         .transport = PipelineTransport::kGloo,
                         .links = PipelineLinks::kDevice,
                         .bandwidth_bytes_per_second = rate,
                         .latency_seconds = kTransferSeconds,
                         .reduction = PipelineReduction::kBuckets};
  std::vector<std::string> layers;
  for (const Operation& operation : profile.operations())
    if (operation.pass == Pass::kForward) layers.push_back(operation.name);
  const auto boundaries = point.at("boundaries").get<std::vector<size_t>>();
  for (size_t stage = 1; stage + 1 < boundaries.size(); ++stage)
    pipeline.cuts.push_back(layers.at(boundaries[stage]));
  return {.workers = point.at("replicas").get<int32_t>(),
          .bandwidth_bytes_per_second = rate,
          .communication = AllReduceDraft{.algorithm = CollectiveAlgorithm::kRing,
                                          .latency_seconds = kRoundSeconds,
                                          .fusion = Buckets{.cap_bytes = 5 << 20}},
          .pipeline = std::move(pipeline)};
}

struct Errors {
  double sum = 0;
  double worst = 0;
  int count = 0;

  double mean() const { return sum / count; }
};

TEST(PipelineTestbedTest, StepsPerSecondOfRealPipelinesFromAPlainTrace) {
  const json measured =
      testing::ReadJsonFile(STEPCAST_SOURCE_DIR "/tests/data/pp/plain_and_measured.json")
          .at("measured");
  std::map<std::string, Profile> profiles;
  std::map<std::string, Errors> errors;
  for (const json& point : measured) {
    if (point.at("send_after_allreduce").get<bool>()) continue;
    const auto model = point.at("model").get<std::string>();
    if (!profiles.contains(model)) profiles.emplace(model, ProfileOf(model));
    const Profile& profile = profiles.at(model);
    const auto scenario = ResolveScenario(profile, DraftOf(profile, point), {.pipelines = true});
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    PipelineJob job = JobOf(PlanPipeline(profile, *scenario), *scenario);
    job.replicas = scenario->workers;
    job.steps = 32;
    job.counted_from = 16;
    const auto shares = SharesOf(job, NeverStop);
    ASSERT_TRUE(shares.ok()) << shares.status();
    const double error = 100 * (1 / shares->step_seconds / point.at("mean").get<double>() - 1);
    if (std::getenv("STEPCAST_SHOW") != nullptr)
      std::cout << model << " " << point.at("schedule") << " " << point.at("p2p") << " P"
                << point.at("stages") << " D" << point.at("replicas") << " M"
                << point.at("microbatches") << " " << point.at("rate") << " " << error << "\n";
    const std::string kind = point.at("rate").get<double>() < 1e9 ? "slow" : point.at("p2p");
    Errors& of_kind = errors[kind];
    of_kind.sum += std::abs(error);
    of_kind.worst = std::max(of_kind.worst, std::abs(error));
    ++of_kind.count;
  }
  for (const auto& [kind, of_kind] : errors)
    std::cout << kind << " " << of_kind.count << ": mean " << of_kind.mean() << " %, worst "
              << of_kind.worst << " %\n";
  EXPECT_EQ(errors["eager"].count, 40);
  EXPECT_LE(errors["eager"].mean(), 1.7);
  EXPECT_LE(errors["eager"].worst, 5.5);
  for (const char* const kind : {"late", "fused", "paired"}) EXPECT_LE(errors[kind].mean(), 2);
}

}  // namespace
}  // namespace stepcast::pipeline_testbed_test
