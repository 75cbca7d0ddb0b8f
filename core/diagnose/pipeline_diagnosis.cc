#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/diagnose/diagnosis.h"
#include "core/predict/pipeline_prediction.h"
#include "core/predict/point_set.h"

namespace stepcast {

namespace {

// The job with a change, or the reason why there is none.
struct ChangedPipeline {
  Scenario scenario;
  PipelinePlan plan;
  std::string why_not;
};

std::string SecondsText(double seconds) { return DurationText(std::llround(seconds * 1e9)); }

// Gives every stage of a recorded step the mean times of all.
void MakeStagesEqual(PipelinePlan& plan) {
  for (std::vector<StageTimes>& of_step : plan.times) {
    StageTimes sum;
    for (const StageTimes& times : of_step) {
      sum.forward += times.forward;
      sum.backward += times.backward;
      sum.backward_weight += times.backward_weight;
      sum.last_backward_extra += times.last_backward_extra;
    }
    const auto stages = static_cast<int64_t>(of_step.size());
    for (StageTimes& times : of_step)
      times = {.forward = {sum.forward.ticks / stages},
               .backward = {sum.backward.ticks / stages},
               .backward_weight = {sum.backward_weight.ticks / stages},
               .last_backward_extra = {sum.last_backward_extra.ticks / stages}};
  }
}

class PipelineDiagnostician {
 public:
  PipelineDiagnostician(const Profile& profile, const DiagnosisQuery& query, StopCheck stop,
                        const KnownRuns& known)
      : profile_(profile),
        query_(query),
        stop_(stop),
        known_(known),
        predictor_(profile, query.options),
        plan_(PlanPipeline(profile, query.scenario)) {}

  absl::StatusOr<Diagnosis> Diagnose(const Executor& executor) {
    absl::StatusOr<PipelinePredictor::Answer> base = Run(query_.scenario, plan_, executor, "");
    if (!base.ok()) return base.status();
    diagnosis_.prediction = std::move(base->prediction);
    const absl::StatusOr<JobChanges> changes = JobChanges::Of(profile_, stop_);
    if (!changes.ok()) return changes.status();
    for (const WhatIf change :
         {WhatIf::kNoStragglers, WhatIf::kEqualStages, WhatIf::kTwiceTheMicroBatches,
          WhatIf::kTwiceTheChunks, WhatIf::kEagerReceives, WhatIf::kFreeTransfers,
          WhatIf::kFreeReductions, WhatIf::kNoStepEnd, WhatIf::kLinksTwiceAsFast,
          WhatIf::kNoLatency, WhatIf::kComputationTwiceAsFast, WhatIf::kNoHostWait}) {
      ChangedPipeline changed = ChangeBy(change, *changes);
      if (!changed.why_not.empty()) {
        diagnosis_.left_out.push_back({.change = change, .reason = std::move(changed.why_not)});
        continue;
      }
      absl::StatusOr<PipelinePredictor::Answer> made =
          Run(changed.scenario, changed.plan, executor, NameOf(change));
      const bool is_spent = IsTimeBudgetSpent(made.status());
      if (is_spent || IsOfPipeline(made.status())) {
        diagnosis_.left_out.push_back({.change = change,
                                       .reason = is_spent ? "the time budget was spent"
                                                          : std::string(made.status().message())});
        continue;
      }
      if (!made.ok()) return made.status();
      Add(change, base->runs, *std::move(made));
    }
    std::stable_sort(
        diagnosis_.what_ifs.begin(), diagnosis_.what_ifs.end(),
        [](const WhatIfAnswer& a, const WhatIfAnswer& b) { return a.ratio > b.ratio; });
    if (diagnosis_.prediction.pipeline.has_value()) FindParts(*diagnosis_.prediction.pipeline);
    return std::move(diagnosis_);
  }

 private:
  const Pipeline& pipeline() const { return *query_.scenario.pipeline; }

  // `changed`: what makes the plan another than that of the profile and the scenario.
  absl::StatusOr<PipelinePredictor::Answer> Run(const Scenario& scenario, const PipelinePlan& plan,
                                                const Executor& executor, const char* changed) {
    KnownRuns known = known_;
    known.profile_digest += changed;
    absl::StatusOr<PipelinePredictor::Answer> made =
        predictor_.Predict(scenario, plan, stop_, executor, known);
    if (!made.ok()) return made;
    diagnosis_.simulation.Add(
        {.simulated_operations = made->events, .engine_path = "pipeline", .runs = 1});
    return made;
  }

  void Add(WhatIf change, const std::vector<double>& before, PipelinePredictor::Answer made) {
    // Examples of a step, as a share of those without the change.
    const double step = static_cast<double>(made.prediction.scenario.ExamplesPerStep(profile_)) /
                        static_cast<double>(query_.scenario.ExamplesPerStep(profile_));
    const double level = query_.options.confidence_level;
    const PairedRatio paired = RatioOfMeans(made.runs, before, level);
    diagnosis_.what_ifs.push_back(
        {.change = change,
         .prediction = std::move(made.prediction),
         .ratio = step * paired.ratio,
         .ratio_interval = {
             .lower = step * paired.lower(), .upper = step * paired.upper(), .level = level}});
  }

