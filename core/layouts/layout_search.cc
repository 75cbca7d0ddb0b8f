#include "core/layouts/layout_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/model/stage_map.h"
#include "core/pipeline/schedule.h"
#include "core/predict/pipeline_job.h"
#include "core/predict/pipeline_prediction.h"
#include "core/predict/request_faults.h"
#include "core/predict/settled_choice.h"

namespace stepcast {
namespace {

constexpr int64_t kMaxDevices = 1 << 20;
constexpr int32_t kMaxLayouts = 100;
constexpr size_t kMaxTried = 1000;
constexpr int32_t kReplications = 3;
constexpr size_t kAtOnce = 4;

// The most chunks in flight of a device, by its order alone.
int32_t PeakInFlight(const PipelineLayout& layout, int32_t device) {
  int32_t now = 0;
  int32_t peak = 0;
  for (const PipelineWork& work : OrderOf(layout, device)) {
    if (work.part == PipelinePart::kForward) peak = std::max(peak, ++now);
    if (work.part == PipelinePart::kBackward || work.part == PipelinePart::kBackwardWeight) --now;
  }
  return peak;
}

class LayoutResolver {
 public:
  LayoutResolver(const Profile& profile, const LayoutDraft& draft)
      : profile_(profile), draft_(draft) {}

  absl::StatusOr<LayoutQuery> Run() && {
    absl::StatusOr<SimulationOptions> options = ResolveOptions(draft_.options);
    faults_.AddPart("options", options.status());
    if (options.ok() && options->horizon != Horizon::kSteadyState)
      faults_.Add("options.horizon", "is not STEADY_STATE, which layouts are compared in");
    CheckBounds();
    if (absl::Status status = std::move(faults_).ToStatus("REQUEST_INVALID"); !status.ok())
      return status;
    query_.options = *std::move(options);
    if (query_.options.automatic_replications) {
      query_.options.automatic_replications = false;
      query_.options.replications = kReplications;
    }
    query_.memory_bytes = draft_.memory_bytes;
    query_.objective = draft_.objective.value_or(LayoutObjective::kMaxThroughput);
    query_.max_layouts = draft_.max_layouts.value_or(query_.max_layouts);
    for (int32_t stages = 1; stages <= std::min<int64_t>(replicas_, links_); ++stages)
      if (replicas_ % stages == 0) TryStages(stages);
    if (is_too_much_) {
      return FaultsError("REQUEST_INVALID",
                         {{"devices", absl::StrCat(draft_.devices, " have more than ", kMaxTried,
                                                   " layouts: name fewer schedules, or ask about "
                                                   "another number")}});
    }
    return std::move(query_);
  }

 private:
  void CheckBounds() {
    FaultList faults;
    const StageMap map = MapStages(profile_, "profile", faults);
    for (Fault& fault : std::move(faults).Take())
      faults_.Add(std::move(fault.field), std::move(fault.description));
    links_ = static_cast<int32_t>(std::min<size_t>(map.chain.size(), kMaxPipelineDevices));
    splits_ = map.splits_backward;
    if (draft_.devices < 1 || draft_.devices > kMaxDevices) {
      faults_.Add("devices", absl::StrCat(draft_.devices, " is not from 1 to ", kMaxDevices));
    } else if (draft_.devices % profile_.devices_per_worker() != 0) {
      faults_.Add("devices", absl::StrCat(draft_.devices, " is not divisible by the ",
                                          profile_.devices_per_worker(),
                                          " devices that the profile's worker is made of"));
    }
    replicas_ = draft_.devices / profile_.devices_per_worker();
    if (draft_.memory_bytes < 0)
      faults_.Add("memory_bytes", absl::StrCat(draft_.memory_bytes, " is negative"));
    CheckWork();
    if (const int32_t most = draft_.max_layouts.value_or(1); most < 1 || most > kMaxLayouts)
      faults_.Add("max_layouts", absl::StrCat(most, " is not from 1 to ", kMaxLayouts));
    if (draft_.scenario.has_value()) CheckScenario(*draft_.scenario);
  }

