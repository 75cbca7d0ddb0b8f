// The kinds of training jobs that Kubernetes runs, and where each says how many pods it has.
//
// | kind | group | count | pods besides |
// |---|---|---|---|
// | Job | batch | spec.parallelism, with spec.completions where Indexed | |
// | PyTorchJob | kubeflow.org | spec.pytorchReplicaSpecs.Worker.replicas | Master's |
// | MPIJob | kubeflow.org | spec.mpiReplicaSpecs.Worker.replicas | the launcher, as a worker |
// | TrainJob | trainer.kubeflow.org | spec.trainer.numNodes | |
// | JobSet | jobset.x-k8s.io | spec.replicatedJobs[i].template.spec.parallelism and completions | |
//
// Versions of a group: any; where they differ in the fields that are read here, both are read.
// A worker is what the predictor counts: one process of the job. A pod runs as many as the
// annotation stepcast.dev/workers-per-pod says, else nprocPerNode, slotsPerWorker or
// numProcPerNode, else one for each of its accelerators, else one.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stepcast::admission {

// The most workers that the predictor knows anything about.
inline constexpr int64_t kMaxWorkers = 4096;

// Kueue's annotation of a Job: how few pods it may be started with.
inline constexpr char kMinParallelism[] = "kueue.x-k8s.io/job-min-parallelism";

// A field of an object, by its JSON pointer, and by the path that people write.
struct CountField {
  std::string pointer;
  std::string path;

  friend bool operator==(const CountField&, const CountField&) = default;
};

struct TrainingJob {
  std::string kind;                // "PyTorchJob"
  std::vector<CountField> fields;  // that all have `pods` - `pods_besides`; the first one is named
  std::optional<int64_t> pods;     // that run workers, 1 or more; absent: the object does not say
  int64_t pods_besides = 0;        // of `pods`, those that `fields` do not count
  int64_t workers_per_pod = 1;
  std::optional<int64_t>
      min_pods;  // by the object itself: its elasticPolicy, or Kueue's annotation
  std::optional<int64_t> max_pods;
  std::string fixed_because;         // why the count must not be changed; empty: it may be
  bool is_queued_by_kueue = false;   // a Job with a queue's name, which Kueue may start with less
  bool has_min_parallelism = false;  // the Job tells Kueue itself how few pods will do
};

// Reads an object of a kind above. `object` may be of any shape: a field that is absent, or no
// number, is a job without `pods`.
// Errors, INVALID_ARGUMENT with a sentence for its user: a kind that is not above (reason
// KIND_UNKNOWN); a count that is negative, no integer, or above kMaxWorkers (reason COUNT_INVALID);
// a JobSet in which several replicated jobs might be the workers (reason WORKERS_UNCLEAR).
absl::StatusOr<TrainingJob> ReadTrainingJob(std::string_view group, std::string_view kind,
                                            const nlohmann::json& object);

// The value at `keys` below `object`, or null where one of them is not there.
const nlohmann::json* FindIn(const nlohmann::json& object,
                             std::initializer_list<std::string_view> keys);

// The string at metadata.labels or metadata.annotations (`map`) below `key`; null: none.
const std::string* FindText(const nlohmann::json& object, std::string_view map,
                            std::string_view key);

}  // namespace stepcast::admission
