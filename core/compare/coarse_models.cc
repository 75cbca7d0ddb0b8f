#include "core/compare/coarse_models.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/communication/parameter_servers.h"
#include "core/engine/program.h"
#include "core/model/simulation_options.h"

namespace stepcast {

std::vector<double> ClosedNetworkStepsPerSecond(const PhaseSeconds& phases, int32_t max_workers) {
  assert(phases.Sum() > 0);
  const std::array<double, 2> links = {phases.downlink, phases.uplink};
  std::array<double, 2> present = {0,
                                   0};  // mean number of workers on each link, with one worker less
  std::vector<double> steps_per_second;
  for (int32_t workers = 1; workers <= max_workers; ++workers) {
    double step = phases.worker + phases.parameter_server;
    std::array<double, 2> on_link{};
    for (size_t i = 0; i < links.size(); ++i) step += on_link[i] = links[i] * (1 + present[i]);
    const double rate = workers / step;
    for (size_t i = 0; i < links.size(); ++i) present[i] = rate * on_link[i];
    steps_per_second.push_back(rate);
  }
  return steps_per_second;
}

double CynthiaInputs::NetworkUtilization() const {
  return busiest_server_share * 2 * transfer_seconds / (computation_seconds + 2 * transfer_seconds);
}

CynthiaInputs CynthiaInputs::Halved() const {
  CynthiaInputs halved = *this;
  halved.transfer_seconds /= 2;
  return halved;
}

double CynthiaStepsPerSecond(const CynthiaInputs& inputs, int32_t workers) {
  const double slowdown = std::max(1.0, workers * inputs.NetworkUtilization());
  return workers / (inputs.computation_seconds * slowdown + 2 * inputs.transfer_seconds);
}

absl::StatusOr<RecordedRun> RunRecordedSteps(const Profile& profile, const Scenario& scenario,
                                             const RankedGraph& ranked, TraceSink* trace,
                                             StopCheck stop) {
  const SimulationOptions options{.steps_per_worker = ranked.job.program->step_count(),
                                  .warmup_steps = 0,
                                  .replications = 1,
                                  .start = Start::kSimultaneous};
  JobGraph job = ranked.JobOf(scenario);
  job.drawing = StepDrawing::kReplay;
  RunOptions run = RunOptionsOf(profile, scenario, options, 0);
  run.keep_step_ends = true;
  if (trace != nullptr) {
    run.trace = trace;
    run.fastest_path = EnginePath::kPlain;  // the others know no chunks
  }
  const absl::StatusOr<RunResult> result = Simulate(job, run, stop);
  if (!result.ok()) return result.status();
  return RecordedRun{.length = result->step_ends.front().back() - Instant{},
                     .simulation = {.simulated_operations = result->simulated_operations,
                                    .engine_path = NameOf(result->path)}};
}

namespace {

// The four phases of one worker's steps, as a capture of its network traffic shows them.
//
// Source: ICPE 2020, section 1 on Lin et al.: what lies between the end of the downlink
// transmission and the start of the uplink transmission is taken for the worker's computation. What
// overlaps is left open there. Taken here: the uplink phase goes from its first to its last byte,
// gaps and all, and begins no earlier than the last download ends, so that the phases of one worker
// add up to its step. The server's ends with its last operation; what lies before the first
// transfer and behind all transfers and servers is the worker's. Threads: none.
class PhaseRecorder final : public TraceSink {
 public:
  // The graph is borrowed.
  explicit PhaseRecorder(const Program& graph) : graph_(graph) {}

  // REQUIRES: all steps are of one worker, and each begins where the one before ended.
  void OnStep(std::span<const ChunkRecord> chunks) override;

  // Over the steps seen. REQUIRES: there are any.
  PhaseSeconds Mean() const;

 private:
  const Program& graph_;
  Instant step_start_;
  int64_t steps_ = 0;
  PhaseSeconds sum_;
};

void PhaseRecorder::OnStep(std::span<const ChunkRecord> chunks) {
  Instant step_end = step_start_;
  Instant first_transfer = kEndOfTime;
  Instant downlink_end = step_start_;
  Instant uplink_start = kEndOfTime;
  Instant uplink_end = step_start_;
  Instant server_end = step_start_;
  for (const ChunkRecord& chunk : chunks) {
    step_end = std::max(step_end, chunk.end);
    const Resource resource = ServerLanes::ResourceOf(graph_, chunk.op);
    if (IsTransfer(resource)) first_transfer = std::min(first_transfer, chunk.start);
    if (resource == Resource::kParameterServer) server_end = std::max(server_end, chunk.end);
    if (resource == Resource::kDownlink) downlink_end = std::max(downlink_end, chunk.end);
    if (resource == Resource::kUplink) {
      uplink_start = std::min(uplink_start, chunk.start);
      uplink_end = std::max(uplink_end, chunk.end);
    }
  }
  // Without an upload the worker computes to the end.
  uplink_start = std::clamp(uplink_start, downlink_end, step_end);
  uplink_end = std::max(uplink_end, uplink_start);
  server_end = std::max(server_end, uplink_end);
  const Instant downlink_start = std::min(first_transfer, downlink_end);
  sum_.downlink += ToSeconds(downlink_end - downlink_start);
  sum_.worker += ToSeconds((downlink_start - step_start_) + (uplink_start - downlink_end) +
                           (step_end - server_end));
  sum_.uplink += ToSeconds(uplink_end - uplink_start);
  sum_.parameter_server += ToSeconds(server_end - uplink_end);
  step_start_ = step_end;
  ++steps_;
}

PhaseSeconds PhaseRecorder::Mean() const {
  const auto steps = static_cast<double>(steps_);
  return {.downlink = sum_.downlink / steps,
          .worker = sum_.worker / steps,
          .uplink = sum_.uplink / steps,
          .parameter_server = sum_.parameter_server / steps};
}

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
  PhaseRecorder recorder(*(*ranked)->job.program);
  const absl::StatusOr<RecordedRun> run =
      RunRecordedSteps(profile, scenario, **ranked, &recorder, stop);
  if (!run.ok()) return run.status();
  return CoarseProfile{
      .phases = recorder.Mean(),
      .cynthia = CynthiaInputsOf(*(*ranked)->job.program, scenario.bandwidth_bytes_per_second),
      .simulation = run->simulation};
}

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
      .steps_per_second = workers * ((*ranked)->job.program->step_count() / ToSeconds(run->length)),
      .simulation = run->simulation};
}

}  // namespace stepcast
