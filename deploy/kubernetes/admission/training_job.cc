#include "deploy/kubernetes/admission/training_job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"

namespace stepcast::admission {

namespace {

using nlohmann::json;

constexpr char kQueueName[] = "kueue.x-k8s.io/queue-name";
constexpr char kReplicatedJob[] = "stepcast.dev/replicated-job";
constexpr char kWorkersPerPod[] = "stepcast.dev/workers-per-pod";

absl::Status CountInvalid(const std::string& path, const std::string& why) {
  return MakeError(absl::StatusCode::kInvalidArgument, absl::StrCat(path, " ", why),
                   {.reason = "COUNT_INVALID"});
}

// The number of pods or processes at `keys`; absent: there is none, or null.
absl::StatusOr<std::optional<int64_t>> Count(const json& object,
                                             std::initializer_list<std::string_view> keys,
                                             const std::string& path) {
  const json* value = FindIn(object, keys);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (!value->is_number_integer()) return CountInvalid(path, "is no whole number");
  // A literal beyond 2^63 is an unsigned integer.
  if (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{kMaxWorkers})
    return CountInvalid(
        path, absl::StrCat("is ", value->get<uint64_t>(), ", above the ", kMaxWorkers, " known"));
  const auto count = value->get<int64_t>();
  if (count < 0) return CountInvalid(path, absl::StrCat("is ", count, ", below 0"));
  return count;
}

// The accelerators that all containers of a pod may use, by their resources that end in "/gpu".
int64_t GpusOfLimits(const json* limits) {
  int64_t gpus = 0;
  if (limits == nullptr || !limits->is_object()) return 0;
  for (const auto& [name, value] : limits->items()) {
    int64_t some = 0;
    if (!absl::EndsWith(name, "/gpu")) continue;
    if (value.is_number_integer()) some = value.get<int64_t>();
    if (value.is_string() && !absl::SimpleAtoi(value.get_ref<const std::string&>(), &some))
      some = 0;
    if (some > 0 && some <= kMaxWorkers && gpus <= kMaxWorkers) gpus += some;
  }
  return gpus;
}

// The same of a pod template. null: no pod.
int64_t GpusOfPod(const json* pod) {
  const json* containers = pod == nullptr ? nullptr : FindIn(*pod, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return 0;
  int64_t gpus = 0;
  for (const json& container : *containers) {
    if (gpus <= kMaxWorkers) gpus += GpusOfLimits(FindIn(container, {"resources", "limits"}));
  }
  return gpus;
}

// The number of processes of a pod: what the annotation says; else the field `keys`, which newer
// versions write as a number and older ones as text; else, where that is absent or leaves it to the
// pod ("auto", "gpu", "cpu"), its accelerators; else 1.
absl::StatusOr<int64_t> WorkersPerPod(const json& object,
                                      std::initializer_list<std::string_view> keys,
                                      const std::string& path, int64_t gpus) {
  const json* value = keys.size() == 0 ? nullptr : FindIn(object, keys);
  std::optional<int64_t> count;
  std::string where = path;
  int64_t parsed = 0;
  if (const std::string* text = FindText(object, "annotations", kWorkersPerPod); text != nullptr) {
    where = kWorkersPerPod;
    if (!absl::SimpleAtoi(*text, &parsed))
      return CountInvalid(where, absl::StrCat("is ", Quoted(*text), ", no whole number"));
    count = parsed;
  } else if (value != nullptr && value->is_string()) {
    if (absl::SimpleAtoi(value->get_ref<const std::string&>(), &parsed)) count = parsed;
  } else if (value != nullptr) {
    absl::StatusOr<std::optional<int64_t>> number = Count(object, keys, path);
    if (!number.ok()) return number.status();
    count = *number;
  }
  if (!count) return std::clamp<int64_t>(gpus, 1, kMaxWorkers);
  if (*count < 1 || *count > kMaxWorkers)
    return CountInvalid(where, absl::StrCat("is ", *count, ", not between 1 and ", kMaxWorkers));
  return *count;
}

// `pods` from the count of `fields`; a job of no pods, which is paused, says nothing.
absl::Status TakeCount(const std::optional<int64_t>& count, TrainingJob& job) {
  if (count && *count + job.pods_besides > 0) job.pods = *count + job.pods_besides;
  if (job.pods && *job.pods * job.workers_per_pod > kMaxWorkers) {
    return CountInvalid(job.fields.front().path,
                        absl::StrCat("makes ", *job.pods * job.workers_per_pod,
                                     " workers, above the ", kMaxWorkers, " known"));
  }
  return absl::OkStatus();
}

// Why a count must not be changed: a field that Kubernetes or a gang scheduler holds against it,
// and would then refuse the job, or wait for pods that are not made.
std::string FixedBy(const json& object, std::initializer_list<std::string_view> keys,
                    const std::string& path) {
  const json* value = FindIn(object, keys);
  if (value == nullptr || value->is_null()) return "";
  return absl::StrCat(path, value->is_primitive() ? absl::StrCat(" ", value->dump()) : "",
                      " depends on it");
}

// The specification of a Job at a pointer and path: its own, or one in a JobSet.
absl::Status TakeJobSpec(const json& object, const json* found, const std::string& pointer,
                         const std::string& path, TrainingJob& job) {
  const json spec = found == nullptr ? json::object() : *found;
  const auto parallelism = Count(spec, {"parallelism"}, path + ".parallelism");
  if (!parallelism.ok()) return parallelism.status();
  const auto completions = Count(spec, {"completions"}, path + ".completions");
  if (!completions.ok()) return completions.status();
  const json* mode = FindIn(spec, {"completionMode"});
  const bool is_indexed = mode != nullptr && *mode == "Indexed";
  const auto workers = WorkersPerPod(object, {}, "", GpusOfPod(FindIn(spec, {"template"})));
  if (!workers.ok()) return workers.status();
  job.workers_per_pod = *workers;
  job.fields = {{pointer + "/parallelism", path + ".parallelism"}};
  if (*completions && *completions == *parallelism) {
    job.fields.push_back({pointer + "/completions", path + ".completions"});
  } else if (*completions) {
    job.fixed_because =
        absl::StrCat(path, ".completions ", **completions, " is not its parallelism");
  }
  if (!is_indexed && *completions && job.fixed_because.empty() && **completions > 1)
    job.fixed_because = absl::StrCat(path, ".completionMode is not Indexed");
  for (const char* field : {"maxFailedIndexes", "successPolicy"}) {
    if (job.fixed_because.empty())
      job.fixed_because = FixedBy(spec, {field}, absl::StrCat(path, ".", field));
  }
  return TakeCount(*parallelism, job);
}

absl::StatusOr<TrainingJob> ReadJob(const json& object, TrainingJob job) {
  if (absl::Status taken = TakeJobSpec(object, FindIn(object, {"spec"}), "/spec", "spec", job);
      !taken.ok())
    return taken;
  job.is_queued_by_kueue = FindText(object, "labels", kQueueName) != nullptr;
  const std::string* least = FindText(object, "annotations", kMinParallelism);
  int64_t pods = 0;
  job.has_min_parallelism = least != nullptr;
  // Kueue refuses a job whose parallelism is not above it.
  if (least != nullptr && absl::SimpleAtoi(*least, &pods) && pods > 0 && pods < kMaxWorkers)
    job.min_pods = pods + 1;
  return job;
}

// The gang of a job of Kubeflow's operators; without a number it is all pods there are.
std::string FixedByGang(const json& object) {
  return FixedBy(object, {"spec", "runPolicy", "schedulingPolicy", "minAvailable"},
                 "spec.runPolicy.schedulingPolicy.minAvailable");
}

// `pods` of a job whose Worker says `worker`, and how few there may be: one of Worker remains,
// unless there is none.
absl::Status TakeWorkers(const std::optional<int64_t>& worker, const std::optional<int64_t>& least,
                         TrainingJob& job) {
  job.min_pods = std::max<int64_t>(least.value_or(0), worker == 0 ? 0 : 1) + job.pods_besides;
  return worker ? TakeCount(worker, job) : absl::OkStatus();
}

absl::StatusOr<TrainingJob> ReadPyTorchJob(const json& object, TrainingJob job) {
  const auto master = Count(object, {"spec", "pytorchReplicaSpecs", "Master", "replicas"},
                            "spec.pytorchReplicaSpecs.Master.replicas");
  if (!master.ok()) return master.status();
  const json* master_spec = FindIn(object, {"spec", "pytorchReplicaSpecs", "Master"});
  if (master_spec != nullptr && master_spec->is_object()) job.pods_besides = master->value_or(1);
  job.fields = {
      {"/spec/pytorchReplicaSpecs/Worker/replicas", "spec.pytorchReplicaSpecs.Worker.replicas"}};
  const auto worker =
      Count(object, {"spec", "pytorchReplicaSpecs", "Worker", "replicas"}, job.fields.front().path);
  if (!worker.ok()) return worker.status();
  // The operator's older versions have it in the policy.
  const bool is_older = FindIn(object, {"spec", "nprocPerNode"}) == nullptr;
  const json* worker_spec = FindIn(object, {"spec", "pytorchReplicaSpecs", "Worker"});
  // A job of a master alone trains there.
  const bool is_master_alone =
      job.pods_besides > 0 && worker->value_or(0) == 0 && (worker_spec == nullptr || *worker == 0);
  const json* trains = is_master_alone ? master_spec : worker_spec;
  const int64_t gpus = trains == nullptr ? 0 : GpusOfPod(FindIn(*trains, {"template"}));
  const auto processes =
      is_older ? WorkersPerPod(object, {"spec", "elasticPolicy", "nProcPerNode"},
                               "spec.elasticPolicy.nProcPerNode", gpus)
               : WorkersPerPod(object, {"spec", "nprocPerNode"}, "spec.nprocPerNode", gpus);
  if (!processes.ok()) return processes.status();
  job.workers_per_pod = *processes;
  const auto least =
      Count(object, {"spec", "elasticPolicy", "minReplicas"}, "spec.elasticPolicy.minReplicas");
  if (!least.ok()) return least.status();
  const auto most =
      Count(object, {"spec", "elasticPolicy", "maxReplicas"}, "spec.elasticPolicy.maxReplicas");
  if (!most.ok()) return most.status();
  // The policy counts the pods of Worker.
  if (*most) job.max_pods = **most + job.pods_besides;
  job.fixed_because = FixedByGang(object);
  if (is_master_alone && worker_spec == nullptr)
    job.fixed_because = "spec.pytorchReplicaSpecs has no Worker";
  if (absl::Status taken =
          TakeWorkers(is_master_alone ? std::optional<int64_t>(0) : *worker, *least, job);
      !taken.ok())
    return taken;
  return job;
}

absl::StatusOr<TrainingJob> ReadMpiJob(const json& object, TrainingJob job) {
  const json* launcher = FindIn(object, {"spec", "runLauncherAsWorker"});
  if (launcher != nullptr && *launcher == true) job.pods_besides = 1;
  job.fields = {{"/spec/mpiReplicaSpecs/Worker/replicas", "spec.mpiReplicaSpecs.Worker.replicas"}};
  const auto worker =
      Count(object, {"spec", "mpiReplicaSpecs", "Worker", "replicas"}, job.fields.front().path);
  if (!worker.ok()) return worker.status();
  const auto slots = WorkersPerPod(object, {"spec", "slotsPerWorker"}, "spec.slotsPerWorker", 1);
  if (!slots.ok()) return slots.status();
  job.workers_per_pod = *slots;
  job.fixed_because = FixedByGang(object);
  if (absl::Status taken = TakeWorkers(*worker, std::nullopt, job); !taken.ok()) return taken;
  return job;
}

absl::StatusOr<TrainingJob> ReadTrainJob(const json& object, TrainingJob job) {
  job.fields = {{"/spec/trainer/numNodes", "spec.trainer.numNodes"}};
  const auto nodes = Count(object, {"spec", "trainer", "numNodes"}, job.fields.front().path);
  if (!nodes.ok()) return nodes.status();
  const auto processes = WorkersPerPod(
      object, {"spec", "trainer", "numProcPerNode"}, "spec.trainer.numProcPerNode",
      GpusOfLimits(FindIn(object, {"spec", "trainer", "resourcesPerNode", "limits"})));
  if (!processes.ok()) return processes.status();
  job.workers_per_pod = *processes;
  if (absl::Status taken = TakeCount(*nodes, job); !taken.ok()) return taken;
  return job;
}

std::string NameOf(const json& replicated) {
  const json* name = FindIn(replicated, {"name"});
  return name != nullptr && name->is_string() ? name->get<std::string>() : "";
}

// The number at `keys`; where there is none, Kubernetes makes one.
double NumberAt(const json& object, std::initializer_list<std::string_view> keys) {
  const json* value = FindIn(object, keys);
  return value != nullptr && value->is_number() ? value->get<double>() : 1;
}

// The place of the replicated job that has the workers: the one that is named, else the only one,
// else the only one of several pods.
absl::StatusOr<size_t> WorkersOf(const json& object, const json& replicated_jobs) {
  const auto unclear = [](const std::string& why) {
    return MakeError(absl::StatusCode::kInvalidArgument, why, {.reason = "WORKERS_UNCLEAR"});
  };
  const std::string* wanted = FindText(object, "annotations", kReplicatedJob);
  std::vector<size_t> found;
  for (size_t i = 0; i < replicated_jobs.size(); ++i) {
    const bool has_several = NumberAt(replicated_jobs[i], {"replicas"}) *
                                 NumberAt(replicated_jobs[i], {"template", "spec", "parallelism"}) >
                             1;
    if (wanted != nullptr ? NameOf(replicated_jobs[i]) == *wanted
                          : has_several || replicated_jobs.size() == 1)
      found.push_back(i);
  }
  if (found.size() == 1) return found.front();
  if (wanted != nullptr) {
    return unclear(
        absl::StrCat(kReplicatedJob, " is ", Quoted(*wanted), ", the name of no replicated job"));
  }
  return unclear(absl::StrCat(found.size(), " replicated jobs have several pods; ", kReplicatedJob,
                              " says which are the workers"));
}

absl::StatusOr<TrainingJob> ReadJobSet(const json& object, TrainingJob job) {
  const json* replicated_jobs = FindIn(object, {"spec", "replicatedJobs"});
  if (replicated_jobs == nullptr || !replicated_jobs->is_array() || replicated_jobs->empty()) {
    job.fields = {{"/spec/replicatedJobs", "spec.replicatedJobs"}};
    return job;
  }
  const absl::StatusOr<size_t> at = WorkersOf(object, *replicated_jobs);
  if (!at.ok()) return at.status();
  const json& replicated = (*replicated_jobs)[*at];
  const std::string pointer = absl::StrCat("/spec/replicatedJobs/", *at);
  const std::string path = absl::StrCat("spec.replicatedJobs[", *at, "]");
  const auto replicas = Count(replicated, {"replicas"}, path + ".replicas");
  if (!replicas.ok()) return replicas.status();
  if (absl::Status taken = TakeJobSpec(object, FindIn(replicated, {"template", "spec"}),
                                       pointer + "/template/spec", path + ".template.spec", job);
      !taken.ok())
    return taken;
  if (const int64_t copies = replicas->value_or(1); copies != 1) {
    job.fixed_because = absl::StrCat(path, ".replicas is ", copies);
    if (copies == 0) job.pods.reset();
    // Each copy is one pod where it does not say.
    const bool says = FindIn(replicated, {"template", "spec", "parallelism"}) != nullptr;
    if (copies > 0 && !says) job.pods = 1;
    if (job.pods) job.pods = *job.pods * copies;
    if (job.pods && *job.pods * job.workers_per_pod > kMaxWorkers)
      return CountInvalid(path, absl::StrCat("has above ", kMaxWorkers, " pods"));
  }
  return job;
}

struct Kind {
  std::string_view group;
  std::string_view kind;
  absl::StatusOr<TrainingJob> (*read)(const json& object, TrainingJob job);
};

constexpr Kind kKinds[] = {{"batch", "Job", &ReadJob},
                           {"kubeflow.org", "PyTorchJob", &ReadPyTorchJob},
                           {"kubeflow.org", "MPIJob", &ReadMpiJob},
                           {"trainer.kubeflow.org", "TrainJob", &ReadTrainJob},
                           {"jobset.x-k8s.io", "JobSet", &ReadJobSet}};

}  // namespace

const json* FindIn(const json& object, std::initializer_list<std::string_view> keys) {
  const json* at = &object;
  for (const std::string_view key : keys) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

const std::string* FindText(const json& object, std::string_view map, std::string_view key) {
  const json* value = FindIn(object, {"metadata", map, key});
  return value == nullptr ? nullptr : value->get_ptr<const std::string*>();
}

absl::StatusOr<TrainingJob> ReadTrainingJob(std::string_view group, std::string_view kind,
                                            const json& object) {
  for (const Kind& known : kKinds) {
    if (known.group != group || known.kind != kind) continue;
    return known.read(object, TrainingJob{.kind = std::string(kind)});
  }
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("nothing is known of the kind ", Quoted(std::string(kind)), " of ",
                                Quoted(std::string(group))),
                   {.reason = "KIND_UNKNOWN"});
}

}  // namespace stepcast::admission
