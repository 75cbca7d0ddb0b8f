// `order`: in which order the job's tensors should travel.
#include <CLI/App.hpp>
#include <CLI/Error.hpp>
#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/flags/simulation_flags.h"
#include "client/cli/input_files.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/prediction_table.h"
#include "client/cli/texts/table.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

const Choices<v1::OrderMethod> kOrderMethods{{"tic", v1::TIC},       {"tac", v1::TAC},
                                             {"search", v1::SEARCH}, {"reverse", v1::REVERSE},
                                             {"random", v1::RANDOM}, {"recorded", v1::RECORDED},
                                             {"graph", v1::GRAPH}};

// The order of the chosen method; null: there is none.
const v1::TransferOrderResult* ChosenOrder(const v1::OptimizeOrderResponse& response) {
  for (const v1::TransferOrderResult& order : response.orders()) {
    if (order.method() == response.chosen()) return &order;
  }
  return nullptr;
}

class OrderQuestion : public Question {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app =
        parent.add_subcommand("order", "In which order the job's tensors should travel");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->required()->type_name("");
    RefuseZero(
        *app->add_option("--workers", workers_,
                         "Number of workers to predict each order's throughput for (default 1)")
             ->type_name("N"));
    app->add_option_function<std::vector<std::string>>(
           "--method", [this](const auto& names) { AddMethods(names); },
           "What to try; may be repeated (default tic, tac, reverse, recorded, graph)")
        ->type_name(ChoiceWords(kOrderMethods, "|"))
        ->allow_extra_args(false);
    app->add_flag("--inference", inference_, "Look at the downloads and the forward pass only");
    AddParsedOption(
        *app, "--transfers", "N",
        absl::StrCat("How many transfers of the chosen order the table shows (default ",
                     kDefaultTransfers, ")"),
        [](const std::string& text) { return ParseCount(text); },
        [this](uint64_t count) { transfers_max_ = count; });
    app->add_option(
           "--save-priorities", save_,
           "Write the chosen order to this file (- is standard output), a line "
           "`name<TAB>priority` each, as TicTac enforces it and predict --priorities reads it")
        ->type_name("FILE");
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByService,
                      ScenarioFlags::Offsets::kAllowed);
    simulation_.Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return IsFile(profile_); }

  std::string Activity() const override { return "trying orders"; }

  std::string_view AnswerFlag() const override { return save_.empty() ? "" : "--save-priorities"; }

  absl::StatusOr<v1::StartJobRequest> Ask(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return source.status();
    scenario_.Explain(session);
    v1::StartJobRequest asked;
    v1::OptimizeOrderRequest& request = *asked.mutable_optimize_order();
    SetSource(*std::move(source), request);
    *request.mutable_scenario() = scenario_.With(workers_);
    *request.mutable_options() = simulation_.options();
    for (const v1::OrderMethod method : methods_) request.add_methods(method);
    request.set_inference(inference_);
    return asked;
  }

  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, profile_, status);
  }

  ExitCode Answer(const Session& session, const v1::StartJobRequest&,
                  const google::protobuf::Message& reply) const override {
    const auto& response = static_cast<const v1::OptimizeOrderResponse&>(reply);
    const v1::TransferOrderResult* const chosen = save_.empty() ? nullptr : ChosenOrder(response);
    const absl::StatusOr<std::string> lines = chosen ? PriorityText(*chosen) : std::string();
    if (!lines.ok()) return session.Misused(std::string(lines.status().message()));
    return session.AnswerWithFile(save_, *lines, ToJson(response),
                                  [&] { return OrderText(response, transfers_max_); });
  }

 private:
  void AddMethods(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const absl::StatusOr<v1::OrderMethod> method = ParseChoice(name, kOrderMethods);
      if (!method.ok())
        throw CLI::ValidationError("--method", std::string(method.status().message()));
      methods_.push_back(*method);
    }
  }

  std::string profile_;
  int32_t workers_ = 1;
  std::vector<v1::OrderMethod> methods_;
  bool inference_ = false;
  size_t transfers_max_ = kDefaultTransfers;
  std::string save_;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

std::string MethodsText(const v1::OptimizeOrderResponse& response) {
  Table table({{"", Table::Align::kLeft},
               {"method", Table::Align::kLeft},
               {"makespan"},
               {"gap"},
               {"efficiency"},
               {"straggler"},
               {"steps/s"},
               {"examples/s"}});
  for (const v1::TransferOrderResult& order : response.orders()) {
    table.AddRow({order.method() == response.chosen() ? "->" : "",
                  v1::OrderMethod_Name(order.method()),
                  DurationText(std::chrono::nanoseconds(order.makespan_ns())),
                  order.best() ? "best" : PercentText(order.gap()),
                  PercentText(order.scheduling_efficiency()), PercentText(order.straggler_effect()),
                  NumberText(order.steps_per_second()), NumberText(order.examples_per_second())});
  }
  return table.Text();
}

