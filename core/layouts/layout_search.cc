#include "core/layouts/layout_search.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/index.h"
#include "core/model/stage_map.h"
#include "core/pipeline/schedule.h"
#include "core/predict/certainty.h"
#include "core/predict/pipeline_job.h"
#include "core/predict/pipeline_prediction.h"
#include "core/predict/request_faults.h"

namespace stepcast {
namespace {

constexpr int64_t kMaxDevices = 1 << 20;
constexpr int32_t kMaxLayouts = 100;
constexpr size_t kMaxTried = 1000;
constexpr int32_t kReplications = 3;
constexpr size_t kAtOnce = 4;
// Layouts that are ranked at least, and the simulated events within which all that are wanted are.
constexpr size_t kRanked = 5;
constexpr int64_t kEventsOfAll = 2'000'000;

// Numbers of chunks a device that are tried of each schedule that has them.
constexpr size_t kChunkNumbers = 8;
// Chance in the mean of a few runs, by which one may exceed its bound.
constexpr double kChance = 1.01;
// The fields of a scenario that the search chooses.
constexpr std::array<std::string_view, 7> kChosen = {
    "workers",         "pipeline.stages", "pipeline.micro_batches", "pipeline.schedule",
    "pipeline.chunks", "pipeline.group",  "pipeline.cuts"};

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
    if (is_too_much_)
      return FaultsError("REQUEST_INVALID",
                         {{"devices", absl::StrCat(draft_.devices, " have more than ", kMaxTried,
                                                   " layouts: name fewer schedules, or ask about "
                                                   "another number")}});
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
    reduces_ = std::ranges::any_of(profile_.operations(), IsAcrossWorkers);
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
    constexpr PipelineSchedule kPlain = PipelineSchedule::kOneForwardOneBackward;
    std::vector<PipelineSchedule> schedules;
    for (const PipelineSchedule schedule : draft_.schedules)
      if (std::find(schedules.begin(), schedules.end(), schedule) == schedules.end())
        schedules.push_back(schedule);
    if (schedules.empty()) {
      schedules = {kPlain, PipelineSchedule::kInterleaved};
      if (splits_) schedules.push_back(PipelineSchedule::kZeroBubble1);
    }
    // One device has no bubble that another order could fill.
    if (stages == 1 && std::find(schedules.begin(), schedules.end(), kPlain) != schedules.end())
      return {kPlain};
    return schedules;
  }

  // Numbers of chunks that the layers allow, first those that divide them, the fewest first.
  std::vector<int32_t> ChunkNumbers(PipelineSchedule schedule, int32_t stages) const {
    if (schedule == PipelineSchedule::kZeroBubbleV) return {2};
    if (!HasChunks(schedule) || stages == 1) return {1};
    std::vector<int32_t> numbers;
    for (int32_t chunks = 2; chunks <= std::min(kMaxChunks, links_ / stages); ++chunks)
      numbers.push_back(chunks);
    std::stable_partition(numbers.begin(), numbers.end(),
                          [&](int32_t chunks) { return links_ % (stages * chunks) == 0; });
    numbers.resize(std::min(numbers.size(), kChunkNumbers));
    return numbers;
  }

  // Shardings, tried until one fits.
  std::vector<Sharding> Shardings(int64_t workers) const {
    const auto* asked = draft_.scenario.has_value()
                            ? std::get_if<AllReduceDraft>(&draft_.scenario->communication)
                            : nullptr;
    if (asked != nullptr && asked->sharding.has_value()) return {*asked->sharding};
    if (workers > 1 && query_.by_memory()) return {Sharding::kOptimizer, Sharding::kNone};
    if (workers > 1 && draft_.memory_bytes > 0) return {Sharding::kNone, Sharding::kOptimizer};
    return {Sharding::kNone};
  }

  // When gradients are reduced: what frameworks do by default, of which either may be faster,
  // where the scenario does not say it and there is something to reduce.
  std::vector<std::optional<PipelineReduction>> Reductions(const ScenarioDraft& asked) const {
    const auto* all_reduce = std::get_if<AllReduceDraft>(&asked.communication);
    const bool is_chosen =
        asked.pipeline->reduction.has_value() ||
        (all_reduce != nullptr && !std::holds_alternative<std::monostate>(all_reduce->fusion));
    if (is_chosen || *asked.workers == 1 || !reduces_) return {std::nullopt};
    return {PipelineReduction::kAtEnd, PipelineReduction::kBuckets};
  }

  void TryStages(int32_t stages) {
    for (const PipelineSchedule schedule : Schedules(stages)) {
      const std::vector<int32_t> numbers = ChunkNumbers(schedule, stages);
      for (const int32_t chunks : numbers)
        // A fault of the fewest is one of all.
        if (!Try(stages, schedule, chunks) && chunks == numbers.front()) break;
    }
  }

