#include "deploy/kubernetes/admission/training_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace stepcast::admission::training_job_test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

TrainingJob Read(std::string_view group, std::string_view kind, const char* object) {
  const absl::StatusOr<TrainingJob> job = ReadTrainingJob(group, kind, json::parse(object));
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? *job : TrainingJob{};
}

absl::Status Fault(std::string_view group, std::string_view kind, const char* object) {
  return ReadTrainingJob(group, kind, json::parse(object)).status();
}

TEST(TrainingJobTest, CompletionsGoWithParallelismWhereTheyAreTheSame) {
  const TrainingJob job = Read("batch", "Job", R"({"spec": {"parallelism": 4, "completions": 4,
      "completionMode": "Indexed"}})");
  EXPECT_THAT(job.pods, Optional(4));
  EXPECT_THAT(job.fields, ElementsAre(CountField{"/spec/parallelism", "spec.parallelism"},
                                      CountField{"/spec/completions", "spec.completions"}));
  EXPECT_EQ(job.fixed_because, "");
}

TEST(TrainingJobTest, AJobThatWorksThroughAListIsLeftAlone) {
  EXPECT_THAT(
      Read("batch", "Job", R"({"spec": {"parallelism": 4, "completions": 9}})").fixed_because,
      HasSubstr("spec.completions 9 is not its parallelism"));
  EXPECT_THAT(
      Read("batch", "Job", R"({"spec": {"parallelism": 4, "completions": 4}})").fixed_because,
      HasSubstr("is not Indexed"));
}

TEST(TrainingJobTest, ACountThatAnotherFieldDependsOnIsLeftAlone) {
  const auto why_of = [](std::string_view group, std::string_view kind, const char* object) {
    return Read(group, kind, object).fixed_because;
  };
  EXPECT_EQ(why_of("batch", "Job", R"({"spec": {"parallelism": 8, "completions": 8,
      "completionMode": "Indexed", "maxFailedIndexes": 4}})"),
            "spec.maxFailedIndexes 4 depends on it");
  EXPECT_EQ(why_of("batch", "Job", R"({"spec": {"parallelism": 8, "completions": 8,
      "completionMode": "Indexed", "successPolicy": {"rules": [{"succeededCount": 8}]}}})"),
            "spec.successPolicy depends on it");
  EXPECT_EQ(why_of("jobset.x-k8s.io", "JobSet", R"({"spec": {"replicatedJobs": [{"template": {
      "spec": {"parallelism": 8, "completions": 8, "completionMode": "Indexed",
      "maxFailedIndexes": 4}}}]}})"),
            "spec.replicatedJobs[0].template.spec.maxFailedIndexes 4 depends on it");
  EXPECT_EQ(why_of("kubeflow.org", "PyTorchJob", R"({"spec": {"runPolicy": {"schedulingPolicy": {
      "minAvailable": 8}}, "pytorchReplicaSpecs": {"Worker": {"replicas": 8}}}})"),
            "spec.runPolicy.schedulingPolicy.minAvailable 8 depends on it");
  EXPECT_EQ(why_of("kubeflow.org", "MPIJob", R"({"spec": {"runPolicy": {"schedulingPolicy": {
      "minAvailable": 9}}, "mpiReplicaSpecs": {"Worker": {"replicas": 8}}}})"),
            "spec.runPolicy.schedulingPolicy.minAvailable 9 depends on it");
}

TEST(TrainingJobTest, KueueWantsParallelismAboveItsLeast) {
  const TrainingJob job = Read("batch", "Job", R"({"metadata": {
      "labels": {"kueue.x-k8s.io/queue-name": "q"},
      "annotations": {"kueue.x-k8s.io/job-min-parallelism": "3"}}, "spec": {"parallelism": 8}})");
  EXPECT_TRUE(job.is_queued_by_kueue);
  EXPECT_THAT(job.min_pods, Optional(4));
}

TEST(TrainingJobTest, AMasterCountsAsOneAndOneWorkerRemains) {
  const TrainingJob job = Read("kubeflow.org", "PyTorchJob", R"({"spec": {"pytorchReplicaSpecs": {
      "Master": {}, "Worker": {"replicas": 7}}}})");
  EXPECT_THAT(job.pods, Optional(8));
  EXPECT_EQ(job.pods_besides, 1);
  EXPECT_THAT(job.min_pods, Optional(2));
}

TEST(TrainingJobTest, AMasterAloneIsOnePodWithItsAccelerators) {
  constexpr char kMaster[] =
      R"("Master": {"replicas": 1, "template": {"spec": {"containers": [{"resources": {"limits": {
         "nvidia.com/gpu": 8}}}]}}})";
  const auto read = [&](const std::string& worker) {
    const std::string object =
        R"({"spec": {"pytorchReplicaSpecs": {)" + std::string(kMaster) + worker + "}}}";
    return Read("kubeflow.org", "PyTorchJob", object.c_str());
  };
  const TrainingJob alone = read("");
  EXPECT_THAT(alone.pods, Optional(1));
  EXPECT_THAT(alone.min_pods, Optional(1));
  EXPECT_EQ(alone.workers_per_pod, 8);
  EXPECT_THAT(alone.fixed_because, HasSubstr("has no Worker"));
  const TrainingJob none = read(R"(, "Worker": {"replicas": 0})");
  EXPECT_THAT(none.pods, Optional(1));
  EXPECT_THAT(none.min_pods, Optional(1));
  EXPECT_EQ(none.workers_per_pod, 8);
  EXPECT_EQ(none.fixed_because, "");
}

