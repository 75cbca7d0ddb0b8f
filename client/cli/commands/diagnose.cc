// `diagnose`: why a job is as slow as it is, and what would help.
#include <CLI/App.hpp>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/flags/simulation_flags.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/prediction_table.h"
#include "client/cli/texts/table.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

class DiagnoseQuestion : public Question {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "diagnose", "Why a job is as slow as it is, who is waited for, and what would help");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->required()->type_name("");
    RefuseZero(
        *app->add_option("--workers", workers_,
                         "Number of workers (default 1, or as many as were recorded, or what "
                         "--worker-group counts)")
             ->type_name("N"));
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kAllowed);
    simulation_.Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return IsFile(profile_); }

  std::string Activity() const override { return "diagnosing"; }

  absl::StatusOr<v1::StartJobRequest> Ask(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return source.status();
    scenario_.Explain(session);
    v1::StartJobRequest asked;
    v1::DiagnoseJobRequest& request = *asked.mutable_diagnose_job();
    SetSource(*std::move(source), request);
    *request.mutable_scenario() = scenario_.With(Workers());
    *request.mutable_options() = simulation_.options();
    return asked;
  }

  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, profile_, status);
  }

  ExitCode Answer(const Session& session, const v1::StartJobRequest&,
                  const google::protobuf::Message& reply) const override {
    const auto& response = static_cast<const v1::DiagnoseJobResponse&>(reply);
    return session.Answer(ToJson(response), [&] { return DiagnosisText(response); });
  }

 private:
  int32_t Workers() const {
    if (workers_.has_value()) return *workers_;
    // A sum out of bounds, the service refuses.
    // 0: as many as the service takes for it.
    const int64_t grouped = scenario_.GroupedWorkers().value_or(0);
    return static_cast<int32_t>(std::clamp<int64_t>(grouped, INT32_MIN, INT32_MAX));
  }

  std::string profile_;
  std::optional<int32_t> workers_;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

std::string PathKindText(v1::PathTime::Kind kind) {
  switch (kind) {
    case v1::PathTime::COMPUTATION:
      return "computation";
    case v1::PathTime::SERVER:
      return "parameter servers";
    case v1::PathTime::COMMUNICATION:
      return "communication";
    case v1::PathTime::WAITING:
      return "waiting for the slowest";
    case v1::PathTime::GAP:
      return "gaps";
    default:
      return v1::PathTime::Kind_Name(v1::PathTime::KIND_UNSPECIFIED);
  }
}

std::string ChangeText(v1::WhatIf::Change change) {
  switch (change) {
    case v1::WhatIf::NO_STRAGGLERS:
      return "no stragglers";
    case v1::WhatIf::LINKS_TWICE_AS_FAST:
      return "links twice as fast";
    case v1::WhatIf::NO_LATENCY:
      return "no latency";
    case v1::WhatIf::COMPUTATION_TWICE_AS_FAST:
      return "computation twice as fast";
    case v1::WhatIf::ONE_WORKER_FEWER:
      return "one worker fewer";
    case v1::WhatIf::BEST_BUCKETS:
      return "best buckets";
    case v1::WhatIf::BEST_TRANSFER_ORDER:
      return "best transfer order";
    case v1::WhatIf::SERVERS_TWICE_AS_FAST:
      return "servers twice as fast";
    case v1::WhatIf::NO_HOST_WAIT:
      return "no waiting for hosts";
    case v1::WhatIf::EQUAL_STAGES:
      return "equal stages";
    case v1::WhatIf::FREE_TRANSFERS:
      return "free transfers";
    case v1::WhatIf::FREE_REDUCTIONS:
      return "free reductions";
    case v1::WhatIf::NO_STEP_END:
      return "no end of the step";
    case v1::WhatIf::TWICE_THE_MICRO_BATCHES:
      return "twice the micro-batches";
    case v1::WhatIf::TWICE_THE_CHUNKS:
      return "twice the chunks";
    case v1::WhatIf::EAGER_RECEIVES:
      return "eager receives";
    case v1::WhatIf::DATA_LOADING_TWICE_AS_FAST:
      return "data loading twice as fast";
    case v1::WhatIf::NO_DATA_WAIT:
      return "no waiting for data";
    default:
      return v1::WhatIf::Change_Name(v1::WhatIf::CHANGE_UNSPECIFIED);
  }
}

