#include "core/recommend/recommendation_reason.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "core/base/message_text.h"

namespace stepcast {

std::string CountText(int32_t count, std::string_view noun) {
  return absl::StrCat(count, " ", absl::string_view(noun.data(), noun.size()),
                      count == 1 ? "" : "s");
}

std::string TimeText(double seconds) {
  if (!(seconds <= kLongestTrainingSeconds)) return "more than 3,000 years";
  for (const auto& [unit, name] :
       {std::pair(86400.0, "d"), std::pair(3600.0, "h"), std::pair(60.0, "min")}) {
    if (seconds >= 2 * unit) return absl::StrFormat("%.3g %s", seconds / unit, name);
  }
  return absl::StrFormat("%.3g s", seconds);
}

namespace {

// Smaller changes would read as equal numbers.
constexpr double kChangeWorthSaying = 0.0005;
// But of many workers one is a smaller share than that: then changes count by a twentieth of it.
constexpr double kShareWorthSaying = 0.05;

double WorthSaying(int32_t from_workers, int32_t to_workers) {
  if (from_workers == to_workers) return kChangeWorthSaying;  // of servers
  return std::min(kChangeWorthSaying,
                  kShareWorthSaying * std::abs(to_workers - from_workers) / from_workers);
}

bool ServersVary(const RecommendationQuery& query) { return query.server_choices.size() > 1; }

std::string ChoiceText(const RecommendationQuery& query, const Choice& choice) {
  const std::string workers = CountText(choice.workers, "worker");
  return ServersVary(query)
             ? absl::StrCat(workers, " and ", CountText(choice.parameter_servers, "server"))
             : workers;
}

// The list, as far as a reader takes it in.
std::string ListText(const std::vector<int32_t>& counts) {
  constexpr size_t kMostNamed = 8;
  if (counts.size() > kMostNamed)
    return absl::StrCat(counts.size(), " numbers from ", counts.front(), " to ", counts.back());
  const std::vector<int32_t> but_last(counts.begin(), counts.end() - 1);
  return absl::StrCat(absl::StrJoin(but_last, ", "), " and ", counts.back());
}

// The way in which so many numbers were looked at; empty where each was a candidate from the start.
std::string StridesText(const RecommendationQuery& query) {
  const int32_t stride = query.LargestStride();
  if (stride == 1) return "";
  const int32_t begin = query.StridesBegin();
  return absl::StrCat(" (", query.min_workers < begin ? absl::StrCat("all to ", begin, ", ") : "",
                      "in strides of up to ", stride, ", then all around the best)");
}

// The choices that were compared.
std::string Range(const RecommendationQuery& query) {
  std::string text =
      query.min_workers == query.max_workers
          ? absl::StrCat(query.min_workers, ", the only number asked about")
      : query.worker_counts.empty()
          ? absl::StrCat(query.min_workers, " to ", query.max_workers, StridesText(query))
          : ListText(query.worker_counts);
  if (ServersVary(query))
    absl::StrAppend(&text, " workers and 1 to ", query.server_choices.back().server_count(),
                    " servers");
  return text;
}

std::string Money(const RecommendationQuery& query, double amount) {
  const std::string& code = query.prices->currency_code;
  return absl::StrCat(NumberText(amount), code.empty() ? "" : " ", code);
}

std::vector<std::string> ConstraintTexts(const RecommendationQuery& query) {
  std::vector<std::string> texts;
  if (query.deadline_seconds.has_value())
    texts.push_back("the deadline of " + TimeText(*query.deadline_seconds));
  if (query.budget.has_value()) texts.push_back("the budget of " + Money(query, *query.budget));
  if (query.min_scaling_efficiency > 0)
    texts.push_back(absl::StrFormat("a scaling efficiency of %g", query.min_scaling_efficiency));
  return texts;
}

std::string ObjectiveText(const RecommendationQuery& query) {
  // The time of a change is part of the work that is left.
  const bool counts_change = query.current.has_value() && query.examples.has_value();
  const char* const counted = counts_change ? ", what a change takes counted," : "";
  switch (query.objective) {
    case Objective::kMaxThroughput:
      return absl::StrCat("the highest throughput", counted);
    case Objective::kMinTime:
      return "the least time";
    case Objective::kMinCost:
      return query.examples.has_value() ? "the least cost" : "the least cost per example";
    default:
      return absl::StrCat(ServersVary(query) ? "the most throughput times throughput per machine"
                                             : "the most throughput times efficiency",
                          counted);
  }
}

const TriedChoice* Find(const ReasonFacts& facts, const Choice& choice) {
  const auto found = std::find_if(facts.tried.begin(), facts.tried.end(),
                                  [&](const TriedChoice& tried) { return tried.choice == choice; });
  return found == facts.tried.end() ? nullptr : &*found;
}

// The share by which throughput changed from one tried choice to another, in words; 0 where the
// intervals do not tell them apart.
std::string ChangeText(const TriedChoice& from, const TriedChoice& to) {
  const double before = ExpectedExamplesPerSecond(from.prediction);
  const double change = ExpectedExamplesPerSecond(to.prediction) - before;
  const auto half_width = [](const Prediction& prediction) {
    return (prediction.simulation_interval.upper - prediction.simulation_interval.lower) / 2;
  };
  const double explained = std::hypot(half_width(from.prediction), half_width(to.prediction));
  const double worth = WorthSaying(from.choice.workers, to.choice.workers);
  if (std::abs(change) <= std::max(explained, worth * before))
    return "throughput was no longer rising there";
  const double percent = 100 * std::abs(change) / before;
  return absl::StrCat(
      "throughput was still ", change > 0 ? "rising" : "falling", ", by ",
      percent < 1000 ? absl::StrFormat("%.3g", percent) : absl::StrFormat("%.0f", percent), " %");
}

// `that divides the global batch of 96 examples and fills nodes of 8`, where not every number does.
std::string OfCandidates(const RecommendationQuery& query, int32_t number) {
  std::vector<std::string> rules;
  const int32_t per_node = query.server_choices.front().workers_per_node();
  if (query.shared.has_value()) rules.push_back("divides " + query.shared->Name());
  if (per_node > 1)
    rules.push_back(
        absl::StrCat("fills nodes of ", per_node, number < per_node ? " or fits into one" : ""));
  return rules.empty() ? "" : " that " + absl::StrJoin(rules, " and ");
}

// The largest number asked about, where it is chosen, or is as good and so near that only the fewer
// workers decided; else 0.
int32_t LargestAtHand(const ReasonFacts& facts) {
  const Choice& chosen = facts.chosen.choice;
  const int32_t largest = facts.query.CandidateBelow(facts.query.max_workers + 1);
  if (chosen.workers == largest) return largest;
  const bool is_tied = std::find(facts.ties.begin(), facts.ties.end(),
                                 Choice{largest, chosen.parameter_servers}) != facts.ties.end();
  return is_tied && largest - chosen.workers <= largest / 1000 ? largest : 0;
}

bool Keeps(const TriedChoice& tried) { return tried.outcome.broken.empty(); }

// The text on a choice at the edge of what was asked about; empty elsewhere.
std::string EdgeText(const ReasonFacts& facts) {
  const RecommendationQuery& query = facts.query;
  const Choice& chosen = facts.chosen.choice;
  const int32_t largest = LargestAtHand(facts);
  std::string text;
  const ChoiceEdge edge = WorkersEdge(facts);
  if (edge == ChoiceEdge::kOnlyFeasible)
    absl::StrAppend(&text, "; of the ", facts.tried.size(), " tried no other keeps ",
                    absl::StrJoin(ConstraintTexts(query), " and "));
  if (edge == ChoiceEdge::kSmallestAsked) {
    absl::StrAppend(&text, "; ", chosen.workers, " is the smallest number asked about",
                    OfCandidates(query, chosen.workers), ", and fewer may be as good or better");
  } else if (edge == ChoiceEdge::kLargestAsked ||
             (edge == ChoiceEdge::kOnlyFeasible && largest > 0)) {
    const int32_t below = query.CandidateBelow(largest);
    absl::StrAppend(&text, "; ", largest, " is the largest number asked about",
                    OfCandidates(query, largest));
    const TriedChoice* const before = Find(facts, {below, chosen.parameter_servers});
    const TriedChoice* const last = Find(facts, {largest, chosen.parameter_servers});
    if (before != nullptr && last != nullptr)
      absl::StrAppend(&text, ", and ", ChangeText(*before, *last), " from ", below);
  }
  if (ServersEdge(facts) == ChoiceEdge::kLargestAsked) {
    const int32_t below = chosen.parameter_servers - 1;
    absl::StrAppend(&text, "; ", CountText(chosen.parameter_servers, "server"),
                    " are the most asked about");
    if (const TriedChoice* const before = Find(facts, {chosen.workers, below}))
      absl::StrAppend(&text, ", and ", ChangeText(*before, facts.chosen), " from ", below);
  }
  return text;
}

// The objective and what it compares; without a choice, that there was none.
std::string ObjectiveAmongChoices(const ReasonFacts& facts) {
  if (facts.query.choices() == 1) {
    const std::vector<std::string> constraints = ConstraintTexts(facts.query);
    return absl::StrCat(
        "the only number asked about", OfCandidates(facts.query, facts.chosen.choice.workers),
        constraints.empty() ? "" : ", which keeps ", absl::StrJoin(constraints, " and "));
  }
  std::string among = Range(facts.query);
  const std::vector<std::string> constraints = ConstraintTexts(facts.query);
  if (!constraints.empty())
    absl::StrAppend(&among, " that keep ", absl::StrJoin(constraints, " and "));
  std::string text = absl::StrCat(ObjectiveText(facts.query), " of ", among);
  if (facts.ties.empty()) return text;
  std::vector<std::string> others;
  for (const Choice& tie : facts.ties)
    others.push_back(ServersVary(facts.query) ? ChoiceText(facts.query, tie)
                                              : absl::StrCat(tie.workers));
  constexpr size_t kMostNamed = 4;
  const size_t unnamed = others.size() > kMostNamed ? others.size() - kMostNamed : 0;
  others.resize(others.size() - unnamed);
  absl::StrAppend(&text, " with no more than the intervals between it and ",
                  absl::StrJoin(others, ", "));
  if (unnamed > 0) absl::StrAppend(&text, " and ", unnamed, " more");
  return text;
}

std::string ResourceName(const ResourceUtilization& used) {
  switch (used.resource) {
    case Resource::kDownlink:
      return absl::StrCat("the downlink of server ", used.index);
    case Resource::kUplink:
      return absl::StrCat("the uplink to server ", used.index);
    case Resource::kParameterServer:
      return absl::StrCat("the computation on server ", used.index);
    case Resource::kCollective:
      return "the links, in collectives";
    default:
      return "the workers' own computation";
  }
}

std::string LimitOfPipeline(const PipelineReport& report) {
  static constexpr std::array<const char*, 6> kLimits = {
      "the devices' own computation (twice as fast",
      "the bubble (gone",
      "stages and devices that are not alike (as the mean",
      "transfers between stages (free",
      "the reductions of gradients (free",
      "the end of the step (gone"};
  return absl::StrFormat("it is limited by %s: %+.3g %%)",
                         kLimits[static_cast<size_t>(report.bottleneck)],
                         100 * report.bottleneck_gain);
}

// The limit by what its change would bring; the most used resource besides, where that is another.
std::string Limit(const Prediction& prediction) {
  if (prediction.pipeline.has_value()) return LimitOfPipeline(*prediction.pipeline);
  const ResourceUtilization& used = prediction.most_used;
  std::string most_used = absl::StrFormat("the most used resource is %s, %.0f %% busy",
                                          ResourceName(used), 100 * used.fraction);
  if (!prediction.bottleneck_gain.has_value()) return most_used;
  const ResourceGain& gain = *prediction.bottleneck_gain;
  std::string limit = ResourceName(prediction.bottleneck);
  std::string change = "twice as fast";
  bool is_used =
      used.resource == prediction.bottleneck.resource && used.index == prediction.bottleneck.index;
  switch (gain.change) {
    case WhatIf::kNoStragglers:
      limit = "the slowest worker";
      change = "as fast as the best";
      is_used = false;
      break;
    case WhatIf::kNoHostWait:
      limit = "the hosts, for which the workers' devices wait";
      change = "without that";
      is_used = false;
      break;
    case WhatIf::kNoLatency:
      limit = "the latency of the links";
      change = "without it";
      is_used = false;
      break;
    case WhatIf::kLinksTwiceAsFast:
      if (!prediction.collectives.has_value()) {
        change = "links twice as fast";
        break;
      }
      limit = prediction.collectives->links == LinkPlace::kInsideNodes ? "the links inside the node"
                                                                       : "the links between nodes";
      break;
    default:
      break;
  }
  std::string text =
      absl::StrFormat("it is limited by %s (%s: %+.3g %%)", limit, change, 100 * gain.gain);
  if (is_used) return absl::StrCat(text, absl::StrFormat(", %.0f %% busy", 100 * used.fraction));
  return absl::StrCat(text, "; ", most_used);
}

// The devices of a worker and of all; empty where a worker is one.
std::string DevicesText(const Prediction& prediction) {
  const int64_t devices = std::max<int64_t>(prediction.devices, 1);
  const int64_t of_worker = devices / prediction.scenario.workers;
  if (of_worker <= 1) return "";
  if (devices == of_worker) return absl::StrCat(", a replica of ", of_worker, " devices");
  return absl::StrCat(", replicas of ", of_worker, " devices (", devices, " in all)");
}

// The share of each worker of a batch that they divide; empty where they divide none.
std::string ShareText(const ReasonFacts& facts) {
  if (!facts.query.shared.has_value()) return "";
  const int64_t examples = facts.query.shared->examples();
  return absl::StrCat(", with ", examples / facts.chosen.choice.workers, " of the ", examples,
                      " examples of a step each");
}

// Compared with one worker; empty for one.
std::string Speedup(const Prediction& prediction) {
  if (prediction.scenario.workers == 1) return "";
  return absl::StrFormat(", %.3g times one worker's at %.0f %% efficiency", prediction.speedup,
                         100 * prediction.scaling_efficiency);
}

// The time and the cost of the remaining examples; empty where they are not known.
std::string Remaining(const ReasonFacts& facts) {
  const Outcome& outcome = facts.chosen.outcome;
  if (!outcome.duration_seconds.has_value()) return "";
  std::string text = "; the remaining examples take " + TimeText(*outcome.duration_seconds);
  if (*outcome.duration_seconds > kLongestTrainingSeconds) return text;
  if (outcome.cost.has_value()) text += " and cost " + Money(facts.query, *outcome.cost);
  if (facts.query.failures.has_value()) text += ", what failures take included";
  return text;
}

// The effect on a job that is running; empty where there is none.
std::string Change(const ReasonFacts& facts) {
  if (!facts.query.current.has_value()) return "";
  if (!facts.query.examples.has_value())
    return "; whether a change of the running job pays cannot be weighed without the remaining "
           "examples";
  const CurrentAllocation& current = *facts.query.current;
  const Choice now{current.workers, current.parameter_servers.value_or(1)};
  const std::string costs = TimeText(current.rescale_seconds);
  if (facts.chosen.choice == now)
    return absl::StrCat("; the running job stays as it is, for no change is worth the ", costs,
                        " that it takes");
  const TriedChoice* const stay = Find(facts, now);
  std::string text = absl::StrCat("; the change from ", ChoiceText(facts.query, now), " takes ",
                                  costs, " of that");
  if (stay != nullptr)
    absl::StrAppend(&text, ", and without it the rest would take ",
                    TimeText(*stay->outcome.duration_seconds));
  return text;
}

// The change by one worker more; empty where that was not tried.
std::string NextStep(const ReasonFacts& facts) {
  const Choice& chosen = facts.chosen.choice;
  const int32_t above = facts.query.CandidateAbove(chosen.workers);
  const TriedChoice* const next = Find(facts, {above, chosen.parameter_servers});
  if (next == nullptr) return "";
  const int32_t more = above - chosen.workers;
  const std::string count = more == 1 ? "one" : absl::StrCat(more);
  const double change = ExpectedExamplesPerSecond(next->prediction) /
                            ExpectedExamplesPerSecond(facts.chosen.prediction) -
                        1;
  if (std::abs(change) < WorthSaying(chosen.workers, above))
    return absl::StrCat("; ", count, " more would change nothing");
  return absl::StrFormat("; %s more would %s %.3g %%", count, change > 0 ? "add" : "lose",
                         100 * std::abs(change));
}

bool LessThroughput(const TriedChoice& a, const TriedChoice& b) {
  return a.prediction.examples_per_second < b.prediction.examples_per_second;
}

// With as many servers as were chosen. Empty where throughput does not fall.
std::string Fall(const ReasonFacts& facts) {
  std::vector<TriedChoice> curve;
  for (const TriedChoice& tried : facts.tried) {
    if (tried.choice.parameter_servers == facts.chosen.choice.parameter_servers)
      curve.push_back(tried);
  }
  const auto peak = std::max_element(curve.begin(), curve.end(), LessThroughput);
  const Prediction& least = std::min_element(peak, curve.end(), LessThroughput)->prediction;
  const Prediction& most = peak->prediction;
  const bool apart = least.simulation_interval.upper < most.simulation_interval.lower;
  if (!apart || least.examples_per_second > (1 - kChangeWorthSaying) * most.examples_per_second)
    return "";
  return absl::StrFormat("; with more than %s throughput falls, to %s examples/s at %d",
                         CountText(most.scenario.workers, "worker"),
                         NumberText(least.examples_per_second), least.scenario.workers);
}

// The text on runs of the chosen one that do not agree on one throughput; empty where they do.
std::string RegimesText(const Prediction& prediction) {
  if (prediction.regimes.empty()) return "";
  const auto runs = [](const Regime& regime) {
    return regime.replications + regime.other_start_replications;
  };
  const Regime& fast = prediction.regimes.front();
  const Regime& slow = prediction.regimes.back();
  const int32_t all = runs(fast) + runs(slow);
  return absl::StrFormat(
      "; it has two regimes, %s examples/s in %d of %d runs and %s in %d, by how its workers "
      "happen to start",
      NumberText(fast.examples_per_second), runs(fast), all, NumberText(slow.examples_per_second),
      runs(slow));
}

std::string CutShort(const ReasonFacts& facts) {
  if (!facts.cut_short) return "";
  return absl::StrCat("; the time budget ended the search after ", facts.tried.size(), " of ",
                      facts.query.choices(), " choices");
}

// The value that the choice has of a constraint, and how much that is too much or too little.
std::string MissText(const ReasonFacts& facts, ConstraintKind kind) {
  const RecommendationQuery& query = facts.query;
  const Outcome& outcome = facts.chosen.outcome;
  switch (kind) {
    case ConstraintKind::kDeadline:
      return absl::StrCat("takes ", TimeText(*outcome.duration_seconds), ", which is ",
                          TimeText(*outcome.duration_seconds - *query.deadline_seconds),
                          " too long");
    case ConstraintKind::kBudget:
      if (!std::isfinite(*outcome.cost)) return "takes " + TimeText(*outcome.duration_seconds);
      return absl::StrCat("costs ", Money(query, *outcome.cost), ", which is ",
                          Money(query, *outcome.cost - *query.budget), " too much");
    default: {
      const double efficiency = facts.chosen.prediction.scaling_efficiency;
      return absl::StrFormat("has %.4g, which is %.4g too little", efficiency,
                             query.min_scaling_efficiency - efficiency);
    }
  }
}

}  // namespace

ChoiceEdge WorkersEdge(const ReasonFacts& facts) {
  const RecommendationQuery& query = facts.query;
  const int32_t workers = facts.chosen.choice.workers;
  const bool is_first = query.CandidateBelow(workers) == 0;
  const bool is_last = LargestAtHand(facts) > 0;
  if (query.CandidateAbove(workers) == 0 && is_first) return ChoiceEdge::kOnlyChoice;
  if (facts.tried.size() > 1 && !ConstraintTexts(query).empty() &&
      std::count_if(facts.tried.begin(), facts.tried.end(), Keeps) == 1)
    return ChoiceEdge::kOnlyFeasible;
  if (is_last) return ChoiceEdge::kLargestAsked;
  return is_first && workers > 1 ? ChoiceEdge::kSmallestAsked : ChoiceEdge::kNone;
}

ChoiceEdge ServersEdge(const ReasonFacts& facts) {
  const std::vector<Scenario>& choices = facts.query.server_choices;
  return ServersVary(facts.query) &&
                 facts.chosen.choice.parameter_servers == choices.back().server_count()
             ? ChoiceEdge::kLargestAsked
             : ChoiceEdge::kNone;
}

std::string ReasonFor(const ReasonFacts& facts) {
  const Prediction& prediction = facts.chosen.prediction;
  const std::string aside = DevicesText(prediction) + ShareText(facts);
  return absl::StrFormat(
      "%s%s%s %s %s examples/s%s, %s%s%s%s%s; %s%s%s%s.",
      ChoiceText(facts.query, facts.chosen.choice), aside, aside.empty() ? "" : ",",
      facts.chosen.choice.workers == 1 && !ServersVary(facts.query) ? "gives" : "give",
      NumberText(prediction.examples_per_second), Speedup(prediction), ObjectiveAmongChoices(facts),
      EdgeText(facts), Remaining(facts), Change(facts), NextStep(facts), Limit(prediction),
      Fall(facts), RegimesText(prediction), CutShort(facts));
}

std::string InfeasibleReasonFor(const ReasonFacts& facts) {
  std::vector<std::string> misses;
  for (const BrokenConstraint& broken : facts.chosen.outcome.broken)
    misses.push_back(MissText(facts, broken.kind));
  return absl::StrCat("No ", ServersVary(facts.query) ? "choice of " : "number of workers of ",
                      Range(facts.query), " keeps ",
                      absl::StrJoin(ConstraintTexts(facts.query), " and "), ": the nearest, ",
                      ChoiceText(facts.query, facts.chosen.choice), ", ",
                      absl::StrJoin(misses, ", and "), CutShort(facts), ".");
}

}  // namespace stepcast
