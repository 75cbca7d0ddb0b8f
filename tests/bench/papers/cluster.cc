#include "tests/bench/papers/cluster.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "core/zoo/model_zoo.h"
#include "tests/bench/papers/valid.h"

namespace stepcast::bench {

namespace {

constexpr double kVariation = 0.1;
constexpr double kSaturated = 0.9;

}  // namespace

Profile GpuProfile(std::string_view model, int32_t batch_size, double bandwidth_bytes_per_second,
                   double flops_per_second) {
  return Valid(BuildZooProfile(
      model, {.batch_size = batch_size,
              .platform = {.bandwidth_bytes_per_second = bandwidth_bytes_per_second},
              .device_flops_per_second = flops_per_second,
              .variation = {.own = kVariation}}));
}

SimulationOptionsDraft OptionsOf(const Length& length) {
  return {.steps_per_worker = length.steps_per_worker,
          .replications = length.replications,
          .start = Start::kStaggered};
}

std::vector<Prediction> Predict(const Profile& profile, const ScenarioDraft& scenario,
                                const std::vector<int32_t>& workers, const Length& length) {
  const ThroughputDraft draft{.scenarios = {},
                              .worker_counts = workers,
                              .scenario = scenario,
                              .options = OptionsOf(length)};
  return Valid(PredictThroughput(profile, Valid(ResolveThroughput(profile, draft)), NeverStop))
      .predictions;
}

StepParts PartsOf(const Profile& profile) {
  StepParts parts;
  for (size_t op = 0; op < profile.operations().size(); ++op) {
    const Operation& operation = profile.operations()[op];
    if (operation.resource == Resource::kDownlink) {
      parts.download_seconds +=
          static_cast<double>(operation.size_bytes) / profile.platform().bandwidth_bytes_per_second;
    } else if (operation.resource == Resource::kWorker) {
      for (const RecordedStep& step : profile.steps())
        parts.computation_seconds +=
            static_cast<double>(step.end_ns[op] - step.start_ns[op]) * 1e-9;
    }
  }
  parts.computation_seconds /= static_cast<double>(profile.steps().size());
  return parts;
}

std::vector<int32_t> CountsTo(int32_t most) {
  std::vector<int32_t> counts;
  for (int32_t count = 1; count <= most; ++count) counts.push_back(count);
  return counts;
}

int32_t SaturatedAt(const std::vector<double>& throughput) {
  const auto enough = [&](double one) { return one >= kSaturated * throughput.back(); };
  return 1 + static_cast<int32_t>(std::find_if(throughput.begin(), throughput.end(), enough) -
                                  throughput.begin());
}

std::string TableRow(const std::vector<std::string>& cells) {
  return absl::StrCat("| ", absl::StrJoin(cells, " | "), " |\n");
}

std::string TableHead(const std::vector<std::string>& cells) {
  std::string rule = "|";
  for (size_t i = 0; i < cells.size(); ++i) rule += "---|";
  return absl::StrCat(TableRow(cells), rule, "\n");
}

}  // namespace stepcast::bench
