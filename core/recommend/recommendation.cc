#include "core/recommend/recommendation.h"

#include <algorithm>

#include "core/predict/throughput.h"
#include "core/recommend/choice_search.h"
#include "core/recommend/recommendation_reason.h"

namespace stepcast {

namespace {

// Smaller differences, as a share, read as equal numbers.
constexpr double kReadsAsEqual = 0.0005;
// A miss by less, as a share of a limit, is of the rounding of doubles.
constexpr double kRounding = 1e-9;

}  // namespace

double Outcome::largest_miss() const {
  double largest = 0;
  for (const BrokenConstraint& constraint : broken)
    largest = std::max(largest, constraint.missed_by);
  return largest;
}

bool Score::ClearlyAbove(const Score& other) const {
  if (miss != other.miss) return miss < other.miss;
  return value > (1 + kReadsAsEqual) * other.value;
}

bool Weighing::Moves(const Choice& choice) const {
  return query_.current.has_value() &&
         choice != Choice{query_.current->workers, query_.current->parameter_servers.value_or(1)};
}

double Weighing::EffectivePace(const Choice& choice, double examples_per_second) const {
  if (!query_.examples.has_value() || !Moves(choice)) return examples_per_second;
  const auto examples = static_cast<double>(*query_.examples);
  return examples / (examples / examples_per_second + query_.current->rescale_seconds);
}

double Weighing::MoneyPerSecond(const Choice& choice) const {
  return stepcast::MoneyPerSecond(*query_.prices, query_.server_choices.front(), choice.workers,
                                  choice.parameter_servers, query_.devices_per_worker);
}

Outcome Weighing::OutcomeOf(const Choice& choice, const Pace& pace) const {
  Outcome outcome;
  const auto keep = [&](ConstraintKind kind, double missed_by) {
    if (missed_by > kRounding) outcome.broken.push_back({.kind = kind, .missed_by = missed_by});
  };
  if (query_.examples.has_value()) {
    double seconds =
        static_cast<double>(*query_.examples) / EffectivePace(choice, pace.examples_per_second);
    if (query_.failures.has_value())
      seconds = query_.failures->ExpectedSeconds(seconds, choice.workers);
    outcome.duration_seconds = seconds;
    if (query_.deadline_seconds.has_value())
      keep(ConstraintKind::kDeadline, seconds / *query_.deadline_seconds - 1);
    if (query_.prices.has_value()) outcome.cost = seconds * MoneyPerSecond(choice);
    if (query_.budget.has_value())
      keep(ConstraintKind::kBudget, *outcome.cost / *query_.budget - 1);
  }
  if (query_.min_scaling_efficiency > 0) {
    const double efficiency =
        pace.examples_per_second / pace.one_worker_examples_per_second / choice.workers;
    keep(ConstraintKind::kMinScalingEfficiency, 1 - efficiency / query_.min_scaling_efficiency);
  }
  return outcome;
}

// The loss to failures hangs on how long the work takes.
double Weighing::ObjectivePace(const Choice& choice, double examples_per_second) const {
  const double effective = EffectivePace(choice, examples_per_second);
  const bool of_durations =
      query_.objective == Objective::kMinTime || query_.objective == Objective::kMinCost;
  if (!of_durations || !query_.examples.has_value() || !query_.failures.has_value())
    return effective;
  const auto examples = static_cast<double>(*query_.examples);
  return examples / query_.failures->ExpectedSeconds(examples / effective, choice.workers);
}

Score Weighing::ScoreOf(const Choice& choice, const Pace& pace) const {
  const double effective = ObjectivePace(choice, pace.examples_per_second);
  const bool servers_vary = query_.server_choices.size() > 1;
  Score score{.miss = OutcomeOf(choice, pace).largest_miss(), .value = effective};
  if (query_.objective == Objective::kKnee)
    score.value *= effective / (choice.workers + (servers_vary ? choice.parameter_servers : 0));
  if (query_.objective == Objective::kMinCost) score.value /= MoneyPerSecond(choice);
  return score;
}

namespace {

// The prediction, and what failures make of the remaining examples where both are known.
Prediction WithForecast(Prediction prediction, const RecommendationQuery& query) {
  if (!query.examples.has_value() || !query.failures.has_value()) return prediction;
  prediction.forecast =
      ForecastOf({.examples = *query.examples, .prices = query.prices, .failures = query.failures},
                 prediction.scenario, prediction.examples_per_second, prediction.run_interval.lower,
                 prediction.run_interval.upper, query.devices_per_worker);
  return prediction;
}

}  // namespace

absl::StatusOr<Recommendation> RecommendWorkers(const Profile& profile,
                                                const RecommendationQuery& query, StopCheck stop,
                                                const Executor& executor, const KnownRuns& known) {
  ChoiceSearch search(profile, query, known);
  if (absl::Status status = search.Run(stop, executor); !status.ok()) return status;
  const TriedChoice& chosen = search.Chosen();
  Recommendation recommendation{.choices = static_cast<int32_t>(query.choices()),
                                .simulation = search.Statistics()};
  if (query.prices.has_value()) recommendation.currency_code = query.prices->currency_code;
  const ReasonFacts facts{.query = query,
                          .tried = search.Tried(),
                          .chosen = chosen,
                          .ties = search.Ties(),
                          .cut_short = search.cut_short()};
  for (const TriedChoice& tried : facts.tried) {
    recommendation.frontier.push_back(WithForecast(tried.prediction, query));
    recommendation.outcomes.push_back(tried.outcome);
  }
  recommendation.warnings = WarningsByWorkers(recommendation.frontier);
  if (chosen.score.miss > 0) {
    recommendation.nearest = NearestChoice{.prediction = WithForecast(chosen.prediction, query),
                                           .outcome = chosen.outcome};
    recommendation.infeasible_reason = InfeasibleReasonFor(facts);
    return recommendation;
  }
  recommendation.workers = chosen.choice.workers;
  recommendation.parameter_servers = chosen.choice.parameter_servers;
  recommendation.prediction = WithForecast(chosen.prediction, query);
  recommendation.outcome = chosen.outcome;
  recommendation.ties = facts.ties;
  recommendation.untried_gain_bound = search.UntriedGainBound();
  const Settled settled = search.HowSettled();
  recommendation.probability_best = settled.probability_best;
  recommendation.expected_loss = settled.expected_loss;
  recommendation.workers_edge = WorkersEdge(facts);
  recommendation.servers_edge = ServersEdge(facts);
  recommendation.reason = ReasonFor(facts);
  return recommendation;
}

}  // namespace stepcast