  ChangedPipeline ChangeBy(WhatIf change, const JobChanges& changes) const {
    ChangedPipeline changed{.scenario = query_.scenario, .plan = plan_, .why_not = {}};
    Pipeline& pipeline = *changed.scenario.pipeline;
    const bool has_links = pipeline.layout.devices > 1;
    switch (change) {
      case WhatIf::kEqualStages:
        if (pipeline.layout.stages() == 1) changed.why_not = "there is one stage";
        MakeStagesEqual(changed.plan);
        break;
      case WhatIf::kTwiceTheMicroBatches:
        pipeline.layout.micro_batches *= 2;
        if (const std::vector<Fault> faults = LayoutFaults(pipeline.layout); !faults.empty())
          changed.why_not = faults.front().description;
        if (!has_links) changed.why_not = "one device has no bubble";
        break;
      case WhatIf::kTwiceTheChunks:
        DoubleChunks(changed);
        break;
      case WhatIf::kEagerReceives:
        if (!has_links || pipeline.receives == PipelineReceives::kEager)
          changed.why_not = has_links ? "receives are EAGER" : "one device receives nothing";
        pipeline.receives = PipelineReceives::kEager;
        break;
      case WhatIf::kFreeTransfers:
        if (!has_links) changed.why_not = "one device sends nothing";
        std::fill(changed.plan.output_bytes.begin(), changed.plan.output_bytes.end(), 0);
        pipeline.latency_seconds = 0;
        pipeline.receives = PipelineReceives::kEager;
        pipeline.transport = PipelineTransport::kIdeal;
        break;
      case WhatIf::kFreeReductions:
        if (query_.scenario.workers == 1) changed.why_not = "one replica reduces nothing";
        changed.plan.reduces = false;
        break;
      case WhatIf::kNoStepEnd:
        for (std::vector<Span>* const part : {&changed.plan.tails, &changed.plan.updates})
          std::fill(part->begin(), part->end(), Span{});
        if (plan_.TailsOf(query_.scenario) == changed.plan.TailsOf(query_.scenario))
          changed.why_not = "nothing was recorded there";
        break;
      default:
        ChangeLikeOthers(change, changes, changed);
        break;
    }
    return changed;
  }

  // Changes as those of any job, and the links between stages with the others.
  void ChangeLikeOthers(WhatIf change, const JobChanges& changes, ChangedPipeline& changed) const {
    Changed of_replicas = changes.By(change, query_.scenario);
    const bool of_stages = pipeline().layout.devices > 1 &&
                           (change == WhatIf::kLinksTwiceAsFast ||
                            (change == WhatIf::kNoLatency && pipeline().latency_seconds > 0));
    if (!of_replicas.scenario.has_value() && !of_stages) {
      changed.why_not = std::move(of_replicas.why_not);
      return;
    }
    if (of_replicas.profile != nullptr)
      changed.plan = PlanPipeline(*of_replicas.profile, query_.scenario);
    if (of_replicas.scenario.has_value()) changed.scenario = *std::move(of_replicas.scenario);
    if (!of_stages) return;
    if (change == WhatIf::kNoLatency) changed.scenario.pipeline->latency_seconds = 0;
    if (change == WhatIf::kLinksTwiceAsFast)
      changed.scenario.pipeline->bandwidth_bytes_per_second *= 2;
  }

  // The schedule with chunks that comes nearest, cut anew.
  void DoubleChunks(ChangedPipeline& changed) const {
    Pipeline& pipeline = *changed.scenario.pipeline;
    PipelineLayout& layout = pipeline.layout;
    layout.chunks *= 2;
    if (layout.schedule == PipelineSchedule::kOneForwardOneBackward)
      layout.schedule = PipelineSchedule::kInterleaved;
    if (layout.schedule == PipelineSchedule::kGpipe)
      layout.schedule = PipelineSchedule::kLoopedBreadthFirst;
    if (layout.devices == 1) {
      changed.why_not = "one device has no bubble";
      return;
    }
    const PipelineDraft draft{
        .stages = layout.devices,
        .micro_batches = layout.micro_batches,
        .schedule = layout.schedule,
        .chunks = layout.chunks,
        .group = layout.group > 0 ? std::optional(layout.group) : std::nullopt,
        .variant = layout.variant,
        .cuts = {}};
    FaultList faults;
    const Pipeline resolved =
        ResolvePipeline(profile_, draft,
                        {.bandwidth_bytes_per_second = pipeline.bandwidth_bytes_per_second,
                         .latency_seconds = pipeline.latency_seconds},
                        faults);
    if (!faults.empty()) {
      const Fault fault = std::move(faults).Take().front();
      changed.why_not = absl::StrCat(fault.field, ": ", fault.description);
      return;
    }
    pipeline.cuts = resolved.cuts;
    changed.plan = PlanPipeline(profile_, changed.scenario);
  }