  void CheckWork() {
    if (draft_.micro_batches.has_value() == draft_.examples_per_step.has_value())
      faults_.Add("micro_batches", "one of micro_batches and examples_per_step is required");
    if (const int32_t count = draft_.micro_batches.value_or(1);
        count < 1 || count > kMaxMicroBatches)
      faults_.Add("micro_batches", absl::StrCat(count, " is not from 1 to ", kMaxMicroBatches));
    const int64_t examples = draft_.examples_per_step.value_or(profile_.batch_size());
    if (examples < 1 || examples % profile_.batch_size() != 0)
      faults_.Add("examples_per_step",
                  absl::StrCat(examples, " is not a multiple of the ", profile_.batch_size(),
                               " examples of a micro-batch"));
  }

  void CheckScenario(const ScenarioDraft& scenario) {
    const auto refuse = [&](bool given, const char* field) {
      if (given) faults_.Add(absl::StrCat("scenario.", field), "given, and the search chooses it");
    };
    refuse(scenario.workers.has_value(), "workers");
    refuse(!scenario.worker_groups.empty(), "worker_groups");
    refuse(!scenario.start_offsets_ns.empty(), "start_offsets_ns");
    if (!scenario.pipeline.has_value()) return;
    const PipelineDraft& pipeline = *scenario.pipeline;
    refuse(pipeline.stages.has_value(), "pipeline.stages");
    refuse(pipeline.micro_batches.has_value(), "pipeline.micro_batches");
    refuse(pipeline.schedule.has_value(), "pipeline.schedule");
    refuse(pipeline.chunks.has_value(), "pipeline.chunks");
    refuse(pipeline.group.has_value(), "pipeline.group");
    refuse(!pipeline.cuts.empty(), "pipeline.cuts");
  }

  std::vector<PipelineSchedule> Schedules(int32_t stages) const {
    if (!draft_.schedules.empty()) return draft_.schedules;
    std::vector<PipelineSchedule> schedules = {PipelineSchedule::kOneForwardOneBackward};
    // One device has no bubble that another order could fill.
    if (stages == 1) return schedules;
    schedules.push_back(PipelineSchedule::kInterleaved);
    if (splits_) schedules.push_back(PipelineSchedule::kZeroBubble1);
    return schedules;
  }

  void TryStages(int32_t stages) {
    const int64_t workers = replicas_ / stages;
    const auto* asked = draft_.scenario.has_value()
                            ? std::get_if<AllReduceDraft>(&draft_.scenario->communication)
                            : nullptr;
    // A sharded optimizer takes as long: it is for memory.
    std::vector<Sharding> shardings = {Sharding::kNone};
    if (draft_.memory_bytes > 0) shardings.push_back(Sharding::kOptimizer);
    if (asked != nullptr && asked->sharding.has_value()) shardings = {*asked->sharding};
    if (workers == 1 && shardings.size() > 1) shardings.pop_back();
    for (const PipelineSchedule schedule : Schedules(stages)) {
      const bool has_chunks = schedule == PipelineSchedule::kInterleaved ||
                              schedule == PipelineSchedule::kLoopedBreadthFirst;
      const int32_t fixed = schedule == PipelineSchedule::kZeroBubbleV ? 2 : 1;
      for (int32_t chunks = has_chunks ? 2 : fixed;
           chunks <= (has_chunks ? std::min(kMaxChunks, links_ / stages) : fixed); chunks *= 2) {
        for (const Sharding sharding : shardings) Try(stages, workers, schedule, chunks, sharding);
        if (!has_chunks) break;
      }
    }
  }

  void Try(int32_t stages, int64_t workers, PipelineSchedule schedule, int32_t chunks,
           Sharding sharding) {
    if (query_.tried.size() + query_.refused.size() >= kMaxTried) {
      is_too_much_ = true;
      return;
    }
    TriedLayout tried{.scenario = draft_.scenario.value_or(ScenarioDraft{}), .sharding = sharding};
    ScenarioDraft& asked = tried.scenario;
    asked.workers = static_cast<int32_t>(workers);
    if (!asked.pipeline.has_value()) asked.pipeline.emplace();
    asked.pipeline->stages = stages;
    asked.pipeline->schedule = schedule;
    asked.pipeline->chunks = chunks;
    if (std::holds_alternative<std::monostate>(asked.communication))
      asked.communication = AllReduceDraft{};
    if (auto* all_reduce = std::get_if<AllReduceDraft>(&asked.communication);
        all_reduce != nullptr && sharding != Sharding::kNone)
      all_reduce->sharding = sharding;
    const int64_t all = draft_.examples_per_step.value_or(0) / profile_.batch_size();
    asked.pipeline->micro_batches = draft_.micro_batches.value_or(
        static_cast<int32_t>(std::min<int64_t>(all / workers, INT32_MAX)));
    if (draft_.examples_per_step.has_value() && (all % workers != 0 || all < workers)) {
      query_.refused.push_back(
          {.pipeline = *asked.pipeline,
           .workers = *asked.workers,
           .sharding = sharding,
           .reason = absl::StrCat("workers: ", workers, " cannot share ", all, " micro-batches of ",
                                  profile_.batch_size(), " examples")});
      return;
    }
    query_.tried.push_back(std::move(tried));
  }

