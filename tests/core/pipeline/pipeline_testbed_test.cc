// Pipelines that real PyTorch trained over gloo, predicted from a recording of one process.
//
// The data: two models, two and three stages, one to three replicas, on shaped links of 119.55 MB/s
// of payload; forward, backward and optimizer of each layer as the import finds them in the trace
// of one process. Beside the recording there are only constants of the host: what a stage and a
// send take of it.
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
#include "core/base/time.h"
#include "core/importing/pytorch_trace.h"
#include "core/pipeline/shares.h"
#include "core/pipeline/simulation.h"
#include "core/pipeline/stage_cut.h"
#include "tests/core/importing/forward_parts.h"
#include "tests/core/importing/unpacked_file.h"
#include "tests/support/profile_json.h"

namespace stepcast::pipeline_testbed_test {
namespace {

using ::nlohmann::json;

constexpr double kForwardOfStageUs = 250;
constexpr double kBackwardOfStageUs = 350;
constexpr double kCopyUsPerByte = 0.1 / 1000;
constexpr double kAddUsPerByte = 0.09 / 1000;
constexpr int64_t kFirstBucket = 1 << 20;
constexpr int64_t kBucketCap = 5 << 20;

Span Us(double us) { return FromSeconds(us * 1e-6); }

struct Bucket {
  int64_t bytes = 0;
  size_t layer = 0;  // whose gradient is the last
};

// DistributedDataParallel's, of a stage's layers, last to first, the parameters of each in their
// order.
std::vector<Bucket> BucketsOf(const json& layers, size_t begin, size_t end) {
  std::vector<Bucket> buckets;
  int64_t limit = kFirstBucket;
  Bucket open;
  for (size_t layer = end; layer-- > begin;) {
    for (const json& parameter : layers[layer].at("parameters")) {
      open.bytes += parameter.get<int64_t>();
      open.layer = layer;
      if (open.bytes < limit) continue;
      buckets.push_back(open);
      open = {};
      limit = kBucketCap;
    }
  }
  if (open.bytes > 0) buckets.push_back(open);
  return buckets;
}

int64_t BytesOf(const json& layer) {
  int64_t bytes = 0;
  for (const json& parameter : layer.at("parameters")) bytes += parameter.get<int64_t>();
  return bytes;
}

PipelineJob JobOf(const json& recording, const json& point) {
  const json& layers = recording.at("layers");
  auto cuts = point.at("boundaries").get<std::vector<size_t>>();
  cuts.back() = layers.size();  // with the loss
  const auto m = point.at("microbatches").get<int32_t>();
  PipelineJob job;
  job.layout.schedule = point.at("schedule") == "gpipe" ? PipelineSchedule::kGpipe
                                                        : PipelineSchedule::kOneForwardOneBackward;
  job.layout.devices = point.at("stages");
  job.layout.micro_batches = m;
  job.replicas = point.at("replicas");
  static const std::map<std::string, PipelineReceives> kReceives = {
      {"eager", PipelineReceives::kEager},
      {"late", PipelineReceives::kLate},
      {"fused", PipelineReceives::kFused},
      {"paired", PipelineReceives::kPaired}};
  job.receives = kReceives.at(point.at("p2p"));
  job.transport = PipelineTransport::kGloo;
  job.links = PipelineLinks::kDevice;
  job.reduction = PipelineReduction::kBuckets;
  job.bytes_per_second = point.at("rate").get<double>() * 0.11955;
  job.latency = Us(350);
  job.steps = 32;
  const double d = job.replicas;
  int64_t all = 0;
  for (const json& layer : layers) all += BytesOf(layer);
  double optimizer = 0;
  for (const json& step : recording.at("steps")) {
    optimizer +=
        step.at("optimizer_us").get<double>() / static_cast<double>(recording.at("steps").size());
    job.times.emplace_back();
    for (size_t stage = 0; stage + 1 < cuts.size(); ++stage) {
      double forward = kForwardOfStageUs;
      double backward =
          kBackwardOfStageUs + kAddUsPerByte * static_cast<double>(BytesOf(layers[cuts[stage]]));
      double bytes = 0;
      for (size_t layer = cuts[stage]; layer < cuts[stage + 1]; ++layer) {
        forward += step.at("forward_us")[layer].get<double>();
        backward += step.at("backward_us")[layer].get<double>();
        bytes += static_cast<double>(BytesOf(layers[layer]));
      }
      job.times.back().push_back({.forward = Us(forward),
                                  .backward = Us(backward),
                                  .backward_weight = {},
                                  .last_backward_extra = Us(bytes * kCopyUsPerByte)});
    }
  }
  const auto steps = static_cast<double>(recording.at("steps").size());
  for (size_t stage = 0; stage + 1 < cuts.size(); ++stage) {
    job.output_bytes.push_back(cuts[stage + 1] < layers.size()
                                   ? layers[cuts[stage + 1]].at("input_bytes").get<int64_t>()
                                   : 0);
    double bytes = 0;
    for (size_t layer = cuts[stage]; layer < cuts[stage + 1]; ++layer)
      bytes += static_cast<double>(BytesOf(layers[layer]));
    job.tails.push_back(Us(optimizer * bytes / static_cast<double>(all) + bytes * kCopyUsPerByte));
    job.reductions.emplace_back();
    std::vector<int64_t> sizes;
    for (const Bucket& bucket : BucketsOf(layers, cuts[stage], cuts[stage + 1])) {
      sizes.push_back(bucket.bytes);
      double before = 0;
      for (size_t layer = cuts[stage]; layer < bucket.layer; ++layer)
        for (const json& step : recording.at("steps"))
          before += step.at("backward_us")[layer].get<double>() / steps;
      if (job.replicas == 1) continue;
      job.reductions.back().push_back(
          {.before_end = Us(before),
           .alone = Us(2 * (d - 1) * 259),
           .wire_bytes = 2 * (d - 1) / d * static_cast<double>(bucket.bytes)});
    }
    EXPECT_EQ(sizes, point.at("bucket_bytes")[stage].get<std::vector<int64_t>>());
  }
  return job;
}

// The layers of a trace, and what each took in every step.
json RecordingOf(const std::string& model) {
  const std::string text =
      testing::UnpackedFile(STEPCAST_SOURCE_DIR "/tests/data/pp/" + model + "-plain.json.gz");
  TextSource source(text);
  const auto imported = ImportPyTorchTrace(
      source, {.recording = {.batch_size = 32, .platform = {.bandwidth_bytes_per_second = 1e9}}},
      {}, NeverStop);
  EXPECT_TRUE(imported.ok()) << imported.status();
  const Profile& profile = imported->profile;
  size_t optimizer = 0;
  while (profile.operations()[optimizer].name != "optimizer") ++optimizer;
  json recording = {{"layers", json::array()}, {"steps", json::array()}};
  for (size_t s = 0; s < profile.steps().size(); ++s) {
    const RecordedStep& step = profile.steps()[s];
    json times = {{"optimizer_us",
                   static_cast<double>(step.end_ns[optimizer] - step.start_ns[optimizer]) / 1e3}};
    int64_t input_bytes = 0;
    for (const testing::ForwardPart& part : testing::ForwardPartsOf(profile, s)) {
      if (s == 0)
        recording["layers"].push_back(
            {{"input_bytes", input_bytes}, {"parameters", part.gradients}});
      input_bytes = part.output_bytes;
      times["forward_us"].push_back(static_cast<double>(part.forward_ns) / 1e3);
      times["backward_us"].push_back(static_cast<double>(part.backward_ns) / 1e3);
    }
    recording["steps"].push_back(times);
  }
  return recording;
}

struct Errors {
  double sum = 0;
  double worst = 0;
  int count = 0;