std::string GainText(double ratio) {
  const std::string percent = PercentText(ratio - 1);
  if (percent == "-0.0%") return "+0.0%";
  return absl::StrCat(percent.front() == '-' ? "" : "+", percent);
}

// Empty where it has no width.
std::string GainIntervalText(const v1::ConfidenceInterval& interval) {
  if (interval.upper() <= interval.lower()) return "";
  return absl::StrCat(GainText(interval.lower()), " .. ", GainText(interval.upper()));
}

std::string PartText(v1::PipelineReport::Bottleneck part) {
  switch (part) {
    case v1::PipelineReport::COMPUTATION:
      return "computation";
    case v1::PipelineReport::BUBBLE:
      return "bubble";
    case v1::PipelineReport::IMBALANCE:
      return "imbalance";
    case v1::PipelineReport::TRANSFERS:
      return "transfers";
    case v1::PipelineReport::REDUCTIONS:
      return "reductions";
    case v1::PipelineReport::REST:
      return "end of the step";
    default:
      return v1::PipelineReport::Bottleneck_Name(v1::PipelineReport::BOTTLENECK_UNSPECIFIED);
  }
}

double ShareOfPath(const v1::DiagnoseJobResponse& response, double seconds) {
  return response.path_seconds() > 0 ? seconds / response.path_seconds() : 0;
}

// The best change and its gain, or that there is none that is told from nothing.
std::string BestChangeText(const v1::DiagnoseJobResponse& response) {
  constexpr double kLeastGain = 0.005;
  if (response.what_ifs().empty()) return "no change was tried";
  const v1::WhatIf& best = response.what_ifs(0);
  if (best.ratio() < 1 + kLeastGain || best.ratio_interval().lower() <= 1)
    return "none of the changes tried is told to gain anything";
  const std::string interval = GainIntervalText(best.ratio_interval());
  return absl::StrCat(ChangeText(best.change()), " would gain most, ", GainText(best.ratio()),
                      interval.empty() ? "" : absl::StrCat(" (", interval, ")"));
}

// ", 40 % of it computation; the others wait for rank 3 for 12 % of it" of a path's fields, which
// both of its messages have.
template <typename Path>
std::string PathSentence(const Path& path, const std::string& straggler) {
  const auto longest = std::max_element(
      path.path().begin(), path.path().end(),
      [](const v1::PathTime& a, const v1::PathTime& b) { return a.seconds() < b.seconds(); });
  const auto share = [&](double seconds) {
    return PercentText(path.path_seconds() > 0 ? seconds / path.path_seconds() : 0);
  };
  std::string text;
  if (longest != path.path().end()) {
    absl::StrAppend(&text, ", ", share(longest->seconds()), " of it ",
                    PathKindText(longest->kind()));
  }
  if (path.has_straggler() && path.straggler() >= 0 && path.straggler() < path.workers_size()) {
    absl::StrAppend(&text, "; the others wait for ", straggler, " for ",
                    share(path.workers(path.straggler()).waited_for_seconds()), " of it");
  }
  return text;
}

