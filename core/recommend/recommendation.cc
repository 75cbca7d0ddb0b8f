#include "core/recommend/recommendation.h"

#include "core/predict/distinct_warnings.h"
#include "core/recommend/choice_search.h"
#include "core/recommend/recommendation_reason.h"

namespace stepcast {

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
    recommendation.frontier.push_back(tried.prediction);
    recommendation.outcomes.push_back(tried.outcome);
  }
  recommendation.warnings = WarningsByWorkers(recommendation.frontier);
  if (chosen.score.miss > 0) {
    recommendation.nearest =
        NearestChoice{.prediction = chosen.prediction, .outcome = chosen.outcome};
    recommendation.infeasible_reason = InfeasibleReasonFor(facts);
    return recommendation;
  }
  recommendation.workers = chosen.choice.workers;
  recommendation.parameter_servers = chosen.choice.parameter_servers;
  recommendation.prediction = chosen.prediction;
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
