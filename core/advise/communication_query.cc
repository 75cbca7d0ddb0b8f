#include "core/advise/communication_query.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/communication/all_reduce.h"
#include "core/model/all_reduce.h"
#include "core/model/multi_rank_recording.h"
#include "core/model/scenario_edits.h"
#include "core/predict/request_faults.h"

namespace stepcast {

namespace {

constexpr TuningMethod kAllMethods[] = {TuningMethod::kAsRecorded,    TuningMethod::kDdpBuckets,
                                        TuningMethod::kHorovod,       TuningMethod::kMgWfbp,
                                        TuningMethod::kByteScheduler, TuningMethod::kLibraM,
                                        TuningMethod::kLibra,         TuningMethod::kSearch,
                                        TuningMethod::kSequential,    TuningMethod::kMgCf};

// Adds a fault for every value of a list that stands in it twice.
template <typename Value>
void CheckDistinct(const char* list, const std::vector<Value>& values, RequestFaults& faults) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto before =
        static_cast<size_t>(std::find(values.begin(), values.end(), values[i]) - values.begin());
    if (before < i)
      faults.Add(absl::StrCat(list, "[", i, "]"),
                 absl::StrCat("is the same as ", list, "[", before, "]"));
  }
}

// The reason why a method cannot be asked about such a job; empty: it can.
std::string WhyNot(TuningMethod method, const Profile& profile, const Scenario& scenario) {
  const AllReduce& job = scenario.all_reduce();
  if (method != TuningMethod::kAsRecorded) {
    if (std::string why = WhyNoOtherBuckets(profile); !why.empty()) return why;
  }
  if (method == TuningMethod::kByteScheduler) {
    if (job.sharding != Sharding::kNone || job.fidelity != Fidelity::kCollapsed)
      return "";  // a fault of the scenario's own
    const std::vector<Fault> faults =
        DetailsOf(CheckCollectives(profile, WithFusion(scenario, ByteScheduler{}, 0))).faults;
    return faults.empty() ? ""
                          : absl::StrCat("BYTESCHEDULER needs to know when a parameter is used: ",
                                         faults.front().description);
  }
  if (method == TuningMethod::kLibra || method == TuningMethod::kLibraM) {
    if (!job.contention.has_value())
      return absl::StrCat(NameOf(method),
                          " chooses threads by what they cost: it needs contention");
    if (job.partition_bytes != 0)
      return absl::StrCat(NameOf(method), " cuts no collective, but partition_bytes does");
    return "";
  }
  if (method == TuningMethod::kMgCf && !job.contention.has_value())
    return "MG_CF is what MG_WFBP would be without contention: it needs contention";
  if (method != TuningMethod::kHorovod) return "";
  if (job.concurrent_collectives != 1 || job.partition_bytes != 0)
    return "HOROVOD carries one collective at a time and cuts none, but the scenario has "
           "concurrent_collectives or partition_bytes";
  return "";
}

// The reason why a method is tried only where it is named. Steps that go on beside the next one are
// simulated worker by worker, in whatever order their updates come.
std::string WhyOnlyByName(TuningMethod method, const Profile& profile, const Scenario& scenario) {
  if (method != TuningMethod::kByteScheduler) return "";
  constexpr int64_t kMostPieces = 50'000;  // of all workers; seconds of simulation
  constexpr int64_t kPieceBytes = 4'000'000;
  auto pieces = static_cast<int64_t>(profile.operations().size());
  for (const Operation& operation : profile.operations())
    pieces += operation.size_bytes / kPieceBytes;
  if (pieces <= kMostPieces / scenario.workers) return "";
  return absl::StrCat("BYTESCHEDULER takes long with ", scenario.workers, " workers of ", pieces,
                      " operations and pieces: it is tried where methods name it");
}

void CheckMethods(const TuningDraft& draft, const Profile& profile, const Scenario& scenario,
                  RequestFaults& faults) {
  for (size_t i = 0; i < draft.methods.size(); ++i) {
    const std::string why = WhyNot(draft.methods[i], profile, scenario);
    if (!why.empty()) faults.Add(absl::StrCat("methods[", i, "]"), why);
  }
  if (draft.methods == std::vector<TuningMethod>{TuningMethod::kMgCf})
    faults.Add("methods[0]", "MG_CF alone is nothing to choose: ask for another one beside it");
}