std::string VerdictText(const v1::DiagnoseJobResponse& response) {
  const auto& recorded = response.recording().report().workers();
  const int32_t straggler = response.straggler();
  const bool has_name =
      response.workers_size() == recorded.size() && straggler >= 0 && straggler < recorded.size();
  const std::string name =
      has_name ? recorded.Get(straggler).name()
               : absl::StrCat("worker ", straggler, " (of 0 to ", response.workers_size() - 1, ")");
  if (response.findings_size() > 0) {
    const v1::PipelineFinding& longest = response.findings(0);
    return absl::StrCat("A step takes ", SecondsText(longest.seconds() / longest.fraction()), ", ",
                        PercentText(longest.fraction()), " of it ", PartText(longest.part()), "; ",
                        BestChangeText(response), ".\n");
  }
  // The path is of a few steps, from the first worker's begin to the last one's end.
  const std::string step = response.prediction().step_time().has_mean()
                               ? DurationText(response.prediction().step_time().mean())
                               : SecondsText(response.path_seconds());
  return absl::StrCat("A step takes ", step, PathSentence(response, name), "; ",
                      BestChangeText(response), ".\n");
}

// A line, ended; empty: no gain tells it.
std::string BottleneckLine(const v1::Prediction& prediction) {
  if (!prediction.has_bottleneck_gain()) return "";
  return absl::StrCat("Bottleneck: ", BottleneckText(prediction), ".\n");
}

// A line, ended; empty: the slow-down is not known.
std::string OverlapText(const v1::RecordedJobDiagnosis& recorded) {
  if (!recorded.has_overlap_slowdown()) return "";
  const v1::OverlapSlowdown& found = recorded.overlap_slowdown();
  return absl::StrFormat(
      "computation beside a collective takes %.2f times as long as alone (%.2f .. %.2f, of %d "
      "operations that ran both ways)\n",
      found.slowdown(), found.interval().lower(), found.interval().upper(), found.operations());
}

// A line, ended; empty: the slow-down is not known.
std::string ContentionText(const v1::RecordedJobDiagnosis& recorded) {
  if (!recorded.has_collective_slowdown()) return "";
  const v1::CollectiveSlowdown& found = recorded.collective_slowdown();
  return absl::StrFormat(
      "a collective beside computation takes %.2f times as long as alone (%.2f .. %.2f, of %d "
      "collectives of a step, beside it for %s of their time)\n",
      found.slowdown(), found.interval().lower(), found.interval().upper(), found.collectives(),
      PercentText(found.computing_fraction()));
}

// The recorded job of several workers: its path, who was waited for, its clocks and its replay.
std::string RecordedText(const v1::RecordedJobDiagnosis& recorded) {
  const auto& workers = recorded.report().workers();
  const int32_t straggler = recorded.straggler();
  const std::string name = straggler >= 0 && straggler < workers.size()
                               ? workers.Get(straggler).name()
                               : absl::StrCat("worker ", straggler);
  return absl::StrCat("As recorded, a step takes ", SecondsText(recorded.path_seconds()),
                      PathSentence(recorded, name),
                      recorded.has_straggler() ? "" : "; nobody is waited for more than others",
                      ".\n", RecordingText(recorded.report()), OverlapText(recorded),
                      ContentionText(recorded), "\n");
}

std::string PathText(const v1::DiagnoseJobResponse& response) {
  Table table({{"critical path", Table::Align::kLeft}, {"a step"}, {"share"}});
  for (const v1::PathTime& time : response.path()) {
    table.AddRow({PathKindText(time.kind()), SecondsText(time.seconds()),
                  PercentText(ShareOfPath(response, time.seconds()))});
  }
  return table.Text();
}

// "3 buckets of 1 MB, 25 MB and 12 MB", or of how many bytes the least and the most.
std::string BucketsText(const v1::WhatIf& what_if) {
  const auto [least, most] = std::minmax_element(
      what_if.groups().begin(), what_if.groups().end(),
      [](const auto& a, const auto& b) { return a.size_bytes() < b.size_bytes(); });
  const std::string of = BytesText(most->size_bytes());
  const int count = what_if.groups_size();
  if (count == 1) return absl::StrCat("one bucket of ", of);
  return absl::StrCat(count, " buckets of ", BytesText(least->size_bytes()), " to ", of);
}

