// `layout fit`: what measured runs of pipelines say of other numbers of devices.
#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/input_files.h"
#include "client/cli/texts/json_text.h"
#include "client/cli/texts/prediction_table.h"
#include "client/cli/texts/table.h"

#include "stepcast/error_details.h"
#include "stepcast/json.h"

namespace stepcast::client {

namespace {

// Runs of one kind of job: those whose other columns agree.
struct RunGroup {
  std::string job;
  v1::FitRunsRequest request;
  std::vector<int> lines;  // of the table, by run
};
using RunGroups = std::vector<RunGroup>;

// The text with the line of the table where a run is named, `runs[2].devices`.
std::string AtLines(std::string text, const std::vector<int>& lines) {
  for (size_t run = 0; run < lines.size(); ++run)
    text = absl::StrReplaceAll(
        text, {{absl::StrCat("runs[", run, "]."), absl::StrCat("line ", lines[run], ", ")},
               {absl::StrCat("runs[", run, "]"), absl::StrCat("line ", lines[run])}});
  return text;
}

// The refusal of a group, which names its runs by their lines.
absl::Status Refusal(const absl::Status& status, const std::vector<int>& lines) {
  std::string faults;
  for (const FieldViolation& fault : GetErrorDetails(status).violations)
    absl::StrAppend(&faults, faults.empty() ? "" : "; ", fault.field, ": ", fault.description);
  const std::string told = AtLines(faults, lines);
  return told == faults ? status : absl::Status(status.code(), told);
}

// The columns of a table of runs, by their names and what others call them.
struct RunColumns {
  int devices = -1;
  int stages = -1;
  int chunks = -1;
  int micro_batches = -1;
  int step_seconds = -1;
  int name = -1;
  std::vector<int> kinds;  // runs that differ in them are of other jobs

  static RunColumns Of(const std::vector<std::string>& titles) {
    RunColumns columns;
    const std::map<std::string, int*> known = {{"devices", &columns.devices},
                                               {"gpus", &columns.devices},
                                               {"stages", &columns.stages},
                                               {"pp", &columns.stages},
                                               {"chunks", &columns.chunks},
                                               {"vp", &columns.chunks},
                                               {"micro_batches", &columns.micro_batches},
                                               {"grad_acc", &columns.micro_batches},
                                               {"step_seconds", &columns.step_seconds},
                                               {"step_s_median", &columns.step_seconds},
                                               {"name", &columns.name}};
    constexpr const char* kKinds[] = {"job", "benchmark", "gpu", "tp", "cp", "ep", "mbs"};
    for (size_t i = 0; i < titles.size(); ++i) {
      if (const auto column = known.find(titles[i]); column != known.end())
        *column->second = static_cast<int>(i);
      for (const char* kind : kKinds)
        if (titles[i] == kind) columns.kinds.push_back(static_cast<int>(i));
    }
    return columns;
  }
};

// A whole number, also written as 48.0.
absl::StatusOr<int64_t> WholeNumber(const std::string& text, const std::string& title) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || value != std::floor(value) || std::fabs(value) > 1e15)
    return absl::InvalidArgumentError(
        absl::StrCat(title, " is \"", text, "\", not a whole number"));
  return static_cast<int64_t>(value);
}

std::vector<std::string> CellsOf(absl::string_view line) {
  std::vector<std::string> cells;
  for (const absl::string_view cell : absl::StrSplit(line, absl::ByAnyChar(",;\t")))
    cells.emplace_back(absl::StripAsciiWhitespace(cell));
  return cells;
}

absl::StatusOr<v1::MeasuredRun> RunOf(const RunColumns& columns,
                                      const std::vector<std::string>& cells) {
  v1::MeasuredRun run;
  const auto whole = [&](int column, const char* title) -> absl::StatusOr<int32_t> {
    absl::StatusOr<int64_t> value = WholeNumber(cells[static_cast<size_t>(column)], title);
    if (!value.ok()) return value.status();
    return static_cast<int32_t>(std::clamp<int64_t>(*value, INT32_MIN, INT32_MAX));
  };
  const absl::StatusOr<int32_t> devices = whole(columns.devices, "devices");
  if (!devices.ok()) return devices.status();
  run.set_devices(*devices);
  const absl::StatusOr<int32_t> stages = whole(columns.stages, "stages");
  if (!stages.ok()) return stages.status();
  run.mutable_pipeline()->set_stages(*stages);
  const absl::StatusOr<int32_t> micro_batches = whole(columns.micro_batches, "micro_batches");
  if (!micro_batches.ok()) return micro_batches.status();
  run.mutable_pipeline()->set_micro_batches(*micro_batches);
  if (columns.chunks >= 0 && !cells[static_cast<size_t>(columns.chunks)].empty()) {
    const absl::StatusOr<int32_t> chunks = whole(columns.chunks, "chunks");
    if (!chunks.ok()) return chunks.status();
    run.mutable_pipeline()->set_chunks(*chunks);
  }
  const std::string& seconds = cells[static_cast<size_t>(columns.step_seconds)];
  double value = 0;
  if (!seconds.empty() && !absl::SimpleAtod(seconds, &value))
    return absl::InvalidArgumentError(
        absl::StrCat("step_seconds is \"", seconds, "\", not a number"));
  if (!seconds.empty()) run.set_step_seconds(value);
  if (columns.name >= 0) run.set_name(cells[static_cast<size_t>(columns.name)]);
  return run;
}

