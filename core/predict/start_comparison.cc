#include "core/predict/start_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/message_text.h"
#include "core/predict/certainty.h"

namespace stepcast {

namespace {

constexpr int32_t kOtherReplications = 3;
// Replications at each length, where runs are made anew, longer, until they agree.
constexpr int32_t kOtherReplicationsOfALength = 1;
// A smaller difference between starts, as a share of the throughput, is not worth a warning.
constexpr double kDifferenceThatMatters = 0.01;

// The most that may be left of a difference between starts, as a share of the throughput, and of
// the difference that there was.
constexpr double kLeftOfTheWhole = 0.02;
constexpr double kLeftOfTheDifference = 0.5;

// `X examples/s in 15 of 20 runs that start at random times and 0 of 3 that start together, Y in 5
// and 3`.
std::string RegimesText(const std::vector<Regime>& regimes, const Starts& starts) {
  const Regime& fast = regimes.front();
  const Regime& slow = regimes.back();
  const char* own_start = starts.at_random ? "that start at random times" : "that start as asked";
  const char* other_start = starts.at_random ? "that start together" : "that start at random times";
  std::string text =
      absl::StrFormat("%s examples/s in %d of %d runs %s", NumberText(fast.examples_per_second),
                      fast.replications, starts.own.runs.size(), own_start);
  if (!starts.other.runs.empty()) {
    absl::StrAppendFormat(&text, " and %d of %d %s", fast.other_start_replications,
                          starts.other.runs.size(), other_start);
  }
  absl::StrAppendFormat(&text, ", %s in %d", NumberText(slow.examples_per_second),
                        slow.replications);
  if (!starts.other.runs.empty())
    absl::StrAppendFormat(&text, " and %d", slow.other_start_replications);
  return text;
}

}  // namespace

bool StartsAtRandom(const Scenario& scenario, const SimulationOptions& options) {
  return options.start == Start::kStaggered && scenario.start_offsets_ns.empty();
}

Scenario WithOtherStart(Scenario scenario) {
  scenario.start_offsets_ns.clear();
  return scenario;
}

SimulationOptions WithOtherStart(const Scenario& scenario, SimulationOptions options) {
  options.start = StartsAtRandom(scenario, options) ? Start::kSimultaneous : Start::kStaggered;
  options.replications =
      std::min(options.replications,
               options.automatic_steps ? kOtherReplicationsOfALength : kOtherReplications);
  options.automatic_replications = false;
  options.relative_precision = 0;
  return options;
}

bool ForgotItsStart(double at_random, double early, double late) {
  return std::abs(at_random - late) <=
         std::max(kLeftOfTheWhole * at_random, kLeftOfTheDifference * std::abs(at_random - early));
}

bool Disagree(const RunsOfAStart& own, const RunsOfAStart& other) {
  if (own.runs.empty() || other.runs.empty()) return false;
  const double matters = kDifferenceThatMatters * own.mean.mean;
  // A start without chance has no interval: other runs, however they scatter, say another
  // throughput where all lie to one side of it.
  if (own.mean.half_width == 0 && other.runs.size() > 1) {
    const auto [least, most] = std::minmax_element(other.runs.begin(), other.runs.end());
    return *least > own.mean.mean + matters || *most < own.mean.mean - matters;
  }
  const double difference = std::abs(own.mean.mean - other.mean.mean);
  // One run of the other start has no interval: it may fall wherever one further run of the own
  // start may.
  const bool is_alone = other.runs.size() == 1 && own.runs.size() > 1;
  const double explained =
      is_alone ? own.mean.half_width * std::sqrt(static_cast<double>(own.runs.size()) + 1)
               : std::hypot(own.mean.half_width, other.mean.half_width);
  return difference > std::max(explained, matters);
}

std::vector<Regime> RegimesOf(const Starts& starts, double batch_size) {
  std::vector<double> all = starts.own.runs;
  all.insert(all.end(), starts.other.runs.begin(), starts.other.runs.end());
  double split = SplitInTwo(all);
  if (split == std::numeric_limits<double>::infinity()) {
    if (!Disagree(starts.own, starts.other)) return {};
    // Each run is of the start whose mean it is nearer to.
    split = (starts.own.mean.mean + starts.other.mean.mean) / 2;
  }
  Regime fast;
  Regime slow;
  for (const auto& [runs, replications] :
       {std::pair(&starts.own.runs, &Regime::replications),
        std::pair(&starts.other.runs, &Regime::other_start_replications)}) {
    for (const double run : *runs) {
      Regime& regime = run >= split ? fast : slow;
      regime.examples_per_second += run * batch_size;
      ++(regime.*replications);
    }
  }
  for (Regime* regime : {&fast, &slow})
    regime->examples_per_second /= regime->replications + regime->other_start_replications;
  return {fast, slow};
}

void JudgeStarts(const Starts& starts, double batch_size, Prediction& prediction) {
  prediction.regimes = RegimesOf(starts, batch_size);
  if (prediction.regimes.empty()) return;
  // No width of the interval is left to explain.
  std::erase_if(prediction.warnings, [](const Warning& warning) {
    return warning.reason == Warning::Reason::kNothingRandom ||
           warning.reason == Warning::Reason::kOneReplication;
  });
  prediction.warnings.push_back(
      {.reason = Warning::Reason::kTwoRegimes,
       .message = absl::StrCat("two regimes: ", RegimesText(prediction.regimes, starts),
                               "; a real cluster may do either")});
  prediction.steady_state = false;
}

double ExpectedExamplesPerSecond(const Prediction& prediction) {
  if (prediction.regimes.empty() || prediction.regimes.front().replications > 0)
    return prediction.examples_per_second;
  double sum = 0;
  int32_t runs = 0;
  for (const Regime& regime : prediction.regimes) {
    sum += regime.examples_per_second * (regime.replications + regime.other_start_replications);
    runs += regime.replications + regime.other_start_replications;
  }
  return sum / runs;
}

}  // namespace stepcast
