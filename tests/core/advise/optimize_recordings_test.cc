// The strategies that are found for recorded jobs, beside every default: recordings of the
// tree whose workers meet in all-reduces.
#include <gtest/gtest.h>

#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/advise/optimize_job.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/pytorch/pytorch_trace.h"
#include "tests/core/advise/chain_job.h"

namespace stepcast::optimize_recordings_test {
namespace {

using std::filesystem::path;

const path kData = path(STEPCAST_SOURCE_DIR) / "tests/data";

// The decompressed bytes of a file.
struct RecordedFile {
  explicit RecordedFile(const path& file)
      : packed(std::istreambuf_iterator<char>(std::ifstream(file, std::ios::binary).rdbuf()), {}) {}

  const std::string packed;
  TextSource source{packed};
  GunzipSource trace{source,
                     {.admit = [](int64_t) { return absl::OkStatus(); },
                      .damaged = [](const std::string& why) { return absl::DataLossError(why); }}};
};

const PyTorchTraceOptions kOptions{
    .recording = {
        .model = "m", .batch_size = 32, .platform = {.bandwidth_bytes_per_second = 1.25e8}}};

Profile OfOneWorker(const char* name) {
  RecordedFile file(kData / name);
  return ImportPyTorchTrace(file.trace, kOptions, {}, NeverStop).value().profile;
}

Profile OfThreeWorkers(const char* folder) {
  std::deque<RecordedFile> files;
  std::vector<RankTrace> traces;
  for (const char* name : {"rank0.json.gz", "rank1.json.gz", "rank2.json.gz"})
    traces.push_back({.recording = &files.emplace_back(kData / folder / name).trace, .name = name});
  return ImportPyTorchRanks(traces, kOptions, {}, NeverStop).value().profile;
}

// The found strategy is at least as fast as each default, and as the job as it was recorded.
void ExpectNeverWorse(const char* name, const Profile& profile, int32_t workers) {
  SCOPED_TRACE(::testing::Message() << name << ", " << workers << " workers");
  const absl::StatusOr<StrategyQuery> query = ResolveStrategies(
      profile, {.scenario = RingOf(workers, 1e-4),
                .options = {.steps_per_worker = 30, .warmup_steps = 5, .replications = 2}});
  ASSERT_TRUE(query.ok()) << query.status();
  const absl::StatusOr<StrategyAnswer> answer = OptimizeJob(profile, *query, NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const double found = answer->prediction.examples_per_second;
  std::printf("%-22s W = %d:", name, workers);
  int defaults = 0;
  for (const char* other : {"AS_RECORDED", "DDP_BUCKETS", "HOROVOD", "MG_WFBP", "NO_FUSION"}) {
    for (const ComparedStrategy& compared : answer->compared) {
      if (compared.name != other) continue;
      ++defaults;
      EXPECT_GE(found, compared.examples_per_second * (1 - 1e-9)) << other;
      std::printf(" %s %.1f,", other, compared.examples_per_second);
    }
  }
  EXPECT_EQ(defaults, 5);
  EXPECT_GE(found, answer->as_recorded.examples_per_second * (1 - 1e-9));
  std::printf(" found %.1f examples/s, %d replays\n", found, answer->search.replays);
}

TEST(OptimizeRecordingsTest, IsNeverWorseThanAnyDefaultOnOneWorkersRecordings) {
  for (const char* name :
       {"ddp/alexnet_s/alexnet_s-25.json.gz", "ddp/resnet50_s/resnet50_s-5.json.gz",
        "ddp_sweep/alexnet_s/alexnet_s-25.json.gz", "ddp_sweep/resnet50_s/resnet50_s-5.json.gz",
        "ddp_sweep/bert_s/bert_s-25.json.gz"}) {
    const Profile profile = OfOneWorker(name);
    for (const int32_t workers : {2, 6}) ExpectNeverWorse(name, profile, workers);
  }
}

// The lengths of an operation in the steps of one worker.
std::vector<int64_t> LengthsOf(const Profile& profile, int32_t worker, size_t operation) {
  std::vector<int64_t> lengths;
  for (const RecordedStep& step : profile.steps_of(worker))
    lengths.push_back(step.end_ns[operation] - step.start_ns[operation]);
  return lengths;
}

TEST(OptimizeRecordingsTest, AStrategyIsWrittenIntoTheStepsOfEveryWorker) {
  const Profile profile = OfThreeWorkers("ddp_sweep/resnet50_s/ranks-straggler-w3");
  const StrategyQuery query = ResolveStrategies(profile, {.scenario = RingOf(3, 1e-4)}).value();
  const FusionCosts costs(profile, {}, 1.0);
  Strategy strategy = NothingFused(profile);
  FusedTensors& first = strategy.tensors.front();
  first.gradients.push_back(strategy.tensors[1].gradients.front());
  first.partitions = 2;
  strategy.tensors.erase(strategy.tensors.begin() + 1);
  const std::vector<int32_t> stream = StreamOrders(profile).front();
  strategy.fused = {{stream[0], stream[1]}};
  const absl::StatusOr<AppliedStrategy> applied = Apply(profile, query.scenario, strategy, costs);
  ASSERT_TRUE(applied.ok()) << applied.status();
  ASSERT_EQ(applied->profile.recorded_workers(), 3);
  const std::vector<Operation>& operations = applied->profile.operations();
  EXPECT_EQ(operations.size(), profile.operations().size() - 1);
  for (int32_t worker = 0; worker < 3; ++worker) {
    for (size_t i = 0; i < operations.size(); ++i) {
      if (operations[i].resource != Resource::kWorker) continue;
      for (size_t old = 0; old < profile.operations().size(); ++old) {
        if (profile.operations()[old].name != operations[i].name) continue;
        std::vector<int64_t> expected = LengthsOf(profile, worker, old);
        if (static_cast<int32_t>(old) == stream[1]) {
          const std::vector<int64_t> other = LengthsOf(profile, worker, Index(stream[0]));
          for (size_t s = 0; s < expected.size(); ++s) expected[s] += other[s];
        }
        EXPECT_EQ(LengthsOf(applied->profile, worker, i), expected) << operations[i].name;
      }
    }
  }
  // Memory passes, too.
  MemoryModel model{.kept_bytes = std::vector<int64_t>(profile.operations().size(), 1)};
  const absl::StatusOr<MemoryPlan> halves =
      Accumulate(profile, model, std::vector<double>(profile.operations().size(), 0.5));
  ASSERT_TRUE(halves.ok()) << halves.status();
  EXPECT_EQ(halves->profile.recorded_workers(), 3);
}

TEST(OptimizeRecordingsTest, IsNeverWorseThanAnyDefaultOnRecordingsOfSeveralWorkers) {
  for (const char* name :
       {"ddp_sweep/resnet50_s/ranks-w3", "ddp_sweep/resnet50_s/ranks-straggler-w3"})
    ExpectNeverWorse(name, OfThreeWorkers(name), 3);
}

}  // namespace
}  // namespace stepcast::optimize_recordings_test
