// The intervals of predictions from short recordings, against the truth of jobs whose steps come
// from a known distribution.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/predict/throughput.h"
#include "core/zoo/model_zoo.h"
#include "tests/support/repetitions.h"

namespace stepcast::certainty_coverage_test {
namespace {

// A half-width that is narrow enough whatever the ideal.
constexpr double kNarrow = 0.017;
constexpr int kRecordings = testing::Repetitions(300);
// Steps of what is the truth: recorded, and of each worker.
constexpr int32_t kTruth = 50 * testing::Repetitions(60);

// A sum of exponential ones has a gamma distribution whose shape is their number: of mean 1 and so
// many per cent of deviation.
double Gamma(double deviation, Random& random) {
  const int shape = static_cast<int>(std::lround(1 / (deviation * deviation)));
  double sum = 0;
  for (int i = 0; i < shape; ++i) sum -= std::log1p(-random.Unit());
  return sum / shape;
}

struct Distribution {
  const char* name;
  double deviation;
  bool gamma = false;

  double Draw(Random& random) const {
    return gamma ? Gamma(deviation, random) : std::exp(deviation * random.Normal());
  }
};
constexpr std::array<Distribution, 4> kDistributions = {
    Distribution{"lognormal 2 %", 0.02}, Distribution{"lognormal 5 %", 0.05},
    Distribution{"lognormal 10 %", 0.10}, Distribution{"gamma 8 %", 0.08, true}};

Profile OneStep(const char* model, ZooCommunication communication) {
  ZooOptions options{.platform = {.bandwidth_bytes_per_second = 1.25e9}, .variation = {.own = 0}};
  options.communication = communication;
  return BuildZooProfile(model, options).value();
}

// The job recorded for so many steps.
Profile Recorded(const Profile& one_step, const Distribution& steps, int32_t count,
                 Random& random) {
  ProfileDraft draft = one_step.content();
  const RecordedStep step = draft.steps.front();
  draft.steps.clear();
  for (int32_t k = 0; k < count; ++k) {
    const double factor = steps.Draw(random);
    RecordedStep& varied = draft.steps.emplace_back(step);
    for (size_t op = 0; op < varied.end_ns.size(); ++op) {
      if (draft.operations[op].resource != Resource::kWorker) continue;
      const auto length = static_cast<double>(step.end_ns[op] - step.start_ns[op]);
      varied.end_ns[op] = step.start_ns[op] + std::llround(length * factor);
    }
  }
  return Profile::Create(std::move(draft)).value();
}

struct Job {
  const char* name;
  const char* model;
  ZooCommunication communication;
  bool synchronous = false;
  std::vector<int32_t> workers;
  int recordings = kRecordings;
  int least_held = 80;       // per cent of a row
  double most_bias = 0.045;  // from eight recorded steps on
};

Prediction Predict(const Profile& profile, const Job& job, int32_t workers,
                   const SimulationOptionsDraft& options) {
  ScenarioDraft scenario{.workers = workers};
  if (job.synchronous) scenario.servers().synchronization = Synchronization::kSynchronous;
  const ThroughputQuery query =
      ResolveThroughput(profile, {.scenarios = {scenario}, .options = options}).value();
  return PredictThroughput(profile, query, NeverStop)->predictions.front();
}

// Of predictions of one job on so many workers from many recordings of so many steps.
struct Row {
  int held = 0;
  double bias = 0;        // of the mean estimate
  double half_width = 0;  // mean
  double ideal = 0;       // 1.96 standard deviations of the estimates
};

Row Try(const Profile& one_step, const Job& job, const Distribution& steps, int32_t recorded,
        int32_t workers, double truth) {
  Row row;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < job.recordings; ++i) {
    Random random({static_cast<uint64_t>(i), static_cast<uint64_t>(recorded), 11});
    const Prediction prediction = Predict(Recorded(one_step, steps, recorded, random), job, workers,
                                          {.step_variation = StepSource::kModelled});
    const Interval& interval = prediction.confidence_interval;
    row.held += interval.lower <= truth && truth <= interval.upper;
    row.half_width += (interval.upper - interval.lower) / 2 / truth / job.recordings;
    const double share = prediction.examples_per_second / truth;
    sum += share;
    squares += share * share;
  }
  const double mean = sum / job.recordings;
  row.bias = mean - 1;
  row.ideal = 1.96 * std::sqrt(std::max(0.0, squares / job.recordings - mean * mean));
  return row;
}

class CertaintyCoverageTest : public ::testing::TestWithParam<Job> {};

TEST_P(CertaintyCoverageTest, HoldsTheTruthAsOftenAsItSaysAndIsNotMuchWiderThanItMustBe) {
  const Job& job = GetParam();
  const Profile one_step = OneStep(job.model, job.communication);
  int held_by_all = 0;
  int rows = 0;
  for (const Distribution& steps : kDistributions) {
    Random random({7});
    const Profile long_recording = Recorded(one_step, steps, kTruth, random);
    for (const int32_t workers : job.workers) {
      const double truth = Predict(long_recording, job, workers,
                                   {.steps_per_worker = kTruth,
                                    .replications = 2,
                                    .step_variation = StepSource::kAsRecorded})
                               .examples_per_second;
      for (const int32_t recorded : {4, 8, 20}) {
        const Row row = Try(one_step, job, steps, recorded, workers, truth);
        std::printf(
            "%s, steps %s, %d recorded, %d workers: held %3.0f %%, bias %+.1f %%, half-width "
            "%.1f %%, ideal %.1f %%\n",
            job.name, steps.name, recorded, workers, 100.0 * row.held / job.recordings,
            100 * row.bias, 100 * row.half_width, 100 * row.ideal);
        ++rows;
        held_by_all += row.held;
        if (testing::kSanitized) continue;
        EXPECT_GE(row.held, job.recordings * job.least_held / 100);
        EXPECT_LE(std::abs(row.bias), recorded >= 8 ? job.most_bias : 0.06);
        // Where steps vary by less than the prior says, four of them do not outweigh it.
        EXPECT_LE(row.half_width, std::max(2 * row.ideal, kNarrow));
      }
    }
  }
  std::printf("%s: held in %.1f %% of all\n", job.name,
              100.0 * held_by_all / rows / job.recordings);
  STEPCAST_SKIP_SHARES_UNDER_SANITIZERS();
  EXPECT_GE(held_by_all, rows * job.recordings * 88 / 100);
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, CertaintyCoverageTest,
    ::testing::Values(
        Job{"AllReduce", "resnet50", ZooCommunication::kAllReduce, false, {1, 4, 16, 64, 256}},
        // Servers' runs take longer, so there are fewer recordings; and as short as they are by
        // default, four of them that nearly keep in step are off by up to 5 % however much was
        // recorded.
        Job{"Servers",
            "googlenet",
            ZooCommunication::kParameterServers,
            false,
            {1, 4, 8},
            testing::Repetitions(60),
            65,
            0.06},
        // Links decide nearly all of it: the intervals have next to no width.
        Job{"ServersWithBarriers",
            "googlenet",
            ZooCommunication::kParameterServers,
            true,
            {4, 16},
            testing::Repetitions(60),
            65}),
    [](const auto& job) { return std::string(job.param.name); });

}  // namespace
}  // namespace stepcast::certainty_coverage_test
