#include "client/cli/order_question.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/order_table.h"
#include "client/cli/parsed_option.h"
#include "client/cli/priority_file.h"
#include "client/cli/profile_argument.h"
#include "client/cli/quantity.h"
#include "client/cli/scenario_flags.h"
#include "client/cli/simulation_flags.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

constexpr std::array<std::pair<const char*, OrderMethod>, 7> kOrderMethods{
    {{"tic", OrderMethod::kTic},
     {"tac", OrderMethod::kTac},
     {"search", OrderMethod::kSearch},
     {"reverse", OrderMethod::kReverse},
     {"random", OrderMethod::kRandom},
     {"recorded", OrderMethod::kRecorded},
     {"graph", OrderMethod::kGraph}}};

class OrderQuestion : public Question {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app =
        parent.add_subcommand("order", "In which order the job's tensors should travel");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->required()->type_name("");
    app->add_option("--workers", workers_,
                    "Number of workers to predict each order's throughput for (default 1)")
        ->type_name("N");
    app->add_option_function<std::vector<std::string>>(
           "--method", [this](const auto& names) { AddMethods(names); },
           "What to try; may be repeated (default tic, tac, reverse, recorded, graph)")
        ->type_name("tic|tac|search|reverse|random|recorded|graph")
        ->allow_extra_args(false);
    app->add_flag("--inference", inference_, "Look at the downloads and the forward pass only");
    AddParsedOption(
        *app, "--transfers", "N",
        absl::StrCat("How many transfers of the chosen order the table shows (default ",
                     kDefaultTransfers, ")"),
        [](const std::string& text) { return ParseCount(text); },
        [this](uint64_t count) { transfers_max_ = count; });
    app->add_option("--save-priorities", save_,
                    "Write the chosen order to this file, a line `name<TAB>priority` each, as "
                    "TicTac enforces it and predict --priorities reads it")
        ->type_name("FILE");
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByService,
                      ScenarioFlags::Offsets::kAllowed);
    simulation_.Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return IsFile(profile_); }

  std::string Activity() const override { return "trying orders"; }

  std::string_view AnswerFlag() const override { return save_.empty() ? "" : "--save-priorities"; }

  absl::StatusOr<JobComputation> Ask(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return source.status();
    scenario_.Explain(session);
    OptimizeOrderRequest request{.source = *std::move(source),
                                 .scenario = scenario_.scenario(),
                                 .options = simulation_.options(),
                                 .methods = methods_};
    request.scenario->workers = workers_;
    request.inference = inference_;
    return request;
  }

  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, profile_, status);
  }

  ExitCode Answer(const Session& session, const JobComputation&,
                  const JobReply& reply) const override {
    const auto& response = std::get<OptimizeOrderResponse>(reply);
    if (!save_.empty() && !Save(response))
      return session.Misused(absl::StrCat("cannot write ", save_));
    return session.Answer(ToJson(response), [&] { return OrderText(response, transfers_max_); });
  }

 private:
  void AddMethods(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const auto* const at = std::find_if(kOrderMethods.begin(), kOrderMethods.end(),
                                          [&](const auto& known) { return name == known.first; });
      if (at == kOrderMethods.end()) {
        throw CLI::ValidationError(
            "--method",
            absl::StrCat("\"", name,
                         "\" is none of tic, tac, search, reverse, random, recorded, graph"));
      }
      methods_.push_back(at->second);
    }
  }

  bool Save(const OptimizeOrderResponse& response) const {
    const auto chosen = std::find_if(
        response.orders.begin(), response.orders.end(),
        [&](const TransferOrderResult& order) { return order.method == response.chosen; });
    std::ofstream file(save_, std::ios::binary | std::ios::trunc);
    if (chosen != response.orders.end()) file << PriorityText(*chosen);
    file.close();
    return !file.fail();
  }

  std::string profile_;
  int32_t workers_ = 1;
  std::vector<OrderMethod> methods_;
  bool inference_ = false;
  size_t transfers_max_ = kDefaultTransfers;
  std::string save_;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

}  // namespace

std::unique_ptr<Question> MakeOrderQuestion() { return std::make_unique<OrderQuestion>(); }

}  // namespace stepcast::client
