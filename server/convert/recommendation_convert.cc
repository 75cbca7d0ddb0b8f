#include "server/convert/recommendation_convert.h"

#include <algorithm>
#include <utility>

#include "server/convert/enum_table.h"
#include "server/convert/prediction_convert.h"
#include "server/convert/profile_source.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::server {

namespace {

MachinePrices PricesOf(const v1::Prices& wire) {
  return {.worker_hour = wire.worker_hour(),
          .parameter_server_hour = wire.parameter_server_hour(),
          .currency_code = wire.currency_code()};
}

CurrentAllocation CurrentOf(const v1::CurrentAllocation& wire) {
  CurrentAllocation current{.workers = wire.workers(), .rescale_seconds = wire.rescale_seconds()};
  if (wire.has_parameter_servers()) current.parameter_servers = wire.parameter_servers();
  return current;
}

void ReadConstraints(const v1::Constraints& wire, RecommendationDraft& draft, FaultList& faults) {
  if (wire.has_min_workers()) draft.min_workers = wire.min_workers();
  if (wire.has_max_workers()) draft.max_workers = wire.max_workers();
  if (wire.has_max_parameter_servers()) draft.max_parameter_servers = wire.max_parameter_servers();
  if (wire.has_deadline())
    draft.deadline_seconds = FromWire(wire.deadline(), "constraints.deadline", faults);
  if (wire.has_examples()) draft.examples = wire.examples();
  if (wire.has_budget()) draft.budget = wire.budget();
  if (wire.has_min_scaling_efficiency())
    draft.min_scaling_efficiency = wire.min_scaling_efficiency();
}

// The longest time that a Duration can hold.
constexpr double kLongestSeconds = 315'576'000'000;

v1::FrontierOutcome OutcomeToWire(const Outcome& outcome) {
  v1::FrontierOutcome wire;
  if (outcome.cost) wire.set_cost(*outcome.cost);
  if (outcome.duration_seconds)
    *wire.mutable_duration() = DurationOf(std::min(*outcome.duration_seconds, kLongestSeconds));
  wire.set_keeps_constraints(outcome.broken.empty());
  for (const BrokenConstraint& broken : outcome.broken) {
    v1::BrokenConstraint& constraint = *wire.add_broken_constraints();
    constraint.set_kind(WireOf(kConstraintKinds, broken.kind));
    constraint.set_missed_by(broken.missed_by);
  }
  wire.set_in_full(outcome.in_full);
  return wire;
}

v1::NearestChoice NearestToWire(const NearestChoice& nearest) {
  v1::NearestChoice wire;
  wire.set_workers(nearest.prediction.scenario.workers);
  wire.set_parameter_servers(nearest.prediction.scenario.servers().servers);
  *wire.mutable_prediction() = ToWire(nearest.prediction);
  *wire.mutable_outcome() = OutcomeToWire(nearest.outcome);
  return wire;
}

}  // namespace

RecommendWorkersCall FromWire(const v1::RecommendWorkersRequest& wire) {
  RecommendWorkersCall call{.source = SourceOf(wire)};
  FaultList faults;
  RecommendationDraft& draft = call.draft;
  draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  draft.options = FromWire(wire.options(), "options", faults);
  draft.objective =
      CoreOf(kObjectives, wire.objective(), "objective", faults).value_or(Objective::kKnee);
  ReadConstraints(wire.constraints(), draft, faults);
  if (wire.has_prices()) draft.prices = PricesOf(wire.prices());
  if (wire.has_current()) draft.current = CurrentOf(wire.current());
  call.faults = std::move(faults).Take();
  return call;
}

v1::RecommendWorkersResponse ToWire(const RecommendWorkersAnswer& answer) {
  v1::RecommendWorkersResponse wire;
  const Recommendation& recommendation = answer.answer;
  wire.set_workers(recommendation.workers);
  wire.set_parameter_servers(recommendation.parameter_servers);
  if (recommendation.prediction) *wire.mutable_prediction() = ToWire(*recommendation.prediction);
  wire.set_reason(recommendation.reason);
  for (const Prediction& prediction : recommendation.frontier)
    *wire.add_frontier() = ToWire(prediction);
  for (const Outcome& outcome : recommendation.outcomes)
    *wire.add_frontier_outcomes() = OutcomeToWire(outcome);
  const v1::FrontierOutcome outcome = OutcomeToWire(recommendation.outcome);
  if (outcome.has_cost()) wire.set_cost(outcome.cost());
  if (outcome.has_duration()) *wire.mutable_duration() = outcome.duration();
  for (const Choice& choice : recommendation.ties) {
    v1::Tie& tie = *wire.add_ties();
    tie.set_workers(choice.workers);
    tie.set_parameter_servers(choice.parameter_servers);
  }
  if (recommendation.nearest) *wire.mutable_nearest() = NearestToWire(*recommendation.nearest);
  wire.set_infeasible_reason(recommendation.infeasible_reason);
  wire.set_currency_code(recommendation.currency_code);
  wire.set_choices(recommendation.choices);
  wire.set_untried_gain_bound(recommendation.untried_gain_bound);
  for (const Warning& warning : recommendation.warnings) *wire.add_warnings() = ToWire(warning);
  *wire.mutable_simulation() = ToWire(recommendation.simulation, answer.context.engine_seconds);
  *wire.mutable_options() = ToWire(answer.context.options);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

}  // namespace stepcast::server