  double mean() const { return sum / count; }
};

TEST(PipelineTestbedTest, StepsPerSecondOfRealPipelines) {
  const json data =
      testing::ReadJsonFile(STEPCAST_SOURCE_DIR "/tests/data/pp/plain_and_measured.json");
  std::map<std::string, json> recordings;
  std::map<std::string, Errors> errors;
  for (const json& point : data.at("measured")) {
    if (point.at("send_after_allreduce").get<bool>()) continue;
    const auto model = point.at("model").get<std::string>();
    if (!recordings.contains(model)) recordings[model] = RecordingOf(model);
    const json& recording = recordings[model];
    const auto shares = SharesOf(JobOf(recording, point), NeverStop);
    ASSERT_TRUE(shares.ok()) << shares.status();
    const double error = 100 * (1 / shares->step_seconds / point.at("mean").get<double>() - 1);
    if (std::getenv("STEPCAST_SHOW") != nullptr)
      std::cout << point.at("model") << point.at("schedule") << point.at("p2p") << " P"
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
  EXPECT_LE(errors["eager"].mean(), 2.5);
  EXPECT_LE(errors["eager"].worst, 7);
  for (const char* const kind : {"late", "fused", "paired"}) EXPECT_LE(errors[kind].mean(), 3);
}

}  // namespace
}  // namespace stepcast::pipeline_testbed_test
