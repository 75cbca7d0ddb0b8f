// `layout`: how a job should be spread over devices.
#include <CLI/App.hpp>
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/flags/simulation_flags.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/prediction_table.h"
#include "client/cli/texts/progress.h"
#include "client/cli/texts/table.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

constexpr char kLayoutGroup[] = "Layout";

const Choices<v1::Pipeline::Schedule> kLayoutSchedules{
    {"gpipe", v1::Pipeline::GPIPE},
    {"1f1b", v1::Pipeline::ONE_F_ONE_B},
    {"interleaved", v1::Pipeline::INTERLEAVED},
    {"looped-bfs", v1::Pipeline::LOOPED_BFS},
    {"zero-bubble-1", v1::Pipeline::ZERO_BUBBLE_1},
    {"zero-bubble-v", v1::Pipeline::ZERO_BUBBLE_V}};

const char* ScheduleName(v1::Pipeline::Schedule schedule) {
  for (const auto& [word, value] : kLayoutSchedules)
    if (value == schedule) return word.c_str();
  return "unknown";
}

std::string LayoutName(const v1::Pipeline& pipeline, v1::AllReduce::Sharding sharding) {
  std::string text = absl::StrCat(ScheduleName(pipeline.schedule()), ", ", pipeline.stages(),
                                  pipeline.stages() == 1 ? " stage" : " stages");
  if (pipeline.chunks() > 1) absl::StrAppend(&text, " of ", pipeline.chunks(), " chunks");
  if (pipeline.reduction() == v1::Pipeline::BUCKETS) text += ", buckets";
  if (sharding == v1::AllReduce::OPTIMIZER) absl::StrAppend(&text, ", sharded optimizer");
  if (sharding == v1::AllReduce::GRADIENTS) absl::StrAppend(&text, ", sharded gradients");
  return text;
}

// A line a field that refused any.
std::string RefusedText(const v1::RecommendLayoutResponse& reply) {
  std::map<std::string, std::pair<int, std::string>> reasons;  // by field: count, an example
  for (const v1::RecommendLayoutResponse::Refused& refused : reply.refused()) {
    auto& [count, example] = reasons[refused.reason().substr(0, refused.reason().find(':'))];
    if (++count > 1) continue;
    example =
        absl::StrCat(LayoutName(refused.pipeline(), refused.sharding()), ", ", refused.workers(),
                     refused.workers() == 1 ? " replica: " : " replicas: ", refused.reason());
  }
  std::string text;
  for (const auto& [field, told] : reasons)
    absl::StrAppend(&text, "refused: ", told.first, " by ", field, ", for instance ", told.second,
                    "\n");
  return text;
}

}  // namespace

std::string LayoutText(const v1::RecommendLayoutResponse& reply) {
  Predictions predictions;
  for (const v1::RecommendLayoutResponse::Layout& layout : reply.layouts())
    *predictions.Add() = layout.prediction();
  Table table({{"layout", Table::Align::kLeft},
               {"replicas"},
               {"micro-batches"},
               {"examples/s"},
               {IntervalTitle(predictions)},
               {"best"},
               {"memory"},
               {"bubble"},
               {"first, if changed", Table::Align::kLeft}});
  const std::string at_least =
      std::any_of(reply.warnings().begin(), reply.warnings().end(),
                  [](const v1::Warning& warning) {
                    return warning.reason() == v1::Warning::KEPT_BYTES_NOT_KNOWN;
                  })
          ? ">= "
          : "";
  for (const v1::RecommendLayoutResponse::Layout& layout : reply.layouts()) {
    const v1::Prediction& prediction = layout.prediction();
    table.AddRow(
        {LayoutName(layout.pipeline(), layout.sharding()), absl::StrCat(layout.workers()),
         absl::StrCat(layout.pipeline().micro_batches()),
         NumberText(prediction.examples_per_second()),
         IntervalText(prediction.confidence_interval()), PercentText(layout.probability_best()),
         layout.memory_bytes() > 0 ? at_least + BytesText(layout.memory_bytes()) : "not known",
         PercentText(prediction.pipeline().bubble_fraction()), BottleneckText(prediction)});
  }
  std::string text = table.Text();
  if (reply.layouts_size() > 0)
    text += CloseCallText(reply.layouts(0).probability_best(), reply.expected_loss());
  if (reply.pruned_count() > 0)
    absl::StrAppend(&text, reply.pruned_count(),
                    " more fit, and are not listed: none is better than those that are.\n");
  if (reply.untried_count() > 0)
    absl::StrAppend(&text, reply.untried_count(),
                    " more fit, and were not tried within the time budget: one may be better.\n");
  text += RefusedText(reply);
  // Each layout has cuts of its own, which its own prediction tells.
  for (v1::Prediction& prediction : predictions) {
    auto& told = *prediction.mutable_assumptions();
    told.erase(std::remove_if(told.begin(), told.end(),
                              [](const v1::Assumption& assumption) {
                                return assumption.field() == "scenario.pipeline.cuts";
                              }),
               told.end());
  }
  text += AssumptionsText(predictions);
  text += WarningsText(reply.warnings());
  return text;
}

