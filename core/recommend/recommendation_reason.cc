#include "core/recommend/recommendation_reason.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stepcast {

namespace {

// Smaller changes would read as equal numbers.
constexpr double kChangeWorthSaying = 0.0005;

std::string Workers(int32_t count) { return count == 1 ? "1 worker" : absl::StrCat(count, " workers"); }

// What was compared.
std::string Range(const std::vector<Prediction>& frontier) {
  const int32_t first = frontier.front().scenario.workers;
  const int32_t last = frontier.back().scenario.workers;
  return first == last ? absl::StrCat(first, ", the only number allowed") : absl::StrCat(first, " to ", last);
}

std::string Objectively(const std::vector<Prediction>& frontier, const Prediction& chosen, const Prediction& best, const RecommendationQuery& query) {
  std::string among = Range(frontier);
  if (query.min_scaling_efficiency > 0) absl::StrAppendFormat(&among, " that keep a scaling efficiency of %g", query.min_scaling_efficiency);
  if (query.objective == Objective::kKnee) return absl::StrCat("the most throughput times efficiency of ", among);
  if (&best == &chosen) return absl::StrCat("the highest throughput of ", among);
  return absl::StrFormat("the fewest of %s that reach the highest throughput (%.4g at %s) within its interval", among, best.examples_per_second,
                         Workers(best.scenario.workers));
}

std::string Bottleneck(const ResourceUtilization& used) {
  const std::string busy = absl::StrFormat("%.0f %% busy", 100 * used.fraction);
  switch (used.resource) {
    case Resource::kDownlink:
      return absl::StrCat("the downlink of server ", used.parameter_server, ", ", busy);
    case Resource::kUplink:
      return absl::StrCat("the uplink to server ", used.parameter_server, ", ", busy);
    case Resource::kParameterServer:
      return absl::StrCat("the computation on server ", used.parameter_server, ", ", busy);
    default:
      return absl::StrCat("the workers' own computation, ", busy);
  }
}

// Compared with one worker; empty for one.
std::string Speedup(const Prediction& prediction) {
  if (prediction.scenario.workers == 1) return "";
  return absl::StrFormat(", %.3g times one worker's at %.0f %% efficiency", prediction.speedup, 100 * prediction.scaling_efficiency);
}

// What one worker more would change; empty where that was not tried.
std::string NextStep(const std::vector<Prediction>& frontier, size_t chosen) {
  if (chosen + 1 >= frontier.size()) return "";
  const double change = frontier[chosen + 1].examples_per_second / frontier[chosen].examples_per_second - 1;
  if (std::abs(change) < kChangeWorthSaying) return "; one more would change nothing";
  return absl::StrFormat("; one more would %s %.3g %%", change > 0 ? "add" : "lose", 100 * std::abs(change));
}

bool LessThroughput(const Prediction& a, const Prediction& b) { return a.examples_per_second < b.examples_per_second; }

// Empty where throughput does not fall.
std::string Fall(const std::vector<Prediction>& frontier) {
  const auto peak = std::max_element(frontier.begin(), frontier.end(), LessThroughput);
  const auto least = std::min_element(peak, frontier.end(), LessThroughput);
  const bool apart = least->confidence_interval.upper < peak->confidence_interval.lower;
  if (!apart || least->examples_per_second > (1 - kChangeWorthSaying) * peak->examples_per_second) return "";
  return absl::StrFormat("; with more than %s throughput falls, to %.4g examples/s at %d", Workers(peak->scenario.workers),
                         least->examples_per_second, least->scenario.workers);
}

}  // namespace

std::string ReasonFor(const std::vector<Prediction>& frontier, size_t chosen, const RecommendationQuery& query) {
  const Prediction& prediction = frontier[chosen];
  const Prediction* best = &prediction;  // of those allowed
  for (const Prediction& other : frontier) {
    if (other.scaling_efficiency >= query.min_scaling_efficiency && other.examples_per_second > best->examples_per_second) best = &other;
  }
  return absl::StrFormat("%s %s %.4g examples/s%s, %s%s; the most used resource is %s%s.", Workers(prediction.scenario.workers),
                         prediction.scenario.workers == 1 ? "gives" : "give", prediction.examples_per_second, Speedup(prediction),
                         Objectively(frontier, prediction, *best, query), NextStep(frontier, chosen), Bottleneck(prediction.bottleneck),
                         Fall(frontier));
}

std::string InfeasibleReasonFor(const std::vector<Prediction>& frontier, const RecommendationQuery& query) {
  const auto nearest = std::max_element(frontier.begin(), frontier.end(),
                                        [](const Prediction& a, const Prediction& b) { return a.scaling_efficiency < b.scaling_efficiency; });
  return absl::StrFormat("No number of workers of %s keeps min_scaling_efficiency %g: the nearest, %s, has %.4g, which is %.4g too little.",
                         Range(frontier), query.min_scaling_efficiency, Workers(nearest->scenario.workers), nearest->scaling_efficiency,
                         query.min_scaling_efficiency - nearest->scaling_efficiency);
}

}  // namespace stepcast
