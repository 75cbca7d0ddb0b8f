#include "core/diagnose/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/predict/throughput.h"
#include "core/zoo/model_zoo.h"

namespace stepcast::diagnosis_test {
namespace {

Profile ZooProfile(const char* model, ZooCommunication communication) {
  return BuildZooProfile(model, {.platform = {.bandwidth_bytes_per_second = 1e9},
                                 .communication = communication})
      .value();
}

Profile AllReduceProfile() { return ZooProfile("resnet50", ZooCommunication::kAllReduce); }

DiagnosisQuery QueryOf(const Profile& profile, ScenarioDraft scenario) {
  return ResolveDiagnosis(profile, {.scenario = std::move(scenario),
                                    .options = {.steps_per_worker = 40, .replications = 3}})
      .value();
}

const WhatIfAnswer* Find(const Diagnosis& diagnosis, WhatIf change) {
  for (const WhatIfAnswer& answer : diagnosis.what_ifs) {
    if (answer.change == change) return &answer;
  }
  return nullptr;
}

std::string ReasonOf(const Diagnosis& diagnosis, WhatIf change) {
  for (const WhatIfLeftOut& left_out : diagnosis.left_out) {
    if (left_out.change == change) return left_out.reason;
  }
  return "";
}

double SumOf(const SecondsByKind& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

// Whatever is diagnosed: sums, an answer or a reason for each change, and ratios that are those of
// the predictions, but that a mean of ratios is not quite the ratio of means.
void CheckDiagnosis(const Diagnosis& diagnosis) {
  EXPECT_NEAR(SumOf(diagnosis.path.by_kind), diagnosis.path.seconds, 1e-9 * diagnosis.path.seconds);
  // Those behind kEqualStages are of pipelines.
  EXPECT_EQ(diagnosis.what_ifs.size() + diagnosis.left_out.size(),
            static_cast<size_t>(WhatIf::kEqualStages));
  EXPECT_FALSE(diagnosis.path.operations.empty());
  double of_operations = 0;
  for (const PathOperation& operation : diagnosis.path.operations) {
    EXPECT_FALSE(operation.operations.empty());
    of_operations += operation.seconds;
  }
  EXPECT_LE(of_operations, diagnosis.path.seconds * (1 + 1e-9));
  double on_path = 0;
  for (const WorkerDiagnosis& worker : diagnosis.path.workers) on_path += worker.on_path_seconds;
  EXPECT_LE(on_path, diagnosis.path.seconds * (1 + 1e-9));
  for (const WhatIfAnswer& answer : diagnosis.what_ifs) {
    SCOPED_TRACE(NameOf(answer.change));
    EXPECT_NEAR(answer.ratio,
                answer.prediction.steps_per_second / diagnosis.prediction.steps_per_second,
                0.03 * answer.ratio);
    EXPECT_LE(answer.ratio_interval.lower, answer.ratio);
    EXPECT_GE(answer.ratio_interval.upper, answer.ratio);
  }
  for (size_t i = 1; i < diagnosis.what_ifs.size(); ++i)
    EXPECT_GE(diagnosis.what_ifs[i - 1].ratio, diagnosis.what_ifs[i].ratio);
}

TEST(DiagnosisTest, FindsTheStragglerAndWhatItCosts) {
  const Profile profile = AllReduceProfile();
  const DiagnosisQuery query = QueryOf(
      profile, {.workers = 4,
                .bandwidth_bytes_per_second = 1e10,
                .communication = AllReduceDraft{.latency_seconds = 1e-5},
                .worker_groups = {{.count = 3}, {.count = 1, .compute_speed_factor = 0.5}}});
  const Diagnosis diagnosis = DiagnoseJob(profile, query, NeverStop).value();
  CheckDiagnosis(diagnosis);
  EXPECT_EQ(diagnosis.path.straggler, 3);
  EXPECT_EQ(diagnosis.path.steps, kPathSteps);
  // The step is the straggler's, of which the others wait for about a half.
  EXPECT_NEAR(diagnosis.path.workers[3].on_path_seconds, diagnosis.path.seconds,
              0.2 * diagnosis.path.seconds);
  EXPECT_NEAR(diagnosis.path.seconds, diagnosis.prediction.step_time.mean,
              0.05 * diagnosis.path.seconds);
  EXPECT_GT(diagnosis.path.workers[3].waited_for_seconds, 0.3 * diagnosis.path.seconds);
  const WhatIfAnswer* const without = Find(diagnosis, WhatIf::kNoStragglers);
  ASSERT_NE(without, nullptr);
  EXPECT_GT(without->ratio, 1.7);
  EXPECT_LT(without->ratio, 2.01);
  // Of four workers that wait for one of half their speed, three make three quarters of twice as
  // much.
  const WhatIfAnswer* const fewer = Find(diagnosis, WhatIf::kOneWorkerFewer);
  ASSERT_NE(fewer, nullptr);
  EXPECT_EQ(fewer->prediction.scenario.workers, 3);
  EXPECT_NEAR(fewer->ratio, 1.5, 0.1);
}

TEST(DiagnosisTest, SaysWhatALinkBoundJobGains) {
  const Profile profile = AllReduceProfile();
  const DiagnosisQuery query =
      QueryOf(profile, {.workers = 4,
                        .bandwidth_bytes_per_second = 2e7,
                        .communication = AllReduceDraft{.latency_seconds = 0}});
  const Diagnosis diagnosis = DiagnoseJob(profile, query, NeverStop).value();
  CheckDiagnosis(diagnosis);
  EXPECT_EQ(diagnosis.path.straggler, -1);
  EXPECT_EQ(diagnosis.what_ifs.front().change, WhatIf::kLinksTwiceAsFast);
  EXPECT_GT(diagnosis.what_ifs.front().ratio, 1.7);
  EXPECT_GT(diagnosis.path.by_kind[static_cast<size_t>(PathKind::kCommunication)],
            0.8 * diagnosis.path.seconds);
  EXPECT_EQ(diagnosis.path.operations.front().kind, PathKind::kCommunication);
  EXPECT_EQ(ReasonOf(diagnosis, WhatIf::kNoStragglers), "all workers are alike");
  EXPECT_EQ(ReasonOf(diagnosis, WhatIf::kNoLatency), "the scenario has none");
}

TEST(DiagnosisTest, KnowsParameterServersAndOneWorker) {
  const Profile profile = ZooProfile("alexnet", ZooCommunication::kParameterServers);
  const Diagnosis diagnosis =
      DiagnoseJob(profile, QueryOf(profile, {.workers = 3}), NeverStop).value();
  CheckDiagnosis(diagnosis);
  EXPECT_EQ(ReasonOf(diagnosis, WhatIf::kNoLatency), "links to parameter servers have none");
  const Diagnosis of_one =
      DiagnoseJob(profile, QueryOf(profile, {.workers = 1}), NeverStop).value();
  CheckDiagnosis(of_one);
  EXPECT_EQ(ReasonOf(of_one, WhatIf::kOneWorkerFewer), "there is one worker");
}

double StepsPerSecondOf(const Profile& profile, const DiagnosisQuery& query,
                        const Scenario& scenario) {
  return PredictThroughput(profile, {.scenarios = {scenario}, .options = query.options}, NeverStop)
      ->predictions.front()
      .steps_per_second;
}

// A step that loads data for so long, and computes for 30 ms.
Profile LoadingProfile(int64_t loading_ms) {
  constexpr int64_t kMs = 1'000'000;
  ProfileDraft draft{.batch_size = 4, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "load", .resource = Resource::kWorker, .pass = Pass::kDataLoading},
                      {.name = "forward", .resource = Resource::kWorker, .waiting_for = {0}},
                      {.name = "backward", .resource = Resource::kWorker, .waiting_for = {1}},
                      {.name = "gradient",
                       .resource = Resource::kCollective,
                       .size_bytes = 1000,
                       .waiting_for = {2},
                       .collective = Collective::kAllReduce}};
  const int64_t end_ns = (loading_ms + 30) * kMs;
  draft.steps = {{.start_ns = {0, loading_ms * kMs, (loading_ms + 10) * kMs, end_ns},
                  .end_ns = {loading_ms * kMs, (loading_ms + 10) * kMs, end_ns, end_ns}}};
  return Profile::Create(draft).value();
}

TEST(DiagnosisTest, SaysWhatFasterDataLoadingBrings) {
  const ScenarioDraft two{.workers = 2, .communication = AllReduceDraft{.latency_seconds = 0}};
  const auto diagnose = [&](const Profile& profile) {
    return DiagnoseJob(profile, QueryOf(profile, two), NeverStop).value();
  };
  const Diagnosis diagnosis = diagnose(LoadingProfile(10));
  CheckDiagnosis(diagnosis);
  const WhatIfAnswer* const faster = Find(diagnosis, WhatIf::kDataLoadingTwiceAsFast);
  const WhatIfAnswer* const none = Find(diagnosis, WhatIf::kNoDataWait);
  ASSERT_TRUE(faster != nullptr && none != nullptr);
  EXPECT_NEAR(faster->ratio, 40.0 / 35, 1e-4);
  EXPECT_NEAR(none->ratio, 40.0 / 30, 1e-4);
  const Diagnosis idle = diagnose(LoadingProfile(0));
  CheckDiagnosis(idle);
  EXPECT_EQ(ReasonOf(idle, WhatIf::kNoDataWait), "workers never wait for data");
  const Diagnosis unknown = diagnose(AllReduceProfile());
  for (const WhatIf change : {WhatIf::kDataLoadingTwiceAsFast, WhatIf::kNoDataWait}) {
    EXPECT_EQ(ReasonOf(unknown, change),
              "the profile does not say for how long workers wait for data");
  }
}

// Waiting for data is waiting for the host: without any of it the step is what the device computes,
// and without that for data alone never shorter. Links are so slow that where a wait is matters.
TEST(DiagnosisTest, WithoutHostWaitsThereIsNoneForDataEither) {
  for (const double bandwidth : {1e12, 1e5, 4e4}) {
    SCOPED_TRACE(bandwidth);
    Profile profile = LoadingProfile(10);
    ProfileDraft draft = profile.content();
    draft.device_idle_fraction = 0.4;  // of 40 ms, 10 of which are for data
    profile = Profile::Create(std::move(draft)).value();
    const DiagnosisQuery query =
        QueryOf(profile, {.workers = 2,
                          .bandwidth_bytes_per_second = bandwidth,
                          .communication = AllReduceDraft{.latency_seconds = 0}});
    const Diagnosis diagnosis = DiagnoseJob(profile, query, NeverStop).value();
    CheckDiagnosis(diagnosis);
    const WhatIfAnswer* const host = Find(diagnosis, WhatIf::kNoHostWait);
    const WhatIfAnswer* const data = Find(diagnosis, WhatIf::kNoDataWait);
    ASSERT_TRUE(host != nullptr && data != nullptr);
    EXPECT_GE(host->ratio, data->ratio - 1e-9);
    if (bandwidth == 1e12) {
      EXPECT_NEAR(host->ratio, 40.0 / 24, 1e-3);
    }
    // As a prediction tells it.
    ThroughputQuery asked{.scenarios = {query.scenario}, .options = query.options};
    const Prediction prediction =
        PredictThroughput(profile, asked, NeverStop).value().predictions[0];
    if (prediction.bottleneck_gain->change == WhatIf::kNoHostWait) {
      EXPECT_NEAR(prediction.bottleneck_gain->gain, host->ratio - 1, 0.02);
    }
  }
}

// One recorded step of four waits 40 ms for data, so of eight workers nearly always one does: that
// is far more than the quarter of the mean step, and the prediction says so too.
TEST(DiagnosisTest, RareWaitsForDataAreWorthWhatASlowestWorkerLoses) {
  ProfileDraft draft = LoadingProfile(0).content();
  const RecordedStep quick = draft.steps.front();
  draft.steps = {quick, quick, quick, LoadingProfile(40).steps().front()};
  draft.device_idle_fraction = 0.25;
  const Profile profile = Profile::Create(std::move(draft)).value();
  const DiagnosisQuery query =
      QueryOf(profile, {.workers = 8, .communication = AllReduceDraft{.latency_seconds = 0}});
  const Diagnosis diagnosis = DiagnoseJob(profile, query, NeverStop).value();
  const WhatIfAnswer* const host = Find(diagnosis, WhatIf::kNoHostWait);
  ASSERT_NE(host, nullptr);
  EXPECT_GT(host->ratio, 2);
  const ThroughputQuery asked{.scenarios = {query.scenario}, .options = query.options};
  const Prediction prediction = PredictThroughput(profile, asked, NeverStop).value().predictions[0];
  EXPECT_EQ(prediction.bottleneck_gain->change, WhatIf::kNoHostWait);
  EXPECT_NEAR((1 + prediction.bottleneck_gain->gain) / host->ratio, 1, 0.1);
}

TEST(DiagnosisTest, FindsBucketsThatNoCapBeatsAndNamesThem) {
  const Profile profile = AllReduceProfile();
  const DiagnosisQuery query =
      QueryOf(profile, {.workers = 4,
                        .bandwidth_bytes_per_second = 5e8,
                        .communication = AllReduceDraft{.latency_seconds = 1e-3}});
  const Diagnosis diagnosis = DiagnoseJob(profile, query, NeverStop).value();
  CheckDiagnosis(diagnosis);
  const WhatIfAnswer* const best = Find(diagnosis, WhatIf::kBestBuckets);
  ASSERT_NE(best, nullptr) << ReasonOf(diagnosis, WhatIf::kBestBuckets);
  EXPECT_GT(best->ratio, 1.01) << "than PyTorch's own buckets";
  EXPECT_NEAR(StepsPerSecondOf(profile, query, best->prediction.scenario),
              best->prediction.steps_per_second, 1e-9 * best->prediction.steps_per_second);
  for (const int64_t mebibytes : {1, 5, 25, 100}) {
    Scenario scenario = query.scenario;
    std::get<AllReduce>(scenario.communication).fusion = Buckets{.cap_bytes = mebibytes << 20};
    EXPECT_GE(best->prediction.steps_per_second, 0.99 * StepsPerSecondOf(profile, query, scenario))
        << mebibytes;
  }
  EXPECT_EQ(best->setting.substr(0, 13), "bucket_cap_mb");
  std::vector<std::string> carried;
  int64_t bytes = 0;
  for (const TunedGroup& group : best->groups) {
    carried.insert(carried.end(), group.operations.begin(), group.operations.end());
    bytes += group.size_bytes;
  }
  std::vector<std::string> gradients;
  int64_t all_bytes = 0;
  for (const Operation& operation : profile.operations()) {
    if (operation.collective != Collective::kAllReduce) continue;
    gradients.push_back(operation.name);
    all_bytes += operation.size_bytes;
  }
  EXPECT_EQ(carried, gradients);
  EXPECT_EQ(bytes, all_bytes);
  EXPECT_LT(best->groups.size(), gradients.size() / 2);
}

TEST(DiagnosisTest, SaysWhyItSearchesForNoBuckets) {
  const Profile profile = AllReduceProfile();
  const auto reason = [&](ScenarioDraft scenario) {
    const Diagnosis diagnosis =
        DiagnoseJob(profile, QueryOf(profile, std::move(scenario)), NeverStop).value();
    EXPECT_EQ(ReasonOf(diagnosis, WhatIf::kBestTransferOrder),
              "there are no parameter servers: collectives have buckets");
    return ReasonOf(diagnosis, WhatIf::kBestBuckets);
  };
  EXPECT_EQ(reason({.workers = 1}), "one worker sends no gradients");
  EXPECT_EQ(reason({.workers = 2, .communication = AllReduceDraft{.sharding = Sharding::kFull}}),
            "the job is sharded, and buckets are of whole gradients");
  EXPECT_EQ(
      reason({.workers = 2, .communication = AllReduceDraft{.fidelity = Fidelity::kExpanded}}),
      "fidelity is EXPANDED, and many groupings are tried");
  // Links that take no time leave nothing to gain.
  EXPECT_EQ(reason({.workers = 2, .bandwidth_bytes_per_second = 1e14}).substr(0, 13),
            "no difference");
}

TEST(DiagnosisTest, FindsTheBestOrderOfTransfers) {
  const Profile profile = ZooProfile("vgg16", ZooCommunication::kParameterServers);
  DiagnosisQuery query = QueryOf(
      profile, {.workers = 1,
                .communication = ParameterServersDraft{.multiplexing = WholeStream{},
                                                       .transfer_order = TransferOrder::kRandom}});
  const Diagnosis diagnosis = DiagnoseJob(profile, query, NeverStop).value();
  CheckDiagnosis(diagnosis);
  EXPECT_EQ(ReasonOf(diagnosis, WhatIf::kBestBuckets),
            "transfers to parameter servers have no buckets");
  const WhatIfAnswer* const best = Find(diagnosis, WhatIf::kBestTransferOrder);
  ASSERT_NE(best, nullptr) << ReasonOf(diagnosis, WhatIf::kBestTransferOrder);
  EXPECT_GT(best->ratio, 1.01);
  for (const TransferOrder order :
       {TransferOrder::kTac, TransferOrder::kTic, TransferOrder::kReverse}) {
    Scenario scenario = query.scenario;
    std::get<ParameterServers>(scenario.communication).transfer_order = order;
    EXPECT_GE(best->prediction.steps_per_second, 0.99 * StepsPerSecondOf(profile, query, scenario));
  }
  EXPECT_EQ(best->setting.substr(0, 15), "transfer_order=");
  // In that order nothing is left to gain.
  query.scenario = best->prediction.scenario;
  EXPECT_EQ(ReasonOf(DiagnoseJob(profile, query, NeverStop).value(), WhatIf::kBestTransferOrder),
            "no order that was tried is faster than the one there is");
}

// The path is there by then, and each of the predictions has a run.
TEST(DiagnosisTest, ASpentBudgetLeavesFewerRuns) {
  const Profile profile = ZooProfile("alexnet", ZooCommunication::kParameterServers);
  // So many steps that each run asks whether to go on.
  const DiagnosisQuery query =
      ResolveDiagnosis(profile, {.scenario = {.workers = 3},
                                 .options = {.steps_per_worker = 1000, .replications = 3}})
          .value();
  int64_t checks = 0;
  const auto count = [&checks] {
    ++checks;
    return absl::OkStatus();
  };
  ASSERT_TRUE(DiagnoseJob(profile, query, count).ok());
  const int64_t most = checks - 1;
  checks = 0;
  const auto spent = [&checks, most] {
    return ++checks > most ? TimeBudgetSpent() : absl::OkStatus();
  };
  const absl::StatusOr<Diagnosis> diagnosis = DiagnoseJob(profile, query, spent);
  ASSERT_TRUE(diagnosis.ok()) << diagnosis.status();
  EXPECT_EQ(diagnosis->path.steps, kPathSteps);
  EXPECT_GT(checks, most) << "the budget was spent";
  EXPECT_FALSE(diagnosis->path.operations.empty());
}

// Cycles, priorities, rounds of a ring and sharded parameters: every way to communicate.
TEST(DiagnosisTest, KnowsEveryWayToCommunicate) {
  const Profile profile = AllReduceProfile();
  const std::vector<AllReduceDraft> drafts{
      {.fusion = HorovodDraft{}},
      {.fusion = ByteSchedulerDraft{}},
      {.fidelity = Fidelity::kExpanded},
      {.sharding = Sharding::kFull},
      {.algorithm = CollectiveAlgorithm::kGloo, .concurrent_collectives = 3},
      {.overlap_slowdown = 1.3},
  };
  for (size_t i = 0; i < drafts.size(); ++i) {
    SCOPED_TRACE(i);
    const DiagnosisQuery query = QueryOf(
        profile, {.workers = 3, .bandwidth_bytes_per_second = 1e9, .communication = drafts[i]});
    const absl::StatusOr<Diagnosis> diagnosis = DiagnoseJob(profile, query, NeverStop);
    ASSERT_TRUE(diagnosis.ok()) << diagnosis.status();
    CheckDiagnosis(*diagnosis);
  }
}

TEST(DiagnosisTest, NamesFaultsAndStopsWhenTold) {
  const Profile profile = AllReduceProfile();
  const absl::StatusOr<DiagnosisQuery> query =
      ResolveDiagnosis(profile, {.scenario = {.workers = 0}});
  ASSERT_FALSE(query.ok());
  EXPECT_EQ(DetailsOf(query.status()).faults.front().field, "scenario.workers");
  EXPECT_EQ(DiagnoseJob(profile, QueryOf(profile, {.workers = 4}),
                        [] { return absl::CancelledError("enough"); })
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stepcast::diagnosis_test
