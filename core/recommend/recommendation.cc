#include "core/recommend/recommendation.h"

#include "core/predict/distinct_warnings.h"
#include "core/recommend/choice_search.h"
#include "core/recommend/recommendation_reason.h"

namespace stepcast {

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