  void FindParts(const PipelineReport& report) {
    const double step =
        diagnosis_.prediction.scenario.workers / diagnosis_.prediction.steps_per_second;
    using Part = PipelineBottleneck;
    using Changes = std::vector<WhatIf>;
    AddPart(Part::kComputation, step * (1 - report.idle_fraction),
            Changes{WhatIf::kComputationTwiceAsFast, WhatIf::kNoHostWait},
            absl::StrCat("a micro-batch takes a device ", SecondsText(MeanLoad(report)),
                         " on average, and there are ", pipeline().layout.micro_batches));
    AddPart(Part::kBubble, step * report.bubble_fraction,
            Changes{WhatIf::kTwiceTheMicroBatches, WhatIf::kTwiceTheChunks},
            absl::StrCat("devices wait for the first of ", pipeline().layout.micro_batches,
                         " micro-batches to reach them, and for the last"));
    AddPart(Part::kImbalance, step * report.imbalance_fraction,
            Changes{WhatIf::kEqualStages, WhatIf::kNoStragglers}, ImbalanceText(report));
    AddPart(Part::kTransfers, step * report.transfer_fraction,
            Changes{WhatIf::kFreeTransfers, WhatIf::kNoLatency, WhatIf::kEagerReceives},
            absl::StrCat("up to ",
                         *std::max_element(plan_.output_bytes.begin(), plan_.output_bytes.end()),
                         " bytes each way and micro-batch are waited for"));
    AddPart(
        Part::kReductions, step * report.reduction_fraction, Changes{WhatIf::kFreeReductions},
        absl::StrCat("up to ",
                     *std::max_element(plan_.gradient_bytes.begin(), plan_.gradient_bytes.end()),
                     " bytes of a device are waited for, which ", query_.scenario.workers,
                     " replicas reduce"));
    AddPart(Part::kRest, step * report.rest_fraction, Changes{WhatIf::kNoStepEnd},
            "the optimizer, and what else follows the last reduction");
    std::stable_sort(diagnosis_.findings.begin(), diagnosis_.findings.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    for (PipelineFinding& finding : diagnosis_.findings)
      if (finding.part == Part::kImbalance) finding.device = report.slowest_device;
  }

  void AddPart(PipelineBottleneck part, double seconds, std::span<const WhatIf> changes,
               std::string text) {
    if (!(seconds > 0)) return;
    PipelineFinding finding{.part = part, .seconds = seconds, .text = std::move(text)};
    // They are sorted; the first of equal ones asks for most, as free asks for more than faster.
    for (const WhatIfAnswer& answer : diagnosis_.what_ifs) {
      if (std::find(changes.begin(), changes.end(), answer.change) == changes.end()) continue;
      finding.change = answer.change;
      finding.ratio = answer.ratio;
      break;
    }
    diagnosis_.findings.push_back(std::move(finding));
  }

  static double MeanLoad(const PipelineReport& report) {
    double mean = 0;
    for (const PipelineReport::Device& device : report.devices)
      mean += device.micro_batch_seconds / static_cast<double>(report.devices.size());
    return mean;
  }

  std::string ImbalanceText(const PipelineReport& report) const {
    const double mean = MeanLoad(report);
    const PipelineReport::Device& slowest = report.devices[Index(report.slowest_device)];
    const double over = slowest.micro_batch_seconds / mean - 1;
    const bool is_last = report.slowest_device + 1 == pipeline().layout.devices;
    if (report.devices.size() == 1 || over < 0.001)
      return "steps of replicas and devices vary, and all wait for the slowest";
    return absl::StrFormat(
        "device %d, %scomputes %s of a micro-batch, %.1f %% more than the mean of %s; it begins "
        "with %s",
        report.slowest_device, is_last ? "the last, " : "",
        SecondsText(slowest.micro_batch_seconds), 100 * over, SecondsText(mean),
        absl::StrJoin(slowest.first_operations, " and "));
  }

  const Profile& profile_;
  const DiagnosisQuery& query_;
  const StopCheck stop_;
  const KnownRuns& known_;
  const PipelinePredictor predictor_;
  const PipelinePlan plan_;
  Diagnosis diagnosis_;
};

}  // namespace

absl::StatusOr<Diagnosis> DiagnosePipeline(const Profile& profile, const DiagnosisQuery& query,
                                           StopCheck stop, const Executor& executor,
                                           const KnownRuns& known) {
  return PipelineDiagnostician(profile, query, stop, known).Diagnose(executor);
}

}  // namespace stepcast