namespace {

class LayoutQuestion : public Question {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "layout", "How a job should be spread over devices: pipelines and replicas that fit");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->type_name("");
    AddValueOption<int64_t>(*app, "--devices", "N", "Devices that a layout fills (required)",
                            [this](int64_t devices) { request_.set_devices(devices); })
        ->group(kLayoutGroup);
    AddParsedOption(
        *app, "--memory", "BYTES", "What a device has: 80GB (default: any)",
        [](const std::string& text) { return ParseBytes(text); },
        [this](int64_t bytes) { request_.set_memory_bytes(bytes); })
        ->group(kLayoutGroup);
    CLI::Option* micro_batches = AddValueOption<int32_t>(
        *app, "--micro-batches", "N", "Micro-batches of a replica and step (default 8)",
        [this](int32_t count) { request_.set_micro_batches(count); });
    AddValueOption<int64_t>(*app, "--examples", "N", "Or examples of all replicas in a step",
                            [this](int64_t count) { request_.set_examples_per_step(count); })
        ->excludes(micro_batches)
        ->group(kLayoutGroup);
    micro_batches->group(kLayoutGroup);
    AddParsedOption(
        *app, "--schedules", "NAME,...",
        "Orders to try: " + ChoiceWords(kLayoutSchedules, "|") +
            " (default 1f1b and interleaved, and zero-bubble-1 where backward is split)",
        [](const std::string& text) -> absl::StatusOr<std::vector<v1::Pipeline::Schedule>> {
          std::vector<v1::Pipeline::Schedule> schedules;
          for (const absl::string_view word : absl::StrSplit(text, ',')) {
            const auto schedule = ParseChoice(std::string(word), kLayoutSchedules);
            if (!schedule.ok()) return schedule.status();
            schedules.push_back(*schedule);
          }
          return schedules;
        },
        [this](const std::vector<v1::Pipeline::Schedule>& schedules) {
          for (const auto schedule : schedules) request_.add_schedules(schedule);
        })
        ->group(kLayoutGroup);
    AddChoiceOption(*app, "--objective",
                    Choices<v1::RecommendLayoutRequest::Objective>{
                        {"max-throughput", v1::RecommendLayoutRequest::MAX_THROUGHPUT},
                        {"min-memory", v1::RecommendLayoutRequest::MIN_MEMORY}},
                    "What is best (default max-throughput)",
                    [this](auto objective) { request_.set_objective(objective); })
        ->group(kLayoutGroup);
    AddValueOption<int32_t>(*app, "--max-layouts", "N", "Layouts to print (default 20)",
                            [this](int32_t count) { request_.set_max_layouts(count); })
        ->group(kLayoutGroup);
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByUser,
                      ScenarioFlags::Offsets::kForbidden);
    simulation_.Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return IsFile(profile_); }

  std::string Activity() const override { return "trying layouts"; }

  ExitCode Check(const Session& session) const override {
    if (profile_.empty()) return session.Misused("PROFILE is required");
    return request_.devices() == 0 ? session.Misused("--devices is required") : ExitCode::kDone;
  }

  absl::StatusOr<v1::StartJobRequest> Ask(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return source.status();
    scenario_.Explain(session);
    v1::StartJobRequest asked;
    v1::RecommendLayoutRequest& request = *asked.mutable_recommend_layout();
    request = request_;
    SetSource(*std::move(source), request);
    *request.mutable_scenario() = scenario_.scenario();
    *request.mutable_options() = simulation_.options();
    constexpr int32_t kMicroBatches = 8;
    if (request.work_case() == v1::RecommendLayoutRequest::WORK_NOT_SET)
      request.set_micro_batches(kMicroBatches);
    return asked;
  }

  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, profile_, status);
  }

  ExitCode Answer(const Session& session, const v1::StartJobRequest&,
                  const google::protobuf::Message& reply) const override {
    const auto& response = static_cast<const v1::RecommendLayoutResponse&>(reply);
    return session.Answer(ToJson(response), [&] { return LayoutText(response); });
  }

 private:
  std::string profile_;
  v1::RecommendLayoutRequest request_;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

// `layout`, and `layout fit`.
class LayoutCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = ask_->Declare(parent);
    fit_app_ = fit_->Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return Chosen().NeedsNoServer(); }

  ExitCode Run(const Session& session) const override { return Chosen().Run(session); }

 private:
  const Command& Chosen() const { return fit_app_->parsed() ? *fit_ : *ask_; }

  const std::unique_ptr<Command> ask_ = MakeCallCommand(MakeLayoutQuestion());
  const std::unique_ptr<Command> fit_ = MakeLayoutFitCommand();
  CLI::App* fit_app_ = nullptr;
};

}  // namespace

std::unique_ptr<Question> MakeLayoutQuestion() { return std::make_unique<LayoutQuestion>(); }

std::unique_ptr<Command> MakeLayoutCommand() { return std::make_unique<LayoutCommand>(); }

}  // namespace stepcast::client