// Name of the order that others are compared with.
std::string BaselineNameOf(v1::ParameterServers::TransferOrder order) {
  if (order == v1::ParameterServers::GRAPH) return "graph order";
  return order == v1::ParameterServers::RANDOM ? "random order" : "recorded order";
}

std::string SpeedupIntervalText(const v1::ConfidenceInterval& interval) {
  return absl::StrCat(NumberText(interval.lower()), " to ", NumberText(interval.upper()));
}

std::string BoundsText(const v1::OptimizeOrderResponse& response) {
  return absl::StrCat(
      "A step takes from ", DurationText(std::chrono::nanoseconds(response.lower_makespan_ns())),
      " (the busiest resource) to ",
      DurationText(std::chrono::nanoseconds(response.upper_makespan_ns())),
      " (one thing at a time): order can gain ", PercentText(response.speedup_bound()),
      " at most.\nNo order of the downloads takes less than ",
      DurationText(std::chrono::nanoseconds(response.order_lower_bound_ns())),
      "; gap: how far above that an order is.\n");
}

// Says that the chosen order makes the job slower in the long run, or may do so by more than
// choices are settled to, than an order that nobody chose. A loss that is sure comes before a
// larger one.
std::string SlowerText(const v1::TransferOrderResult& chosen) {
  constexpr double kTie = 0.02;
  const auto may_gain = [](const v1::OrderSpeedup& speedup) {
    return speedup.confidence_interval().upper() >= 1;
  };
  const v1::OrderSpeedup* worst = nullptr;
  for (const v1::OrderSpeedup& speedup : chosen.speedups()) {
    if (!speedup.has_confidence_interval()) continue;
    if (may_gain(speedup) && speedup.speedup() > 1 - kTie) continue;
    if (worst == nullptr || std::pair(may_gain(speedup), speedup.speedup()) <
                                std::pair(may_gain(*worst), worst->speedup()))
      worst = &speedup;
  }
  if (worst == nullptr) return "";
  const bool is_sure = !may_gain(*worst);
  return absl::StrCat(
      is_sure ? "Slower" : "Perhaps slower",
      " in the long run: ", v1::OrderMethod_Name(chosen.method()),
      " is chosen by the makespan of one step, and makes ", PercentText(1 - worst->speedup()),
      " fewer examples/s than ", BaselineNameOf(worst->over()),
      is_sure ? ", so keep that.\n"
              : absl::StrCat(" (", SpeedupIntervalText(worst->confidence_interval()),
                             " times as many).\n"));
}

// The gain of the chosen order over those that nobody chose.
std::string BaselinesText(const v1::OptimizeOrderResponse& response,
                          const v1::TransferOrderResult& chosen) {
  if (response.baselines().empty()) return "";
  Table table(
      {{"against", Table::Align::kLeft}, {"examples/s"}, {"interval"}, {"speed-up"}, {"interval"}});
  for (const v1::OrderBaseline& baseline : response.baselines()) {
    const auto over = std::find_if(chosen.speedups().begin(), chosen.speedups().end(),
                                   [&](const v1::OrderSpeedup& speedup) {
                                     return speedup.over() == baseline.transfer_order();
                                   });
    const bool known = over != chosen.speedups().end();
    table.AddRow(
        {BaselineNameOf(baseline.transfer_order()), NumberText(baseline.examples_per_second()),
         SpeedupIntervalText(baseline.confidence_interval()),
         known ? NumberText(over->speedup()) : "",
         known && over->has_confidence_interval() ? SpeedupIntervalText(over->confidence_interval())
                                                  : ""});
  }
  const bool enforces_recorded =
      std::any_of(response.orders().begin(), response.orders().end(),
                  [](const auto& order) { return order.method() == v1::RECORDED; });
  return absl::StrCat("\n", table.Text(),
                      enforces_recorded ? "RECORDED enforces the order of the first recorded step; "
                                          "recorded order is each step's own.\n"
                                        : "",
                      SlowerText(chosen));
}