// Parts of a pipeline's step, and what each is.
std::string FindingsText(const v1::DiagnoseJobResponse& response) {
  Table table({{"part of a step", Table::Align::kLeft},
               {"a step"},
               {"share"},
               {"would gain", Table::Align::kLeft}});
  std::string text;
  for (const v1::PipelineFinding& finding : response.findings()) {
    const std::string part = PartText(finding.part());
    const std::string gain =
        finding.change() == v1::WhatIf::CHANGE_UNSPECIFIED
            ? ""
            : absl::StrCat(GainText(finding.ratio()), ", ", ChangeText(finding.change()));
    table.AddRow({part, SecondsText(finding.seconds()), PercentText(finding.fraction()), gain});
    absl::StrAppend(&text, part, ": ", finding.text(), "\n");
  }
  return absl::StrCat(table.Text(), text);
}

std::string ChangesText(const v1::DiagnoseJobResponse& response) {
  Predictions predictions;
  *predictions.Add() = response.prediction();
  Table table(
      {{"change", Table::Align::kLeft}, {"examples/s"}, {"gain"}, {IntervalTitle(predictions)}});
  table.AddRow({"as it is", NumberText(response.prediction().examples_per_second()), "", ""});
  for (const v1::WhatIf& what_if : response.what_ifs()) {
    table.AddRow({ChangeText(what_if.change()),
                  NumberText(what_if.prediction().examples_per_second()), GainText(what_if.ratio()),
                  GainIntervalText(what_if.ratio_interval())});
  }
  std::string text = table.Text();
  for (const v1::WhatIf& what_if : response.what_ifs()) {
    if (what_if.setting().empty() && what_if.groups().empty()) continue;
    std::vector<std::string> parts;
    if (!what_if.groups().empty()) parts.push_back(BucketsText(what_if));
    if (!what_if.setting().empty()) parts.push_back(what_if.setting());
    absl::StrAppend(&text, ChangeText(what_if.change()), ": ", absl::StrJoin(parts, "; "), "\n");
  }
  for (int i = 0; i < response.left_out_size(); ++i) {
    // Neighbours with the same reason are one line.
    const std::string& reason = response.left_out(i).reason();
    std::string changes = ChangeText(response.left_out(i).change());
    for (; i + 1 < response.left_out_size() && response.left_out(i + 1).reason() == reason; ++i)
      absl::StrAppend(&changes, ", ", ChangeText(response.left_out(i + 1).change()));
    absl::StrAppend(&text, "not tried: ", changes, " (", reason, ")\n");
  }
  return text;
}

// `conv1`, `conv1 and 12 more`.
std::string CarriedText(const v1::PathOperation& operation) {
  if (operation.operations().empty()) return "";
  const int more = operation.operations_size() - 1;
  return absl::StrCat(operation.operations(0),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

std::string PathOperationsText(const v1::DiagnoseJobResponse& response) {
  constexpr int kShown = 5;
  Table table({{"longest operations", Table::Align::kLeft},
               {"", Table::Align::kLeft},
               {"a step"},
               {"share"}});
  for (int i = 0; i < std::min(kShown, response.operations_size()); ++i) {
    const v1::PathOperation& operation = response.operations(i);
    table.AddRow({CarriedText(operation), PathKindText(operation.kind()),
                  SecondsText(operation.seconds()),
                  PercentText(ShareOfPath(response, operation.seconds()))});
  }
  return table.Text();
}

}  // namespace

std::string DiagnosisText(const v1::DiagnoseJobResponse& response) {
  Predictions predictions;
  *predictions.Add() = response.prediction();
  const bool is_pipeline = !response.findings().empty();
  return absl::StrCat(response.has_recording() ? RecordedText(response.recording()) : "",
                      VerdictText(response), BottleneckLine(response.prediction()), "\n",
                      is_pipeline ? FindingsText(response) : PathText(response), "\n",
                      ChangesText(response), "\n", is_pipeline ? "" : PathOperationsText(response),
                      AssumptionsText(predictions), WarningsText(predictions));
}

std::unique_ptr<Question> MakeDiagnoseQuestion() { return std::make_unique<DiagnoseQuestion>(); }

}  // namespace stepcast::client
