#include "client/cli/recommendation_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/measure_text.h"
#include "client/cli/prediction_table.h"
#include "client/cli/table.h"

namespace stepcast::client {

namespace {

// Workers and servers.
using Choice = std::pair<int32_t, int32_t>;

Choice ChoiceOf(const Prediction& prediction) {
  return {prediction.scenario.workers, prediction.scenario.parameter_servers.value_or(0)};
}

// Which columns there is anything to write in.
struct Columns {
  bool servers = false;
  bool durations = false;
  bool costs = false;
  bool broken = false;
};

Columns ColumnsFor(const RecommendWorkersResponse& response) {
  Columns columns;
  for (const Prediction& prediction : response.frontier) {
    columns.servers = columns.servers || prediction.scenario.parameter_servers !=
                                             response.frontier[0].scenario.parameter_servers;
  }
  for (const FrontierOutcome& outcome : response.frontier_outcomes) {
    columns.durations = columns.durations || outcome.duration.has_value();
    columns.costs = columns.costs || outcome.cost.has_value();
    columns.broken = columns.broken || !outcome.broken_constraints.empty();
  }
  return columns;
}

const char* NameOf(BrokenConstraint::Kind kind) {
  switch (kind) {
    case BrokenConstraint::Kind::kDeadline:
      return "deadline";
    case BrokenConstraint::Kind::kBudget:
      return "budget";
    case BrokenConstraint::Kind::kMinScalingEfficiency:
      return "efficiency";
    default:
      return "a constraint";
  }
}

std::string BrokenText(const FrontierOutcome& outcome) {
  std::string text;
  for (const BrokenConstraint& broken : outcome.broken_constraints) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", NameOf(broken.kind), " by ",
                    PercentText(broken.missed_by));
  }
  return text;
}

std::string MarkOf(const RecommendWorkersResponse& response, const Choice& choice) {
  const Choice best = response.nearest
                          ? Choice{response.nearest->workers, response.nearest->parameter_servers}
                          : Choice{response.workers, response.parameter_servers};
  if (choice == best) return "->";
  const auto is_it = [&](const Tie& tie) {
    return Choice{tie.workers, tie.parameter_servers} == choice;
  };
  return std::any_of(response.ties.begin(), response.ties.end(), is_it) ? "=" : "";
}

Table EmptyTable(const RecommendWorkersResponse& response, const Columns& columns) {
  constexpr auto kLeft = Table::Align::kLeft;
  std::vector<Table::Column> titles{{"", kLeft}, {"workers"}};
  if (columns.servers) titles.push_back({"servers"});
  for (const std::string& title :
       {std::string("examples/s"), IntervalTitle(response.frontier), RunsTitle(response.frontier),
        std::string("speed-up"), std::string("efficiency")}) {
    if (!title.empty()) titles.push_back({title});
  }
  if (columns.durations) titles.push_back({"time"});
  if (columns.costs)
    titles.push_back(
        {response.currency_code.empty() ? "cost" : absl::StrCat("cost, ", response.currency_code)});
  titles.push_back({"step p50"});
  titles.push_back({"bottleneck", kLeft});
  if (columns.broken) titles.push_back({"misses", kLeft});
  return Table(std::move(titles));
}

// Whether it was tried with less than a prediction of it is made with.
bool IsRough(const RecommendWorkersResponse& response, size_t i) {
  return i < response.frontier_outcomes.size() && !response.frontier_outcomes[i].in_full;
}

std::vector<std::string> RowOf(const RecommendWorkersResponse& response, const Columns& columns,
                               size_t i) {
  const Prediction& prediction = response.frontier[i];
  const FrontierOutcome outcome =
      i < response.frontier_outcomes.size() ? response.frontier_outcomes[i] : FrontierOutcome{};
  const Choice choice = ChoiceOf(prediction);
  std::vector<std::string> row{MarkOf(response, choice), absl::StrCat(choice.first)};
  if (columns.servers) row.push_back(absl::StrCat(choice.second));
  row.push_back(
      absl::StrCat(IsRough(response, i) ? "~" : "", NumberText(prediction.examples_per_second)));
  row.push_back(IntervalText(prediction.confidence_interval));
  if (!RunsTitle(response.frontier).empty()) row.push_back(IntervalText(prediction.run_interval));
  row.push_back(NumberText(prediction.speedup));
  row.push_back(PercentText(prediction.scaling_efficiency));
  if (columns.durations) row.push_back(outcome.duration ? DurationText(*outcome.duration) : "");
  if (columns.costs) row.push_back(outcome.cost ? NumberText(*outcome.cost) : "");
  row.push_back(DurationText(prediction.step_time.p50));
  row.push_back(BottleneckText(prediction.bottleneck, prediction.bottleneck_parameter_server));
  if (columns.broken) row.push_back(BrokenText(outcome));
  return row;
}

std::string Legend(const RecommendWorkersResponse& response) {
  std::string text;
  if (!response.ties.empty()) absl::StrAppend(&text, "= is as good within the intervals.\n");
  if (response.nearest) absl::StrAppend(&text, "-> comes nearest to the constraints.\n");
  bool any_rough = false;
  for (size_t i = 0; i < response.frontier.size(); ++i)
    any_rough = any_rough || IsRough(response, i);
  if (any_rough)
    absl::StrAppend(&text,
                    "~ was simulated with fewer replications and one start only, since it is "
                    "clearly worse: predict says more.\n");
  const auto simulated = static_cast<int32_t>(response.frontier.size());
  if (response.choices > simulated) {
    absl::StrAppend(
        &text, simulated, " of ", response.choices,
        " choices were simulated: by the links, the processors or the curve the others cannot win");
    if (!response.nearest && response.untried_gain_bound > 0) {
      absl::StrAppend(&text, " (links and processors alone would leave room for ",
                      PercentText(response.untried_gain_bound), ")");
    }
    absl::StrAppend(&text, ".\n");
  }
  return text;
}

}  // namespace

std::string RecommendationText(const RecommendWorkersResponse& response) {
  const Columns columns = ColumnsFor(response);
  Table table = EmptyTable(response, columns);
  for (size_t i = 0; i < response.frontier.size(); ++i) table.AddRow(RowOf(response, columns, i));
  const std::string first = response.workers > 0
                                ? response.reason
                                : absl::StrCat("No recommendation: ", response.infeasible_reason);
  return absl::StrCat(first, "\n\n", table.Text(), Legend(response),
                      WarningsText(response.frontier));
}

}  // namespace stepcast::client
