// `optimize`: the operations to fuse and the gradients to send together, and what to do where
// memory is short.
#include <CLI/App.hpp>
#include <CLI/Error.hpp>
#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/flags/simulation_flags.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/prediction_table.h"
#include "client/cli/texts/table.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

enum class Shortcut { kCoarsenedView, kPartialReplay, kSymmetry };

const Choices<Shortcut> kShortcuts{{"coarsened-view", Shortcut::kCoarsenedView},
                                   {"partial-replay", Shortcut::kPartialReplay},
                                   {"symmetry", Shortcut::kSymmetry}};

class OptimizeQuestion : public Question {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "optimize",
        "Which operations of a job to fuse, which gradients to send together or in parts, and what "
        "to do where memory is short");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->required()->type_name("");
    RefuseZero(*app->add_option("--workers", workers_,
                                "Number of workers (default 8, or what --worker-group counts)")
                    ->type_name("N"));
    app->add_option("--out", out_, "Write the strategy to a file, as JSON")->type_name("FILE");
    app->add_option_function<std::string>(
           "--costs", [this](const std::string& path) { ReadCosts(path); },
           "What is measured: a file with `fusedCosts`, times of operations as one, and `memory`, "
           "what they keep, as JSON of the contract's OptimizeJobRequest")
        ->type_name("FILE");
    AddValueOption<double>(
        *app, "--fused-share", "SHARE",
        "An estimate where nothing is measured: fused operations take this share of the time of "
        "all but the last of them (dPRO's simulated mode: 0.8); without it nothing else is fused",
        [this](double share) { request_.set_fused_share(share); });
    AddValueOption<int32_t>(*app, "--max-partitions", "N",
                            "Most parts that a group of gradients is cut in, 1 to 16 (default 16)",
                            [this](int32_t most) { request_.set_max_partitions(most); });
    AddParsedOption(
        *app, "--memory-budget", "BYTES",
        "What a worker's step may need at its peak: 16GB; more is brought within it by computing "
        "outputs again or by halving the batch",
        [](const std::string& text) { return ParseBytes(text); },
        [this](int64_t bytes) { request_.mutable_memory()->set_budget_bytes(bytes); });
    CLI::Option* const half = AddValueOption<double>(
        *app, "--half-batch-share", "SHARE",
        "The time of half a batch over that of the whole one (default 0.57)",
        [this](double share) { request_.mutable_memory()->set_half_batch_share(share); });
    AddParsedOption(
        *app, "--half-batch-recording", "PROFILE",
        "A recording of the same job with another batch, a file or a stored name: tells what half "
        "a batch takes of each computation",
        SecondRecording<v1::StrategyMemory>,
        [this](const v1::StrategyMemory& second) { request_.mutable_memory()->MergeFrom(second); })
        ->excludes(half);
    app->add_option_function<std::vector<std::string>>(
           "--without", [this](const auto& names) { SwitchOff(names); },
           "A shortcut of the search to do without; may be repeated")
        ->type_name(ChoiceWords(kShortcuts, "|"))
        ->allow_extra_args(false);
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kAllowed);
    simulation_.Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return IsFile(profile_); }

  std::string Activity() const override { return "searching"; }

  std::string_view AnswerFlag() const override { return out_.empty() ? "" : "--out"; }

  absl::StatusOr<v1::StartJobRequest> Ask(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return source.status();
    scenario_.Explain(session);
    v1::StartJobRequest asked;
    v1::OptimizeJobRequest& request = *asked.mutable_optimize_job();
    *request.mutable_fused_costs() = costs_.fused_costs();
    if (costs_.has_memory()) *request.mutable_memory() = costs_.memory();
    request.MergeFrom(request_);
    SetSource(*std::move(source), request);
    *request.mutable_scenario() =
        workers_.has_value() ? scenario_.With(*workers_) : scenario_.scenario();
    *request.mutable_options() = simulation_.options();
    return asked;
  }

  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, profile_, status);
  }

  ExitCode Answer(const Session& session, const v1::StartJobRequest&,
                  const google::protobuf::Message& reply) const override {
    const auto& response = static_cast<const v1::OptimizeJobResponse&>(reply);
    if (!out_.empty()) {
      std::ofstream file(out_, std::ios::binary | std::ios::trunc);
      file << ToJson(response.strategy());
      file.close();
      if (file.fail())
        return session.Refused(absl::DataLossError(absl::StrCat("cannot write ", out_)));
    }
    return session.Answer(ToJson(response), [&] { return StrategyText(response); });
  }

 private:
  void ReadCosts(const std::string& path) {
    const absl::StatusOr<std::string> text = ReadTextInput(path, "costs as JSON");
    const absl::Status status = text.ok() ? InFile(path, FromJson(*text, costs_)) : text.status();
    if (!status.ok()) throw CLI::ValidationError("--costs", std::string(status.message()));
    v1::OptimizeJobRequest others = costs_;
    others.clear_fused_costs();
    others.clear_memory();
    if (others.ByteSizeLong() > 0) {
      throw CLI::ValidationError("--costs",
                                 absl::StrCat(path, " has more than `fusedCosts` and `memory`"));
    }
  }

  void SwitchOff(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const absl::StatusOr<Shortcut> shortcut = ParseChoice(name, kShortcuts);
      if (!shortcut.ok())
        throw CLI::ValidationError("--without", std::string(shortcut.status().message()));
      v1::SearchShortcuts& shortcuts = *request_.mutable_shortcuts();
      switch (*shortcut) {
        case Shortcut::kCoarsenedView:
          shortcuts.set_coarsened_view(false);
          break;
        case Shortcut::kPartialReplay:
          shortcuts.set_partial_replay(false);
          break;
        case Shortcut::kSymmetry:
          shortcuts.set_symmetry(false);
          break;
      }
    }
  }

  std::string profile_;
  std::optional<int32_t> workers_;
  std::string out_;
  v1::OptimizeJobRequest costs_;    // of a file
  v1::OptimizeJobRequest request_;  // of flags
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