// Words of an obstacle to fusing gradients otherwise: the field of a request that has it, its
// fault, and the same as the reason why nothing was asked.
struct ObstacleText {
  const char* field;
  const char* fault;
  const char* why_not;
};

ObstacleText TextOf(FusionObstacle obstacle) {
  switch (obstacle) {
    case FusionObstacle::kServers:
      return {"scenario",
              "the job has parameter servers: advice is for workers that meet in all-reduces: "
              "ask about such a job (--all-reduce; in a request, scenario.all_reduce), for parts "
              "and groups that go to servers (stepcast optimize, OptimizeJob), or for the order of "
              "recorded transfers (stepcast order, OptimizeOrder)",
              "transfers to parameter servers have no buckets"};
    case FusionObstacle::kSharding:
      return {"scenario.all_reduce.sharding",
              "must be unset: what is grouped here are all-reduces of whole gradients",
              "the job is sharded, and buckets are of whole gradients"};
    case FusionObstacle::kExpanded:
      break;
  }
  return {"scenario.all_reduce.fidelity", "must be COLLAPSED: many groupings are tried",
          "fidelity is EXPANDED, and many groupings are tried"};
}

std::vector<Scenario> ResolveCounts(const Profile& profile, const TuningDraft& draft,
                                    const TuningLimits& limits, RequestFaults& faults) {
  int32_t channels = draft.nccl_channels.value_or(kNcclChannels);
  if (channels < 1 || channels > limits.max_nccl_channels) channels = kNcclChannels;  // a fault
  ScenarioDraft base = draft.scenario;
  // The recorded times are of the recorded groups, and say little of any others.
  if (profile.recorded_workers() > 1 && profile.has_collectives() &&
      std::holds_alternative<std::monostate>(base.communication))
    base.communication = AllReduceDraft{};
  if (auto* job = std::get_if<AllReduceDraft>(&base.communication)) {
    if (draft.contention.has_value()) {
      if (job->contention.has_value())
        faults.Add("contention", "given, and scenario.all_reduce.contention is, too: which?");
      job->contention = draft.contention;
    }
    if (job->contention.has_value() && !job->threads.has_value()) job->thread_channels = channels;
  } else if (draft.contention.has_value()) {
    if (std::holds_alternative<std::monostate>(base.communication) && profile.has_collectives()) {
      base.communication =
          AllReduceDraft{.contention = draft.contention, .thread_channels = channels};
    } else {
      faults.Add("contention", "is of all-reduces, and the scenario is not");
    }
  }
  std::vector<std::pair<std::string, ScenarioDraft>> asked;
  if (draft.worker_counts.empty()) {
    asked.emplace_back("scenario.workers", base);
    if (base.workers.value_or(0) == 0)
      asked.back().second.workers = WorkersByLists(base).value_or(kDefaultTunedWorkers);
  } else {
    ScenarioDraft varied = WithVariedWorkers(base, "worker_counts say how many there are", faults);
    for (size_t i = 0; i < draft.worker_counts.size(); ++i) {
      varied.workers = draft.worker_counts[i];
      asked.emplace_back(absl::StrCat("worker_counts[", i, "]"), varied);
    }
  }
  std::vector<Scenario> scenarios;
  for (const auto& [path, scenario_draft] : asked) {
    absl::StatusOr<Scenario> scenario =
        ResolveRunnable(profile, scenario_draft, scenarios.empty() ? nullptr : &scenarios.back());
    std::map<std::string, std::string> renamed = {{"scenario.workers", path}};
    if (draft.contention.has_value()) {
      for (const char* field : {"", ".alpha1", ".alpha2", ".gamma4", ".overlapped", ".alone"})
        renamed[absl::StrCat("scenario.all_reduce.contention", field)] =
            absl::StrCat("contention", field);
    }
    faults.AddPart("scenario", scenario.status(), renamed);
    if (!scenario.ok()) continue;
    for (const FusionObstacle obstacle : FusionObstaclesOf(*scenario))
      faults.Add(TextOf(obstacle).field, TextOf(obstacle).fault);
    scenarios.push_back(*std::move(scenario));
  }
  return scenarios;
}