TEST(TrainingJobTest, ProcessesOfAPodAreFoundInTheirOrder) {
  const auto workers = [](const char* spec) {
    const std::string object = std::string(R"({"spec": )") + spec + "}";
    return Read("kubeflow.org", "PyTorchJob", object.c_str()).workers_per_pod;
  };
  constexpr char kGpus[] =
      R"("pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"containers": [
         {"resources": {"limits": {"nvidia.com/gpu": "4", "cpu": "64"}}}]}}}})";
  EXPECT_EQ(workers((std::string("{") + kGpus + "}").c_str()), 4);
  EXPECT_EQ(workers((std::string(R"({"nprocPerNode": "auto", )") + kGpus + "}").c_str()), 4);
  EXPECT_EQ(workers((std::string(R"({"nprocPerNode": "2", )") + kGpus + "}").c_str()), 2);
  EXPECT_EQ(workers(R"({"elasticPolicy": {"nProcPerNode": 8}})"), 8);
  EXPECT_EQ(workers("{}"), 1);
  EXPECT_EQ(Read("batch", "Job", R"({"metadata": {"annotations": {
      "stepcast.dev/workers-per-pod": "3"}}})")
                .workers_per_pod,
            3);
}

TEST(TrainingJobTest, AJobSetsWorkersAreThoseOfSeveralPods) {
  constexpr char kSet[] = R"({"metadata": {"annotations": {}}, "spec": {"replicatedJobs": [
      {"name": "driver", "template": {"spec": {"parallelism": 1, "completions": 1}}},
      {"name": "node", "template": {"spec": {"parallelism": 5, "completions": 5,
       "completionMode": "Indexed"}}}]}})";
  const TrainingJob job = Read("jobset.x-k8s.io", "JobSet", kSet);
  EXPECT_THAT(job.pods, Optional(5));
  EXPECT_EQ(job.fields.front().pointer, "/spec/replicatedJobs/1/template/spec/parallelism");
  json named = json::parse(kSet);
  named["metadata"]["annotations"]["stepcast.dev/replicated-job"] = "driver";
  EXPECT_THAT(ReadTrainingJob("jobset.x-k8s.io", "JobSet", named)->pods, Optional(1));
  named["metadata"]["annotations"]["stepcast.dev/replicated-job"] = "nobody";
  EXPECT_EQ(DetailsOf(ReadTrainingJob("jobset.x-k8s.io", "JobSet", named).status()).reason,
            "WORKERS_UNCLEAR");
}

TEST(TrainingJobTest, CopiesOfAReplicatedJobAreSeveralPods) {
  const auto read = [](const char* first) {
    const std::string object = std::string(R"({"spec": {"replicatedJobs": [)") + first + R"(,
        {"name": "workers", "replicas": 8, "template": {"spec": {"parallelism": 1}}}]}})";
    return ReadTrainingJob("jobset.x-k8s.io", "JobSet", json::parse(object));
  };
  const auto driven = read(R"({"name": "driver", "template": {"spec": {"parallelism": 1}}})");
  ASSERT_TRUE(driven.ok()) << driven.status();
  EXPECT_THAT(driven->pods, Optional(8));
  EXPECT_THAT(driven->fixed_because, HasSubstr("spec.replicatedJobs[1].replicas is 8"));
  constexpr char kBare[] =
      R"({"spec": {"replicatedJobs": [{"name": "w", "replicas": 8, "template": {"spec": {}}}]}})";
  EXPECT_THAT(Read("jobset.x-k8s.io", "JobSet", kBare).pods, Optional(8));
  const auto served = read(R"({"name": "ps", "template": {"spec": {"parallelism": 4}}})");
  EXPECT_EQ(DetailsOf(served.status()).reason, "WORKERS_UNCLEAR");
}

TEST(TrainingJobTest, CountsThatAreNoneSayWhy) {
  for (const char* parallelism : {"-1", "4097", "18446744073709551615", "1.5", "\"4\"", "[4]"}) {
    const std::string object = std::string(R"({"spec": {"parallelism": )") + parallelism + "}}";
    const absl::Status fault = Fault("batch", "Job", object.c_str());
    EXPECT_EQ(DetailsOf(fault).reason, "COUNT_INVALID") << parallelism;
    EXPECT_THAT(std::string(fault.message()), HasSubstr("spec.parallelism ")) << parallelism;
  }
  // 2,000 pods of four.
  EXPECT_EQ(DetailsOf(Fault("kubeflow.org", "MPIJob", R"({"spec": {"slotsPerWorker": 4,
      "mpiReplicaSpecs": {"Worker": {"replicas": 2000}}}})"))
                .reason,
            "COUNT_INVALID");
}

TEST(TrainingJobTest, AbsentCountsAreNoFaults) {
  for (const char* object : {"null", "1", "[]", "{}", R"({"spec": 1})", R"({"spec": {}})"}) {
    for (const auto& [group, kind] : {std::pair{"batch", "Job"},
                                      {"kubeflow.org", "PyTorchJob"},
                                      {"kubeflow.org", "MPIJob"},
                                      {"trainer.kubeflow.org", "TrainJob"},
                                      {"jobset.x-k8s.io", "JobSet"}})
      EXPECT_THAT(Read(group, kind, object).pods, Eq(std::nullopt)) << kind << object;
  }
}

TEST(TrainingJobTest, AKindIsKnownWithItsGroupAlone) {
  EXPECT_EQ(DetailsOf(Fault("kubeflow.org", "Job", "{}")).reason, "KIND_UNKNOWN");
  EXPECT_EQ(DetailsOf(Fault("batch", "CronJob", "{}")).reason, "KIND_UNKNOWN");
}

}  // namespace
}  // namespace stepcast::admission::training_job_test