// The spread of orders that nobody enforces, and of the steps that workers wait for each other in,
// beside the chosen order.
std::string ConsistencyText(const v1::OptimizeOrderResponse& response,
                            const v1::TransferOrderResult& chosen) {
  // An earlier server does not tell it.
  if (response.baselines().empty() || response.baselines(0).orders() == 0) return "";
  Table table({{"workers that wait", Table::Align::kLeft},
               {"orders"},
               {"different"},
               {"efficiency"},
               {"at worst"},
               {"straggler"},
               {"step p50"},
               {"p95"}});
  for (const v1::OrderBaseline& baseline : response.baselines()) {
    const v1::StepTime& step = baseline.synchronous_step_time();
    table.AddRow({BaselineNameOf(baseline.transfer_order()), absl::StrCat(baseline.orders()),
                  absl::StrCat(baseline.unique_orders()),
                  PercentText(baseline.scheduling_efficiency()),
                  PercentText(baseline.least_scheduling_efficiency()),
                  PercentText(baseline.straggler_effect()), DurationText(step.p50()),
                  DurationText(step.p95())});
  }
  const std::string efficiency = PercentText(chosen.scheduling_efficiency());
  table.AddRow({v1::OrderMethod_Name(chosen.method()), "1", "1", efficiency, efficiency,
                PercentText(chosen.straggler_effect()),
                DurationText(chosen.synchronous_step_time().p50()),
                DurationText(chosen.synchronous_step_time().p95())});
  return absl::StrCat("\n", table.Text());
}

std::string UnmeasuredText(const v1::OptimizeOrderResponse& response) {
  if (response.transfers_without_measured_time() == 0) return "";
  constexpr size_t kShown = 5;
  std::string text =
      absl::StrCat("warning: no recorded step shows ", response.transfers_without_measured_time(),
                   " of the transfers to have taken any time");
  const size_t shown = std::min(kShown, static_cast<size_t>(response.unmeasured_transfers_size()));
  for (size_t i = 0; i < shown; ++i)
    absl::StrAppend(&text, i == 0 ? ": " : ", ",
                    response.unmeasured_transfers(static_cast<int>(i)));
  if (shown > 0 && static_cast<size_t>(response.transfers_without_measured_time()) > shown)
    absl::StrAppend(&text, ", ... (--output json)");
  return text + "\n";
}

std::string TransfersText(const v1::TransferOrderResult& order, size_t transfers_max) {
  const size_t shown = std::min(transfers_max, static_cast<size_t>(order.transfers_size()));
  if (shown == 0) return "\nNothing to enforce.\n";
  const bool several =
      std::any_of(order.transfers().begin(), order.transfers().end(),
                  [](const v1::RankedTransfer& t) { return t.parameter_server() > 0; });
  std::string text = absl::StrCat("\n", v1::OrderMethod_Name(order.method()), ", first to last:\n");
  std::vector<Table::Column> columns{{"rank"}, {"size"}, {"transfer", Table::Align::kLeft}};
  if (several) columns.insert(columns.begin() + 1, {{"server"}, {"rank there"}});
  Table table(columns);
  for (size_t i = 0; i < shown; ++i) {
    const v1::RankedTransfer& transfer = order.transfers(static_cast<int>(i));
    std::vector<std::string> row{absl::StrCat(transfer.rank()), BytesText(transfer.size_bytes()),
                                 transfer.name()};
    if (several)
      row.insert(row.begin() + 1,
                 {absl::StrCat(transfer.parameter_server()), absl::StrCat(transfer.server_rank())});
    table.AddRow(row);
  }
  absl::StrAppend(&text, table.Text());
  if (shown < static_cast<size_t>(order.transfers_size()))
    absl::StrAppend(&text, "and ", static_cast<size_t>(order.transfers_size()) - shown,
                    " more (--transfers, or --output json)\n");
  return text;
}

}  // namespace

std::string OrderText(const v1::OptimizeOrderResponse& response, size_t transfers_max) {
  std::string text = MethodsText(response) + BoundsText(response) +
                     CloseCallText(response.probability_best(), response.expected_loss()) +
                     UnmeasuredText(response) + AssumptionsText(response.assumptions());
  text += WarningsText(response.warnings());
  const v1::TransferOrderResult* const chosen = ChosenOrder(response);
  if (chosen == nullptr) return text;
  text += BaselinesText(response, *chosen);
  text += ConsistencyText(response, *chosen);
  if (transfers_max > 0) text += TransfersText(*chosen, transfers_max);
  return text;
}

std::unique_ptr<Question> MakeOrderQuestion() { return std::make_unique<OrderQuestion>(); }

}  // namespace stepcast::client