// Numbers of threads that nobody gave are those that computation and links go on beside, if any.
AllocationOptions AllocationOf(const TuningDraft& draft,
                               const std::optional<Contention>& contention) {
  AllocationOptions options;
  options.max_groups = draft.max_groups.value_or(options.max_groups);
  options.chunks = draft.chunks.value_or(options.chunks);
  if (!draft.threads.empty()) {
    options.threads = draft.threads;
    return options;
  }
  std::vector<int32_t> possible;
  for (const int32_t threads : options.threads) {
    FaultList faults;
    if (contention.has_value()) CheckContention(*contention, {&threads, 1}, faults);
    if (faults.empty()) possible.push_back(threads);
  }
  if (!possible.empty()) options.threads = std::move(possible);
  return options;
}

// The allocation, with faults of the fields of threads: none may be given without contention.
AllocationOptions CheckAllocation(const TuningDraft& draft, const Scenario& scenario,
                                  const TuningLimits& limits, RequestFaults& faults) {
  const AllReduce& job = scenario.all_reduce();
  const std::optional<Contention>& contention = job.contention;
  const auto unused = [&](const char* field) {
    faults.Add(field, "has no effect without contention: it is of the threads of collectives");
  };
  AllocationOptions options = AllocationOf(draft, contention);
  if (!draft.threads.empty() && !contention.has_value()) unused("threads");
  if (options.threads.size() > limits.max_thread_choices) {
    faults.Add("threads",
               absl::StrCat("has ", options.threads.size(),
                            " entries, more than max_thread_choices ", limits.max_thread_choices));
    return options;
  }
  CheckDistinct("threads", draft.threads, faults);
  const auto in_range = [&](const char* field, const std::optional<int32_t>& value, int32_t most) {
    if (!value.has_value()) return;
    if (!contention.has_value()) unused(field);
    if (*value < 1 || *value > most)
      faults.Add(field, absl::StrCat(*value, " is not from 1 to ", most));
  };
  in_range("max_groups", draft.max_groups, limits.max_groups);
  in_range("chunks", draft.chunks, limits.max_chunks);
  in_range("nccl_channels", draft.nccl_channels, limits.max_nccl_channels);
  faults.AddIf(draft.nccl_channels.has_value() && job.threads > 0, "nccl_channels",
               draft.nccl_channels, " has no effect: scenario.all_reduce.threads is ", job.threads);
  if (!contention.has_value()) return options;
  FaultList found;
  CheckContention(*contention, options.threads, found);
  for (Fault& fault : std::move(found).Take())
    faults.Add(std::move(fault.field), std::move(fault.description));
  return options;
}

}  // namespace

const char* NameOf(TuningMethod method) {
  switch (method) {
    case TuningMethod::kAsRecorded:
      return "AS_RECORDED";
    case TuningMethod::kDdpBuckets:
      return "DDP_BUCKETS";
    case TuningMethod::kHorovod:
      return "HOROVOD";
    case TuningMethod::kMgWfbp:
      return "MG_WFBP";
    case TuningMethod::kByteScheduler:
      return "BYTESCHEDULER";
    case TuningMethod::kLibraM:
      return "LIBRA_M";
    case TuningMethod::kLibra:
      return "LIBRA";
    case TuningMethod::kSearch:
      return "SEARCH";
    case TuningMethod::kSequential:
      return "SEQUENTIAL";
    case TuningMethod::kMgCf:
      return "MG_CF";
  }
  return "";
}

std::vector<int64_t> BucketCaps() {
  constexpr double kMegabytes[] = {0.25, 0.5, 0.75, 1,  1.5, 2,  3,  4,  5,  6,   7,   8,   10, 12,
                                   15,   20,  25,   30, 35,  40, 50, 60, 80, 100, 125, 150, 200};
  std::vector<int64_t> caps;
  for (const double megabytes : kMegabytes)
    caps.push_back(static_cast<int64_t>(megabytes * (1 << 20)));
  return caps;
}

Warning StartFreeWarning() {
  return {.reason = Warning::Reason::kCollectivesStartFree,
          .message =
              "a collective takes no time here but that of its bytes, so many small ones "
              "look as good as a few; say what one costs: latency_seconds (--latency), or "
              "what fits a benchmark of collectives (stepcast profile fit-collectives)"};
}