std::string StrategyGainText(double fraction) {
  const std::string percent = PercentText(fraction);
  if (percent == "-0.0%") return "+0.0%";
  return absl::StrCat(percent.front() == '-' ? "" : "+", percent);
}

std::string ComparedText(const v1::OptimizeJobResponse& response) {
  Table table({{"strategy", Table::Align::kLeft},
               {"step"},
               {"examples/s"},
               {"gain"},
               {"interval"},
               {"", Table::Align::kLeft}});
  for (const v1::ComparedStrategy& compared : response.compared()) {
    const v1::ConfidenceInterval& interval = compared.gain_interval();
    const bool is_base = compared.name() == "AS_RECORDED";
    table.AddRow({compared.name(), SecondsText(compared.step_seconds()),
                  NumberText(compared.examples_per_second()),
                  is_base ? "" : StrategyGainText(compared.gain()),
                  is_base || interval.upper() <= interval.lower()
                      ? ""
                      : absl::StrCat(StrategyGainText(interval.lower()), " .. ",
                                     StrategyGainText(interval.upper())),
                  is_base                           ? ""
                  : compared.no_difference()        ? "no difference"
                  : compared.rests_on_fused_share() ? "by the assumed --fused-share"
                                                    : ""});
  }
  return table.Text();
}

// The first and the last of some, and how many.
template <typename Names>
std::string SpanText(const Names& names) {
  if (names.empty()) return "";
  if (names.size() == 1) return names.Get(0);
  return absl::StrCat(names.Get(0), " .. ", names.Get(names.size() - 1), " (", names.size(), ")");
}