  // False: it cannot be.
  bool Try(int32_t stages, PipelineSchedule schedule, int32_t chunks) {
    if (query_.tried.size() + query_.refused.size() >= kMaxTried) {
      is_too_much_ = true;
      return false;
    }
    const int64_t workers = replicas_ / stages;
    TriedLayout tried{.scenario = draft_.scenario.value_or(ScenarioDraft{}),
                      .shardings = Shardings(workers)};
    ScenarioDraft& asked = tried.scenario;
    asked.workers = static_cast<int32_t>(workers);
    if (!asked.pipeline.has_value()) asked.pipeline.emplace();
    asked.pipeline->stages = stages;
    asked.pipeline->schedule = schedule;
    asked.pipeline->chunks = chunks;
    if (std::holds_alternative<std::monostate>(asked.communication))
      asked.communication = AllReduceDraft{};
    tried.reductions = Reductions(asked);
    const int64_t all = draft_.examples_per_step.value_or(0) / profile_.batch_size();
    asked.pipeline->micro_batches = draft_.micro_batches.value_or(
        static_cast<int32_t>(std::min<int64_t>(all / workers, INT32_MAX)));
    if (draft_.examples_per_step.has_value() && (all % workers != 0 || all < workers)) {
      query_.refused.push_back(tried.Refused(
          Sharding::kNone,
          {"workers", absl::StrCat(workers, " cannot share ", all, " micro-batches of ",
                                   profile_.batch_size(), " examples")}));
      return false;
    }
    query_.tried.push_back(std::move(tried));
    return LayoutFaults(query_.tried.back().layout()).empty();
  }

  const Profile& profile_;
  const LayoutDraft& draft_;
  RequestFaults faults_;
  LayoutQuery query_;
  int64_t replicas_ = 0;  // of one stage
  int32_t links_ = 0;
  bool splits_ = false;
  bool reduces_ = false;
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
      WeighShardings(tried);
    }
    if (weighed_.candidates.empty()) return NothingFits();
    const auto key = [&](const LayoutCandidate& one) {
      return std::pair(query_.by_memory() ? one.memory_bytes : 0, -one.bound);
    };
    std::stable_sort(weighed_.candidates.begin(), weighed_.candidates.end(),
                     [&](const auto& a, const auto& b) { return key(a) < key(b); });
    return std::move(weighed_);
  }

 private:
  // Keeps the first that fits.
  void WeighShardings(const TriedLayout& tried) {
    std::optional<Fault> before;
    for (const Sharding sharding : tried.shardings) {
      LayoutCandidate candidate{.refused = tried.Refused(sharding, {})};
      std::optional<Fault> fault;
      for (const std::optional<PipelineReduction> reduction : tried.reductions) {
        std::optional<Fault> of_this = Weigh(tried, sharding, reduction, candidate);
        if (!fault.has_value()) fault = std::move(of_this);
      }
      if (!candidate.scenarios.empty()) {
        weighed_.candidates.push_back(std::move(candidate));
        return;
      }
      if (fault != before) weighed_.refused.push_back(tried.Refused(sharding, *fault));
      before = std::move(fault);
    }
    if (!given_.has_value() && before->field != "memory_bytes" &&
        std::find(kChosen.begin(), kChosen.end(), before->field) == kChosen.end())
      given_ = before;
  }

  // Adds it to the candidate where it fits, else says why not.
  std::optional<Fault> Weigh(const TriedLayout& tried, Sharding sharding,
                             std::optional<PipelineReduction> reduction,
                             LayoutCandidate& candidate) {
    ScenarioDraft asked = tried.scenario;
    if (reduction.has_value()) asked.pipeline->reduction = reduction;
    if (auto* all_reduce = std::get_if<AllReduceDraft>(&asked.communication);
        all_reduce != nullptr && sharding != Sharding::kNone)
      all_reduce->sharding = sharding;
    absl::StatusOr<Scenario> scenario =
        ResolveRunnable(profile_, asked, nullptr, {.pipelines = true});
    if (!scenario.ok()) {
      std::vector<Fault> faults = DetailsOf(scenario.status()).faults;
      if (faults.empty()) return Fault{"", std::string(scenario.status().message())};
      return std::move(faults.front());
    }
    if (std::optional<Fault> fault = FaultOfNodes(asked, *scenario); fault.has_value())
      return fault;
    const PipelinePlan plan = PlanPipeline(profile_, *scenario);
    weighed_.knows_memory = plan.knows_memory;
    int64_t most = 0;
    int32_t at = 0;
    for (int32_t device = 0; device < scenario->pipeline->layout.devices; ++device) {
      const auto bytes = static_cast<int64_t>(MemoryOfDevice(plan, *scenario, device).bytes());
      if (bytes <= most) continue;
      most = bytes;
      at = device;
    }
    if (query_.memory_bytes > 0 && most > query_.memory_bytes) {
      if (nearest_bytes_ == 0 || most < nearest_bytes_) nearest_bytes_ = most;
      return Fault{"memory_bytes", absl::StrCat("device ", at, " needs ", AtLeast(), most, " of ",
                                                query_.memory_bytes, " bytes")};
    }
    const double bound = MostStepsPerSecond(plan, *scenario) *
                         static_cast<double>(scenario->ExamplesPerStep(profile_));
    candidate.scenarios.push_back(*std::move(scenario));
    candidate.memory_bytes = most;
    candidate.bound = std::max(candidate.bound, bound);
    return std::nullopt;
  }

  // Nodes hold whole replicas, so that a layout may need more of them than its devices fill.
  std::optional<Fault> FaultOfNodes(const ScenarioDraft& asked, const Scenario& scenario) const {
    if (!asked.cluster.has_value() || asked.pipeline->nodes_per_replica.has_value())
      return std::nullopt;
    const int64_t of_node = asked.cluster->workers_per_node.value_or(1);
    const int64_t of_replica = scenario.DevicesPerWorker(profile_);
    const int64_t devices = scenario.workers * of_replica;
    const int64_t nodes = (devices - 1) / of_node + 1;
    const int64_t needed = scenario.NodesOf(scenario.workers);
    if (needed <= nodes) return std::nullopt;
    return Fault{"workers",
                 absl::StrCat(scenario.workers, " replicas of ", of_replica,
                              " devices, of which nodes of ", of_node, " hold whole ones, need ",
                              needed, " nodes, and ", devices, " devices are ", nodes)};
  }

  const char* AtLeast() const { return weighed_.knows_memory ? "" : "at least "; }

  absl::Status NothingFits() {
    const std::string said =
        weighed_.refused.empty()
            ? std::string("no layout was tried")
            : absl::StrCat(weighed_.refused.size(),
                           " refused, the first: ", weighed_.refused.front().reason);
    Fault fault{"devices", absl::StrCat("no layout of them can be: ", said)};
    if (given_.has_value()) fault = {absl::StrCat("scenario.", given_->field), given_->description};
    if (nearest_bytes_ > 0)
      fault = {"memory_bytes",
               absl::StrCat(query_.memory_bytes, " fits no layout: the one that needs least needs ",
                            AtLeast(), nearest_bytes_, " a device")};
    return FaultsError("REQUEST_INVALID", {std::move(fault)});
  }

  const Profile& profile_;
  const LayoutQuery& query_;
  WeighedLayouts weighed_;
  int64_t nearest_bytes_ = 0;   // of what memory refused; 0: nothing
  std::optional<Fault> given_;  // the first of what the search does not choose
};