BucketQuestion AskForBuckets(const Profile& profile, const Scenario& scenario,
                             const SimulationOptions& options) {
  constexpr int64_t kFewCapsMebibytes[] = {1, 2, 5, 10, 25, 50, 100, 200};
  const std::vector<FusionObstacle> obstacles = FusionObstaclesOf(scenario);
  if (!obstacles.empty() && (scenario.workers > 1 || obstacles.front() == FusionObstacle::kServers))
    return {.why_not = TextOf(obstacles.front()).why_not};
  if (scenario.workers == 1) return {.why_not = "one worker sends no gradients"};
  const AllReduce& job = scenario.all_reduce();
  if (job.algorithm == CollectiveAlgorithm::kMeasured && profile.recording() != nullptr &&
      job.measured == MeasuredCollectivesOf(*profile.recording()))
    return {.why_not = "collectives take their recorded times, which say little of other buckets"};
  if (std::string why = WhyNoOtherBuckets(profile); !why.empty()) return {.why_not = why};
  TuningQuery query;
  query.scenarios = {scenario};
  query.options = options;
  query.methods = {TuningMethod::kAsRecorded, TuningMethod::kDdpBuckets};
  query.first_bucket_bytes = kFirstBucketBytes;
  query.recorded_buckets = profile.content().buckets;
  for (const int64_t cap : kFewCapsMebibytes) query.bucket_caps_bytes.push_back(cap << 20);
  // Merging by the cost of a start makes buckets of single gradients where there is none.
  if (!CollectivesStartFree(scenario)) query.methods.push_back(TuningMethod::kMgWfbp);
  return {.query = std::move(query)};
}

absl::StatusOr<TuningQuery> ResolveTuning(const Profile& profile, const TuningDraft& draft,
                                          const TuningLimits& limits) {
  RequestFaults faults;
  absl::StatusOr<SimulationOptions> options = ResolveOptions(draft.options);
  faults.AddPart("options", options.status());
  if (draft.worker_counts.size() > limits.max_worker_counts) {
    faults.Add("worker_counts",
               absl::StrCat("has ", draft.worker_counts.size(),
                            " entries, more than max_worker_counts ", limits.max_worker_counts));
    return std::move(faults).ToStatus("REQUEST_INVALID");
  }
  CheckDistinct("worker_counts", draft.worker_counts, faults);
  CheckDistinct("methods", draft.methods, faults);
  if (draft.bucket_caps_bytes.size() > limits.max_bucket_caps) {
    faults.Add("bucket_caps_bytes",
               absl::StrCat("has ", draft.bucket_caps_bytes.size(),
                            " entries, more than max_bucket_caps ", limits.max_bucket_caps));
  }
  CheckDistinct("bucket_caps_bytes", draft.bucket_caps_bytes, faults);
  for (size_t i = 0; i < draft.bucket_caps_bytes.size(); ++i) {
    if (draft.bucket_caps_bytes[i] < 1)
      faults.Add(absl::StrCat("bucket_caps_bytes[", i, "]"),
                 absl::StrCat(draft.bucket_caps_bytes[i], " is below 1"));
  }
  if (draft.first_bucket_bytes.value_or(1) < 1)
    faults.Add("first_bucket_bytes", absl::StrCat(*draft.first_bucket_bytes, " is below 1"));
  TuningQuery query;
  query.scenarios = ResolveCounts(profile, draft, limits, faults);
  query.has_counts = !draft.worker_counts.empty();
  query.options = {};
  query.methods = draft.methods;
  query.bucket_caps_bytes = draft.bucket_caps_bytes;
  query.first_bucket_bytes = draft.first_bucket_bytes.value_or(kFirstBucketBytes);
  query.recorded_buckets = profile.content().buckets;
  if (!query.scenarios.empty() && query.scenarios.front().server_count() == 0) {
    const Scenario& scenario = query.scenarios.front();
    CheckMethods(draft, profile, scenario, faults);
    query.allocation = CheckAllocation(draft, scenario, limits, faults);
  }
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok())
    return status;
  query.options = *options;
  if (query.methods.empty()) {
    for (const TuningMethod method : kAllMethods) {
      std::string why = WhyNot(method, profile, query.scenarios.front());
      for (size_t i = 0; i < query.scenarios.size() && why.empty(); ++i)
        why = WhyOnlyByName(method, profile, query.scenarios[i]);
      if (why.empty()) {
        query.methods.push_back(method);
      } else {
        query.left_out.push_back({.method = method, .reason = std::move(why)});
      }
    }
  }
  if (query.bucket_caps_bytes.empty()) query.bucket_caps_bytes = BucketCaps();
  std::sort(query.bucket_caps_bytes.begin(), query.bucket_caps_bytes.end());
  return query;
}

}  // namespace stepcast
