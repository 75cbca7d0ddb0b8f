#include "core/compare/coarse_profile.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/time.h"
#include "core/communication/parameter_servers.h"
#include "core/compare/phase_recorder.h"
#include "core/compare/recorded_run.h"
#include "core/engine/program.h"
#include "core/predict/replications.h"

namespace stepcast {

namespace {

CynthiaInputs CynthiaInputsOf(const Program& graph, double bandwidth_bytes_per_second) {
  double computation = 0;
  std::vector<double> bytes(Index(ServerLanes::Of(graph).servers));
  double all_bytes = 0;
  for (OpIndex op = 0; op < graph.size(); ++op) {
    const LaneIndex lane = graph.lane(op);
    if (graph.IsTransfer(op)) {
      const auto size = static_cast<double>(graph.size_bytes(op));
      bytes[Index(graph.lanes()[lane].index)] += size;
      all_bytes += size;
    } else if (lane == ServerLanes::kWorker) {
      for (int32_t step = 0; step < graph.step_count(); ++step)
        computation += ToSeconds(graph.duration(step, op));
    }
  }
  return {.computation_seconds = computation / graph.step_count(),
          .transfer_seconds = all_bytes / 2 / bandwidth_bytes_per_second,
          .busiest_server_share =
              all_bytes > 0 ? *std::max_element(bytes.begin(), bytes.end()) / all_bytes : 1};
}

}  // namespace

absl::StatusOr<CoarseProfile> MeasureCoarseProfile(const Profile& profile, const Scenario& scenario,
                                                   StopCheck stop) {
  const absl::StatusOr<std::shared_ptr<const RankedGraph>> ranked =
      RankedGraph::Make(profile, scenario, stop);
  if (!ranked.ok()) return ranked.status();
  PhaseRecorder recorder(*(*ranked)->program);
  const absl::StatusOr<RecordedRun> run =
      RunRecordedSteps(profile, scenario, **ranked, &recorder, stop);
  if (!run.ok()) return run.status();
  return CoarseProfile{
      .phases = recorder.Mean(),
      .cynthia = CynthiaInputsOf(*(*ranked)->program, scenario.bandwidth_bytes_per_second),
      .simulation = run->simulation};
}

}  // namespace stepcast