// Simulates candidates until no one that is left can be among the best.
class LayoutRanking {
 public:
  LayoutRanking(const Profile& profile, const LayoutQuery& query, WeighedLayouts weighed)
      : profile_(profile),
        query_(query),
        predictor_(profile, query.options),
        candidates_(std::move(weighed.candidates)),
        answer_{.refused = std::move(weighed.refused)} {
    if (weighed.knows_memory) return;
    answer_.warnings.push_back(
        {.reason = Warning::Reason::kKeptBytesNotKnown,
         .message = "no operation of the profile says what it keeps until its backward pass "
                    "(kept_bytes): memory is that of parameters, gradients and optimizer alone, a "
                    "lower bound, and a layout within it may not fit"});
  }

  absl::StatusOr<LayoutAnswer> Run(StopCheck stop, const Executor& executor,
                                   const KnownRuns& known) && {
    while (next_ < candidates_.size() && !IsRanked())
      if (absl::Status status = SimulateNext(stop, executor, known); !status.ok()) return status;
    if (answer_.layouts.empty()) return failure_;
    const auto key = [&](const LayoutAnswer::Layout& layout) {
      return std::pair(query_.by_memory() ? layout.memory_bytes : 0, -layout.rate());
    };
    std::stable_sort(answer_.layouts.begin(), answer_.layouts.end(),
                     [&](const auto& a, const auto& b) { return key(a) < key(b); });
    TellProbabilities();
    ListRanked();
    return std::move(answer_);
  }

 private:
  size_t wanted() const { return static_cast<size_t>(query_.max_layouts); }

  // True if none that is left, which come by memory or bound, could stand before the layout.
  bool IsBeforeOthers(const LayoutAnswer::Layout& layout) const {
    if (next_ == candidates_.size()) return true;
    const LayoutCandidate& next = candidates_[next_];
    return query_.by_memory() ? next.memory_bytes > layout.memory_bytes
                              : next.bound * kChance < layout.rate();
  }