std::string StrategyGroupsText(const v1::JobStrategy& strategy) {
  constexpr int kShown = 8;
  std::string text;
  if (strategy.fused_operations_size() > 0) {
    Table table({{"computed as one", Table::Align::kLeft},
                 {"apart"},
                 {"as one"},
                 {"", Table::Align::kLeft}});
    for (int i = 0; i < std::min(kShown, strategy.fused_operations_size()); ++i) {
      const v1::FusedOperations& fused = strategy.fused_operations(i);
      table.AddRow({SpanText(fused.operations()), SecondsText(fused.seconds_apart()),
                    SecondsText(fused.seconds()), fused.is_estimate() ? "estimated" : "measured"});
    }
    absl::StrAppend(&text, "\n", table.Text());
    if (strategy.fused_operations_size() > kShown) {
      absl::StrAppend(&text, "and ", strategy.fused_operations_size() - kShown,
                      " more (--out or --output json)\n");
    }
  }
  if (strategy.tensors_size() > 0) {
    Table table({{"sent as one", Table::Align::kLeft}, {"bytes"}, {"parts"}});
    for (int i = 0; i < std::min(kShown, strategy.tensors_size()); ++i) {
      const v1::FusedTensors& tensors = strategy.tensors(i);
      table.AddRow({SpanText(tensors.operations()), BytesText(tensors.size_bytes()),
                    absl::StrCat(tensors.partitions())});
    }
    absl::StrAppend(&text, "\n", table.Text());
    if (strategy.tensors_size() > kShown) {
      absl::StrAppend(&text, "and ", strategy.tensors_size() - kShown,
                      " more (--out or --output json)\n");
    }
  }
  if (!strategy.setting().empty()) absl::StrAppend(&text, "\nset: ", strategy.setting(), "\n");
  if (strategy.recomputed_size() > 0)
    absl::StrAppend(&text, "\ncomputed again: ", SpanText(strategy.recomputed()), "\n");
  return text;
}

std::string MemoryText(const v1::MemoryReport& memory) {
  std::string text =
      absl::StrCat("\nmemory: ", BytesText(static_cast<int64_t>(memory.before_bytes())));
  if (memory.after_bytes() != memory.before_bytes())
    absl::StrAppend(&text, ", now ", BytesText(static_cast<int64_t>(memory.after_bytes())));
  absl::StrAppend(&text, ", of which ", BytesText(static_cast<int64_t>(memory.parameter_bytes())),
                  " parameters and their state\n");
  for (const v1::TriedMemoryPass& tried : memory.tried()) {
    absl::StrAppend(&text, "tried: ", v1::JobStrategy::MemoryPass_Name(tried.pass()),
                    tried.recomputes().empty() ? "" : " of ", tried.recomputes(), ": ",
                    tried.why_not().empty()
                        ? absl::StrCat(BytesText(static_cast<int64_t>(tried.bytes())),
                                       ", a step of ", SecondsText(tried.step_seconds()))
                        : tried.why_not(),
                    "\n");
  }
  for (const std::string& assumption : memory.assumptions())
    absl::StrAppend(&text, "assumed: ", assumption, "\n");
  return text;
}

}  // namespace

std::string StrategyText(const v1::OptimizeJobResponse& response) {
  std::string text =
      absl::StrCat(response.reason(), "\n\n", ComparedText(response),
                   CloseCallText(response.probability_best(), response.expected_loss()),
                   StrategyGroupsText(response.strategy()), "\n");
  absl::StrAppend(&text, "costs of fused operations: ", response.cost_source(), "\n");
  if (response.has_lower_bound_seconds()) {
    absl::StrAppend(&text, "no grouping's step that ends with its collectives is shorter than ",
                    SecondsText(response.lower_bound_seconds()), "\n");
  } else if (!response.no_bound_because().empty()) {
    absl::StrAppend(&text, "no bound: ", response.no_bound_because(), "\n");
  }
  if (response.is_chains_best())
    absl::StrAppend(&text, "no other groups are better at the operations' mean times\n");
  const v1::SearchReport& search = response.search();
  absl::StrAppend(&text, "searched: ", search.rounds(), " rounds, ", search.replays(),
                  " replays of the whole job (", search.replayed_operations(),
                  " operations), of which ", search.accepted(), " were accepted; ",
                  search.partial_replays(), " of one tensor\n");
  if (response.has_memory()) absl::StrAppend(&text, MemoryText(response.memory()));
  text += AssumptionsText(response.as_recorded().assumptions());
  text += WarningsText(response.warnings());
  return text;
}

std::unique_ptr<Question> MakeOptimizeQuestion() { return std::make_unique<OptimizeQuestion>(); }

}  // namespace stepcast::client
