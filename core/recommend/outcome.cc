#include "core/recommend/outcome.h"

#include <algorithm>

namespace stepcast {

namespace {

// Smaller differences, as a share, read as equal numbers.
constexpr double kReadsAsEqual = 0.0005;

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
    if (missed_by > 0) outcome.broken.push_back({.kind = kind, .missed_by = missed_by});
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

}  // namespace stepcast