  const Profile& profile_;
  const LayoutDraft& draft_;
  RequestFaults faults_;
  LayoutQuery query_;
  int64_t replicas_ = 0;  // of one stage
  int32_t links_ = 0;
  bool splits_ = false;
  bool is_too_much_ = false;
};

// Finds out which layouts a profile and a device's memory allow.
class LayoutScale {
 public:
  LayoutScale(const Profile& profile, const LayoutQuery& query)
      : profile_(profile), query_(query), weighed_{.candidates = {}, .refused = query.refused} {}

  absl::StatusOr<WeighedLayouts> Run(StopCheck stop) && {
    for (const TriedLayout& tried : query_.tried) {
      if (absl::Status status = stop(); !status.ok()) return status;
      Weigh(tried);
    }
    if (weighed_.candidates.empty()) return NothingFits();
    std::stable_sort(
        weighed_.candidates.begin(), weighed_.candidates.end(),
        [](const LayoutCandidate& a, const LayoutCandidate& b) { return a.bound > b.bound; });
    return std::move(weighed_);
  }

 private:
  // Keeps it where it fits.
  void Weigh(const TriedLayout& tried) {
    const auto refuse = [&](std::string reason) {
      weighed_.refused.push_back({.pipeline = *tried.scenario.pipeline,
                                  .workers = *tried.scenario.workers,
                                  .sharding = tried.sharding,
                                  .reason = std::move(reason)});
    };
    absl::StatusOr<Scenario> scenario =
        ResolveRunnable(profile_, tried.scenario, nullptr, {.pipelines = true});
    if (!scenario.ok()) {
      const std::vector<Fault> faults = DetailsOf(scenario.status()).faults;
      return refuse(faults.empty()
                        ? std::string(scenario.status().message())
                        : absl::StrCat(faults.front().field, ": ", faults.front().description));
    }
    const PipelineLayout& layout = scenario->pipeline->layout;
    const PipelinePlan plan = PlanPipeline(profile_, *scenario);
    int64_t most = 0;
    int32_t at = 0;
    for (int32_t device = 0; device < layout.devices; ++device) {
      const int64_t bytes = DeviceMemory(plan, *scenario, device, PeakInFlight(layout, device));
      if (bytes <= most) continue;
      most = bytes;
      at = device;
    }
    if (query_.memory_bytes > 0 && most > query_.memory_bytes) {
      if (nearest_bytes_ == 0 || most < nearest_bytes_) nearest_bytes_ = most;
      return refuse(absl::StrCat("memory_bytes: device ", at, " needs ", most, " of ",
                                 query_.memory_bytes, " bytes"));
    }
    const double bound = MostStepsPerSecond(plan, *scenario) *
                         static_cast<double>(scenario->ExamplesPerStep(profile_));
    weighed_.candidates.push_back(
        {.scenario = *std::move(scenario), .memory_bytes = most, .bound = bound});
  }

  absl::Status NothingFits() {
    const std::string said =
        weighed_.refused.empty()
            ? std::string("no layout was tried")
            : absl::StrCat(weighed_.refused.size(),
                           " refused, the first: ", weighed_.refused.front().reason);
    if (nearest_bytes_ > 0)
      return FaultsError("REQUEST_INVALID",
                         {{"memory_bytes", absl::StrCat(query_.memory_bytes,
                                                        " fits no layout: the one that needs least "
                                                        "needs ",
                                                        nearest_bytes_, " a device")}});
    return FaultsError("REQUEST_INVALID",
                       {{"devices", absl::StrCat("no layout of them can be: ", said)}});
  }