absl::StatusOr<RunGroups> ParseRuns(const std::string& text) {
  RunGroups groups;
  std::optional<RunColumns> columns;
  size_t titles = 0;
  int line_number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    const absl::string_view content = absl::StripAsciiWhitespace(line);
    if (content.empty() || content[0] == '#') continue;
    const std::vector<std::string> cells = CellsOf(content);
    if (!columns.has_value()) {
      columns = RunColumns::Of(cells);
      titles = cells.size();
      if (columns->devices < 0 || columns->stages < 0 || columns->micro_batches < 0 ||
          columns->step_seconds < 0)
        return absl::InvalidArgumentError(absl::StrCat(
            "line ", line_number,
            " does not name the columns devices, stages, micro_batches and step_seconds (or gpus, "
            "pp, grad_acc and step_s_median)"));
      continue;
    }
    if (cells.size() != titles)
      return absl::InvalidArgumentError(absl::StrCat("line ", line_number, " has ", cells.size(),
                                                     " columns, and the first ", titles));
    absl::StatusOr<v1::MeasuredRun> run = RunOf(*columns, cells);
    if (!run.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line_number, ": ", std::string(run.status().message())));
    std::vector<std::string> kind;
    for (const int column : columns->kinds) kind.push_back(cells[static_cast<size_t>(column)]);
    const std::string job = absl::StrJoin(kind, ", ");
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const RunGroup& known) { return known.job == job; });
    if (group == groups.end()) group = groups.insert(groups.end(), RunGroup{.job = job});
    *group->request.add_runs() = *std::move(run);
    group->lines.push_back(line_number);
  }
  if (groups.empty()) return absl::InvalidArgumentError("has no runs");
  return groups;
}

std::string FitRunsText(const v1::FitRunsRequest& request, const v1::FitRunsResponse& reply) {
  const auto interval = [](const v1::ConfidenceInterval& of) {
    return absl::StrCat(NumberText(of.lower()), " .. ", NumberText(of.upper()));
  };
  std::string text = absl::StrCat(
      "step = c (m + (p - 1) / v) p0 / p + rest: c ", NumberText(reply.seconds_per_micro_batch()),
      " s (", interval(reply.seconds_per_micro_batch_interval()), "), ",
      reply.rest_seconds() > 0 ? absl::StrCat("rest ", NumberText(reply.rest_seconds()), " s (")
                               : std::string("no rest ("),
      interval(reply.rest_seconds_interval()), "), p0 the smallest run's p\n");
  Table table({{"devices"},
               {"stages"},
               {"micro-batches"},
               {"step"},
               {absl::StrCat(reply.seconds_per_micro_batch_interval().level() * 100, "% of runs")},
               {"measured"},
               {"error"},
               {"linear scaling"},
               {"", Table::Align::kLeft}});
  std::vector<double> errors;
  std::vector<double> linear;
  std::set<double> fitted;
  for (int i = 0; i < reply.runs_size(); ++i) {
    const v1::FitRunsResponse::Run& run = reply.runs(i);
    const v1::MeasuredRun& asked = request.runs(i);
    const auto percent = [](bool known, double value) {
      return known ? absl::StrFormat("%+.2f%%", 100 * value) : std::string();
    };
    table.AddRow({absl::StrCat(asked.devices()), absl::StrCat(asked.pipeline().stages()),
                  absl::StrCat(asked.pipeline().micro_batches()), SecondsText(run.step_seconds()),
                  absl::StrCat(SecondsText(run.step_interval().lower()), " .. ",
                               SecondsText(run.step_interval().upper())),
                  asked.has_step_seconds() ? SecondsText(asked.step_seconds()) : "",
                  percent(run.has_relative_error(), run.relative_error()),
                  percent(run.has_linear_relative_error(), run.linear_relative_error()),
                  run.fitted() ? "fitted" : ""});
    if (run.fitted()) fitted.insert(run.step_seconds());
    if (run.fitted() || !run.has_relative_error()) continue;
    errors.push_back(std::fabs(run.relative_error()));
    linear.push_back(std::fabs(run.linear_relative_error()));
  }
  absl::StrAppend(&text, table.Text());
  text += WarningsText(reply.warnings());
  if (fitted.size() == 1)
    absl::StrAppend(&text, "assumed: no rest, which runs that are all as long do not tell\n");
  if (errors.empty()) return text;
  std::sort(errors.begin(), errors.end());
  std::sort(linear.begin(), linear.end());
  absl::StrAppendFormat(&text,
                        "others: %d, errors %.2f%% in the middle, %.2f%% at worst; of linear "
                        "scaling %.1f%% and %.1f%%\n",
                        errors.size(), 100 * errors[(errors.size() - 1) / 2], 100 * errors.back(),
                        100 * linear[(linear.size() - 1) / 2], 100 * linear.back());
  return text;
}

class LayoutFitCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand("fit",
                                          "What measured runs of pipelines say of other numbers of "
                                          "devices");
    app->add_option("RUNS", runs_,
                    "A table of runs with columns devices, stages, chunks, micro_batches and "
                    "step_seconds (or gpus, pp, vp,\ngrad_acc, step_s_median), empty where it is "
                    "to be predicted; runs that differ in job, benchmark, gpu,\ntp, cp, ep or mbs "
                    "are fitted apart; -: standard input")
        ->required()
        ->type_name("FILE");
    app->add_flag("--all", all_,
                  "Fit all measured runs (default: the smallest, and the next of its stages with "
                  "another number\nof micro-batches, if there is one)");
    app->add_option("--level", level_, "Probability of the intervals (default 0.95)")
        ->type_name("P");
    return app;
  }

  bool NeedsNoServer() const override { return true; }

  ExitCode Run(const Session& session) const override {
    const absl::StatusOr<std::string> text = ReadTextInput(runs_, "a table of measured runs");
    if (!text.ok()) return session.Refused(text.status());
    absl::StatusOr<RunGroups> groups = ParseRuns(*text);
    if (!groups.ok())
      return session.Refused(absl::InvalidArgumentError(
          absl::StrCat(InputAt(runs_).Name(), ", ", std::string(groups.status().message()))));
    std::vector<std::string> json;
    std::string tables;
    bool is_any_fitted = false;
    for (RunGroup& group : *groups) {
      const std::string& job = group.job;
      v1::FitRunsRequest& request = group.request;
      request.set_basis(all_ ? v1::FitRunsRequest::ALL_RUNS : v1::FitRunsRequest::SMALLEST);
      if (level_.has_value()) request.set_confidence_level(*level_);
      const absl::StatusOr<v1::FitRunsResponse> reply = session.client.FitRuns(request);
      if (groups->size() == 1) {
        if (!reply.ok()) return session.Refused(Refusal(reply.status(), group.lines));
        return session.Answer(ToJson(*reply), [&] {
          return absl::StrCat(job, job.empty() ? "" : ":\n", FitRunsText(request, *reply));
        });
      }
      is_any_fitted |= reply.ok();
      json.push_back(
          absl::StrCat("{\"job\":", JsonText(job), reply.ok() ? ",\"fit\":" : ",\"error\":",
                       reply.ok() ? ToJson(*reply) : JsonText(ErrorObject(reply.status())), "}"));
      absl::StrAppend(
          &tables, tables.empty() ? "" : "\n", job, ":\n",
          reply.ok()
              ? FitRunsText(request, *reply)
              : absl::StrCat("not fitted: ", Refusal(reply.status(), group.lines).message(), "\n"));
    }
    if (!is_any_fitted) return session.Refused(absl::InvalidArgumentError(tables));
    return session.Answer(absl::StrCat("[", absl::StrJoin(json, ","), "]"), [&] { return tables; });
  }

 private:
  std::string runs_;
  bool all_ = false;
  std::optional<double> level_;
};

}  // namespace

std::unique_ptr<Command> MakeLayoutFitCommand() { return std::make_unique<LayoutFitCommand>(); }

}  // namespace stepcast::client
