#include "core/compare/coarse_tensors.h"

#include <memory>

#include "core/base/time.h"
#include "core/compare/recorded_run.h"
#include "core/predict/replications.h"

namespace stepcast {

namespace {

Scenario CoarseScenario(Scenario scenario, int32_t workers) {
  // With several servers the worker's own link is crossed, too: it keeps its bandwidth.
  if (scenario.servers().servers > 1) {
    scenario.worker_groups = {{.count = 1,
                               .compute_speed_factor = 1,
                               .bandwidth_bytes_per_second = scenario.bandwidth_bytes_per_second}};
  }
  scenario.bandwidth_bytes_per_second /= workers;
  scenario.servers().parsing_overhead = {};
  scenario.servers().multiplexing = WholeStream{};
  scenario.servers().link_sharing = EqualShares{};
  return scenario;
}

}  // namespace

absl::StatusOr<CoarseTensorsAnswer> PredictByCoarseTensors(const Profile& profile,
                                                           const Scenario& scenario,
                                                           int32_t workers, StopCheck stop) {
  const Scenario coarse = CoarseScenario(scenario, workers);
  const absl::StatusOr<std::shared_ptr<const RankedGraph>> ranked =
      RankedGraph::Make(profile, coarse, stop);
  if (!ranked.ok()) return ranked.status();
  const absl::StatusOr<RecordedRun> run =
      RunRecordedSteps(profile, coarse, **ranked, nullptr, stop);
  if (!run.ok()) return run.status();
  return CoarseTensorsAnswer{
      .steps_per_second = workers * ((*ranked)->program->step_count() / ToSeconds(run->length)),
      .simulation = run->simulation};
}

}  // namespace stepcast