  // True if as many as are wanted are ranked, or the best few, where more would take long.
  bool IsRanked() const {
    const bool is_long = answer_.simulation.simulated_operations > kEventsOfAll;
    const size_t count = is_long && !query_.by_memory() ? std::min(wanted(), kRanked) : wanted();
    return std::count_if(answer_.layouts.begin(), answer_.layouts.end(), [&](const auto& layout) {
             return IsBeforeOthers(layout);
           }) >= static_cast<ptrdiff_t>(count);
  }

  // Leaves out those that one which was not simulated could stand before, and more than are wanted.
  void ListRanked() {
    size_t count = std::min(wanted(), answer_.layouts.size());
    while (count > 0 && !IsBeforeOthers(answer_.layouts[count - 1])) --count;
    const size_t left = candidates_.size() - next_;
    answer_.pruned = static_cast<int32_t>(left + answer_.layouts.size() - count);
    answer_.layouts.resize(count);
  }

  // The prediction of the fastest scenario, with the events of all.
  absl::StatusOr<PipelinePredictor::Answer> Fastest(const std::vector<Scenario>& scenarios,
                                                    StopCheck stop, const KnownRuns& known) const {
    const auto rate = [](const auto& answer) { return answer->prediction.examples_per_second; };
    absl::StatusOr<PipelinePredictor::Answer> fastest;
    int64_t events = 0;
    for (const Scenario& scenario : scenarios) {
      absl::StatusOr<PipelinePredictor::Answer> made =
          predictor_.Predict(scenario, PlanPipeline(profile_, scenario), stop, InOrder(), known);
      if (!made.ok()) return made;
      events += made->events;
      if (!fastest.ok() || rate(made) > rate(fastest)) fastest = std::move(made);
    }
    fastest->events = events;
    return fastest;
  }

  // Fails as `stop`, but for a spent time budget once there is a layout.
  absl::Status SimulateNext(StopCheck stop, const Executor& executor, const KnownRuns& known) {
    const size_t count = std::min(kAtOnce, candidates_.size() - next_);
    std::vector<absl::StatusOr<PipelinePredictor::Answer>> made(count,
                                                                absl::CancelledError("not begun"));
    known.ForEach(executor, count, [&](size_t i) {
      made[i] = Fastest(candidates_[next_ + i].scenarios, stop, known);
      return made[i].ok() || IsOfPipeline(made[i].status());
    });
    for (size_t i = 0; i < count; ++i, ++next_) {
      LayoutCandidate& candidate = candidates_[next_];
      if (IsOfPipeline(made[i].status())) {
        failure_ = made[i].status();
        candidate.refused.reason =
            absl::StrCat(DetailsOf(failure_).reason, ": ", std::string(failure_.message()));
        answer_.refused.push_back(std::move(candidate.refused));
        continue;
      }
      if (IsTimeBudgetSpent(made[i].status()) && !answer_.layouts.empty()) {
        answer_.untried = static_cast<int32_t>(candidates_.size() - next_);
        next_ = candidates_.size();
        break;
      }
      if (!made[i].ok()) return made[i].status();
      answer_.simulation.Add(
          {.simulated_operations = made[i]->events, .engine_path = "pipeline", .runs = 1});
      answer_.layouts.push_back({.prediction = std::move(made[i]->prediction),
                                 .memory_bytes = candidate.memory_bytes,
                                 .probability_best = 0});
    }
    return absl::OkStatus();
  }

  // The chance of the simulated runs, and what it may cost to take the first. Layouts that need
  // more memory than the least are none of the best by memory.
  void TellProbabilities() {
    std::vector<Alternative> alternatives;
    for (const LayoutAnswer::Layout& layout : answer_.layouts) {
      if (query_.by_memory() && layout.memory_bytes > answer_.layouts.front().memory_bytes) break;
      alternatives.push_back({.value = layout.rate(),
                              .deviation = DeviationOf(layout.prediction.simulation_interval)});
    }
    const std::vector<double> probabilities =
        ProbabilitiesOfBest(alternatives, query_.options.seed);
    for (size_t i = 0; i < alternatives.size(); ++i)
      answer_.layouts[i].probability_best = probabilities[i];
    answer_.expected_loss = HowSettled(alternatives, 0).expected_loss;
  }

  const Profile& profile_;
  const LayoutQuery& query_;
  const PipelinePredictor predictor_;
  std::vector<LayoutCandidate> candidates_;
  size_t next_ = 0;       // to be simulated
  absl::Status failure_;  // of the last that could not be
  LayoutAnswer answer_;
};

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
  absl::StatusOr<WeighedLayouts> weighed = WeighLayouts(profile, query, stop);
  if (!weighed.ok()) return weighed.status();
  return LayoutRanking(profile, query, *std::move(weighed)).Run(stop, executor, known);
}

}  // namespace stepcast