  const Profile& profile_;
  const LayoutQuery& query_;
  WeighedLayouts weighed_;
  int64_t nearest_bytes_ = 0;  // of what memory refused; 0: nothing
};

// The chance of the simulated runs, and what it may cost to take the first.
void TellProbabilities(uint64_t seed, LayoutAnswer& answer) {
  std::vector<Alternative> alternatives;
  for (const LayoutAnswer::Layout& layout : answer.layouts)
    alternatives.push_back({.value = layout.prediction.examples_per_second,
                            .deviation = DeviationOf(layout.prediction.simulation_interval)});
  const std::vector<double> probabilities = ProbabilitiesOfBest(alternatives, seed);
  for (size_t i = 0; i < alternatives.size(); ++i)
    answer.layouts[i].probability_best = probabilities[i];
  answer.expected_loss = HowSettled(alternatives, 0).expected_loss;
}

}  // namespace

absl::StatusOr<LayoutQuery> ResolveLayouts(const Profile& profile, const LayoutDraft& draft) {
  return LayoutResolver(profile, draft).Run();
}

absl::StatusOr<WeighedLayouts> WeighLayouts(const Profile& profile, const LayoutQuery& query,
                                            StopCheck stop) {
  return LayoutScale(profile, query).Run(stop);
}

absl::StatusOr<LayoutAnswer> RecommendLayout(const Profile& profile, const LayoutQuery& query,
                                             StopCheck stop, const Executor& executor,
                                             const KnownRuns& known) {
  const PipelinePredictor predictor(profile, query.options);
  absl::StatusOr<WeighedLayouts> weighed = WeighLayouts(profile, query, stop);
  if (!weighed.ok()) return weighed.status();
  const std::vector<LayoutCandidate>& candidates = weighed->candidates;
  LayoutAnswer answer{.refused = std::move(weighed->refused)};
  const bool by_memory = query.objective == LayoutObjective::kMinMemory;
  const auto wanted = static_cast<size_t>(query.max_layouts);
  const auto rate_at = [&](size_t rank) {
    std::vector<double> rates;
    for (const LayoutAnswer::Layout& layout : answer.layouts)
      rates.push_back(layout.prediction.examples_per_second);
    std::sort(rates.begin(), rates.end(), std::greater<>());
    return rank < rates.size() ? rates[rank] : 0.0;
  };
  for (size_t next = 0; next < candidates.size();) {
    // The bound of what is next reaches none of those that the reply has.
    if (!by_memory && candidates[next].bound < rate_at(std::min<size_t>(wanted, 5) - 1)) {
      answer.pruned = static_cast<int32_t>(candidates.size() - next);
      break;
    }
    const size_t count = std::min(kAtOnce, candidates.size() - next);
    std::vector<absl::StatusOr<PipelinePredictor::Answer>> made(count,
                                                                absl::CancelledError("not begun"));
    executor.ForEach(count, [&](size_t i) {
      const Scenario& scenario = candidates[next + i].scenario;
      made[i] = predictor.Predict(scenario, PlanPipeline(profile, scenario), stop, InOrder());
      if (made[i].ok() && known.counter != nullptr) known.counter->Add(made[i]->events);
      return made[i].ok();
    });
    for (size_t i = 0; i < count; ++i) {
      if (!made[i].ok()) {
        if (IsTimeBudgetSpent(made[i].status()) && !answer.layouts.empty()) {
          answer.untried = static_cast<int32_t>(candidates.size() - next - i);
          next = candidates.size();
          break;
        }
        return made[i].status();
      }
      answer.simulation.Add(
          {.simulated_operations = made[i]->events, .engine_path = "pipeline", .runs = 1});
      answer.layouts.push_back({.prediction = std::move(made[i]->prediction),
                                .memory_bytes = candidates[next + i].memory_bytes,
                                .probability_best = 0});
    }
    next += count;
  }
  std::stable_sort(answer.layouts.begin(), answer.layouts.end(),
                   [&](const LayoutAnswer::Layout& a, const LayoutAnswer::Layout& b) {
                     if (by_memory && a.memory_bytes != b.memory_bytes)
                       return a.memory_bytes < b.memory_bytes;
                     return a.prediction.examples_per_second > b.prediction.examples_per_second;
                   });
  TellProbabilities(query.options.seed, answer);
  if (answer.layouts.size() > wanted) answer.layouts.resize(wanted);
  return answer;
}

}  // namespace stepcast
