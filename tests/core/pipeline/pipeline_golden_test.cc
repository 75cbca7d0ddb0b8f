// Pipelines against exact answers of a reference that shares nothing with this project.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/pipeline/simulation.h"
#include "tests/support/profile_json.h"

namespace stepcast::pipeline_golden_test {
namespace {

using ::nlohmann::json;

PipelineSchedule ScheduleNamed(const std::string& name) {
  for (int i = 0; i < 6; ++i)
    if (PipelineScheduleName(static_cast<PipelineSchedule>(i)) == name)
      return static_cast<PipelineSchedule>(i);
  ADD_FAILURE() << name;
  return PipelineSchedule::kGpipe;
}

std::vector<int64_t> Numbers(const json& golden, const char* name) {
  return golden.at(name).get<std::vector<int64_t>>();
}

PipelineJob Load(const json& golden) {
  PipelineJob job;
  job.layout = {.schedule = ScheduleNamed(golden.at("schedule")),
                .devices = golden.at("devices"),
                .chunks = golden.at("chunks"),
                .micro_batches = golden.at("micro_batches")};
  if (job.layout.schedule == PipelineSchedule::kInterleaved) job.layout.group = golden.at("group");
  EXPECT_TRUE(LayoutFaults(job.layout).empty());
  job.replicas = golden.at("replicas");
  const auto forward = Numbers(golden, "forward_ns");
  const auto input = Numbers(golden, "backward_input_ns");
  const auto weight = Numbers(golden, "backward_weight_ns");
  const bool split = SplitsBackward(job.layout.schedule);
  job.times.emplace_back();
  for (size_t s = 0; s < forward.size(); ++s)
    job.times[0].push_back({.forward = Nanoseconds(forward[s]),
                            .backward = Nanoseconds(input[s] + (split ? 0 : weight[s])),
                            .backward_weight = Nanoseconds(weight[s]),
                            .last_backward_extra = {}});
  job.output_bytes = Numbers(golden, "activation_bytes");
  job.bytes_per_second = golden.at("bandwidth_bytes_per_second");
  job.latency = FromSeconds(golden.at("latency_seconds"));
  job.links = golden.at("links") == "PAIR" ? PipelineLinks::kPair : PipelineLinks::kDevice;
  job.reduction =
      golden.at("reduction") == "AT_END" ? PipelineReduction::kAtEnd : PipelineReduction::kByChunk;
  const double d = job.replicas;
  const double rate = golden.at("reduction_bandwidth_bytes_per_second");
  const double latency = golden.at("reduction_latency_seconds");
  std::vector<int64_t> bytes = Numbers(golden, "gradient_bytes");
  // At a device's end all its gradients are one collective.
  if (job.reduction == PipelineReduction::kAtEnd) {
    for (int32_t stage = job.layout.devices; stage < job.layout.stages(); ++stage)
      bytes[static_cast<size_t>(job.layout.DeviceOf(stage))] +=
          std::exchange(bytes[static_cast<size_t>(stage)], 0);
  }
  for (const int64_t of_stage : bytes) {
    job.reductions.emplace_back();
    if (job.replicas == 1 || of_stage == 0) continue;
    const double seconds = 2 * (d - 1) * (latency + static_cast<double>(of_stage) / d / rate);
    job.reductions.back().push_back(
        {.before_end = {}, .alone = FromSeconds(seconds), .wire_bytes = 0});
  }
  for (const int64_t tail : Numbers(golden, "tail_ns")) job.tails.push_back(Nanoseconds(tail));
  for (const json& speed : golden.at("replica_speeds"))
    for (int32_t device = 0; device < job.layout.devices; ++device)
      job.scale.push_back(1 / speed.get<double>());
  return job;
}

std::string KeyOf(const PipelineJob& job, size_t x, const PipelineWork& work) {
  static constexpr const char* kLetters[] = {"F", "B", "I", "W"};
  const auto p = static_cast<size_t>(job.layout.devices);
  return std::to_string(x / p) + "/" + std::to_string(x % p) + "/" +
         kLetters[static_cast<int>(work.part)] + std::to_string(work.micro_batch) + "." +
         std::to_string(work.chunk);
}

TEST(PipelineGoldenTest, EveryCaseComesOut) {
  const json cases = testing::ReadJsonFile(STEPCAST_SOURCE_DIR "/tests/data/golden/pipeline.json");
  ASSERT_EQ(cases.size(), 60U);
  size_t compared_ends = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i << " " << cases[i].at("schedule"));
    const PipelineJob job = Load(cases[i]);
    const json& expected = cases[i].at("expected");
    const absl::StatusOr<PipelineRun> run = SimulatePipeline(job, NeverStop);
    ASSERT_TRUE(run.ok()) << run.status();
    const double step = ToSeconds(run->step_ends[0] - Instant{});
    const double want = expected.at("step_seconds");
    EXPECT_NEAR(step, want, 1e-6 * want);
    double computed = 0;
    for (const Span span : run->computation) computed += ToSeconds(span);
    const double idle = 1 - computed / (step * static_cast<double>(run->computation.size()));
    EXPECT_NEAR(idle, expected.at("idle_fraction").get<double>(), 1e-6);
    EXPECT_EQ(run->chunks_in_flight, expected.at("chunks_in_flight").get<std::vector<int32_t>>());
    const json& ends = expected.at("operation_end_seconds");
    if (ends.is_null()) continue;
    for (size_t x = 0; x < run->ends.size(); ++x) {
      const auto order = OrderOf(job.layout, static_cast<int32_t>(x) % job.layout.devices);
      for (size_t n = 0; n < order.size(); ++n) {
        const std::string key = KeyOf(job, x, order[n]);
        ASSERT_TRUE(ends.contains(key)) << key << ends.begin().key();
        const double end = ends.at(key);
        EXPECT_NEAR(ToSeconds(run->ends[x][n] - Instant{}), end, 1e-6 * end) << key;
        ++compared_ends;
      }
    }
  }
  EXPECT_GT(compared_ends, 0U);
}

}  // namespace
}  // namespace stepcast::pipeline_golden_test
