#include "core/predict/start_comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stepcast {

namespace {

constexpr int32_t kOtherReplications = 3;
// A smaller difference, as a share of the throughput, is not worth a warning.
constexpr double kDifferenceThatMatters = 0.01;

}  // namespace

Scenario WithOtherStart(Scenario scenario) {
  scenario.start_offsets_ns.clear();
  return scenario;
}

SimulationOptions WithOtherStart(SimulationOptions options) {
  options.start = options.start == Start::kStaggered ? Start::kSimultaneous : Start::kStaggered;
  options.replications = std::min(options.replications, kOtherReplications);
  options.relative_precision = 0;
  return options;
}

bool Disagree(const Starts& starts) {
  const double difference = std::abs(starts.own.mean - starts.other.mean);
  const double explained = std::hypot(starts.own.half_width, starts.other.half_width);
  return difference > std::max(explained, kDifferenceThatMatters * starts.own.mean);
}

void JudgeStarts(const Starts& starts, double batch_size, Prediction& prediction) {
  if (!Disagree(starts)) return;
  const char* own = starts.asked == Start::kStaggered ? "start at random times" : "start as asked";
  const char* other = starts.asked == Start::kStaggered ? "start together" : "start at random times";
  std::string warning = absl::StrFormat(
      "the start still shows: workers that %s make %.4g examples/s, workers that %s %.4g; a real cluster may do either, and runs of more "
      "steps_per_worker come closer to each other",
      own, starts.own.mean * batch_size, other, starts.other.mean * batch_size);
  prediction.warning = prediction.steady_state || prediction.warning.empty() ? std::move(warning) : absl::StrCat(prediction.warning, "; ", warning);
  prediction.steady_state = false;
}

}  // namespace stepcast
