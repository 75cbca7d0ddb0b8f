#include "core/communication/job.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "core/communication/parameter_servers.h"
#include "core/communication/server_transfers.h"
#include "core/engine/joint_plan.h"

namespace stepcast {

namespace {

absl::StatusOr<double> MeanComputationSeconds(const Program& program, StopCheck stop) {
  PacedStopCheck pace(stop);
  std::vector<OpIndex> order = program.roots();
  std::vector<int32_t> pending = program.dependency_counts();
  for (size_t i = 0; i < order.size(); ++i) {
    for (const OpIndex next : program.dependents(order[i])) {
      if (--pending[Index(next)] == 0) order.push_back(next);
    }
  }
  double sum = 0;
  std::vector<double> start(Index(program.size()));
  std::vector<double> busy(Index(program.lanes().count()));
  for (int32_t step = 0; step < program.step_count(); ++step) {
    std::fill(start.begin(), start.end(), 0);
    std::fill(busy.begin(), busy.end(), 0);
    double longest = 0;
    for (const OpIndex op : order) {
      if (!pace.GoesOn(1)) return pace.status();
      const double length = ToSeconds(program.duration(step, op));
      const double end = start[Index(op)] + length;
      busy[Index(program.lane(op))] += length;
      longest = std::max(longest, end);
      for (const OpIndex next : program.dependents(op))
        start[Index(next)] = std::max(start[Index(next)], end);
    }
    sum += std::max(longest, *std::max_element(busy.begin(), busy.end()));
  }
  return sum / program.step_count();
}

// The programs of the workers after the first of a recording of several. `build` makes a worker's.
template <typename Build>
absl::StatusOr<std::vector<std::shared_ptr<const Program>>> OtherPrograms(const Profile& profile,
                                                                          Build build) {
  std::vector<std::shared_ptr<const Program>> others;
  for (int32_t worker = 1; worker < profile.recorded_workers(); ++worker) {
    absl::StatusOr<Program> other = build(profile.OfWorker(worker));
    if (!other.ok()) return other.status();
    others.push_back(std::make_shared<const Program>(*std::move(other)));
  }
  return others;
}

absl::StatusOr<JobProgram> BuildServerProgram(const Profile& profile, const Scenario& scenario,
                                              StopCheck stop) {
  const auto build = [&](const Profile& of) {
    return BuildProgram(of, scenario, ProgramTimes::kRecorded, stop);
  };
  absl::StatusOr<Program> program = build(profile);
  if (!program.ok()) return program.status();
  auto others = OtherPrograms(profile, build);
  if (!others.ok()) return others.status();
  JobProgram made{.program = std::make_shared<const Program>(*std::move(program)),
                  .of_recorded = *std::move(others),
                  .collectives = {},
                  .ring = {},
                  .prepared = nullptr,
                  .computation_seconds = 0};
  if (!made.of_recorded.empty()) made.of_recorded.insert(made.of_recorded.begin(), made.program);
  return made;
}

// Every worker of the job with the program of its recorded worker.
void GiveEachItsProgram(const JobProgram& job, JobGraph& graph) {
  if (job.of_recorded.empty()) return;
  const size_t programs = std::min(job.of_recorded.size(), graph.program_of_worker.size());
  graph.programs = {job.of_recorded.begin(),
                    job.of_recorded.begin() + static_cast<std::ptrdiff_t>(programs)};
  for (size_t worker = 0; worker < graph.program_of_worker.size(); ++worker)
    graph.program_of_worker[worker] = static_cast<int32_t>(worker % programs);
  if (!graph.rankings.empty()) graph.rankings.assign(programs, graph.rankings.front());
}

}  // namespace

absl::StatusOr<JobProgram> BuildJobProgram(const Profile& profile, const Scenario& scenario,
                                           StopCheck stop) {
  if (scenario.has_servers()) return BuildServerProgram(profile, scenario, stop);
  absl::StatusOr<CollectiveProgram> program = BuildCollectiveProgram(profile, scenario, stop);
  if (!program.ok()) return program.status();
  auto built = OtherPrograms(profile, [&](const Profile& of) -> absl::StatusOr<Program> {
    absl::StatusOr<CollectiveProgram> other = BuildCollectiveProgram(of, scenario, stop);
    if (!other.ok()) return other.status();
    return std::move(other->program);
  });
  if (!built.ok()) return built.status();
  std::vector<std::shared_ptr<const Program>> others = *std::move(built);
  const AllReduce& how = scenario.all_reduce();
  // It is of one program: those of several recorded workers have none.
  std::shared_ptr<const PreparedJoint> prepared;
  if (others.empty() && how.fidelity == Fidelity::kCollapsed) {
    // In cycles and by priority they end in any order, as several at once do.
    const bool in_order = !std::holds_alternative<Horovod>(how.fusion) &&
                          !std::holds_alternative<ByteScheduler>(how.fusion);
    constexpr int32_t kSeveral = 2;
    prepared = std::make_shared<const PreparedJoint>(PrepareJoint(
        program->program,
        JointWorkOf(program->collectives, in_order ? how.concurrent_collectives : kSeveral)));
  }
  const absl::StatusOr<double> computation_seconds = MeanComputationSeconds(program->program, stop);
  if (!computation_seconds.ok()) return computation_seconds.status();
  auto first = std::make_shared<const Program>(std::move(program->program));
  if (!others.empty()) others.insert(others.begin(), first);
  return JobProgram{.program = std::move(first),
                    .of_recorded = std::move(others),
                    .collectives = std::move(program->collectives),
                    .ring = std::move(program->ring),
                    .prepared = std::move(prepared),
                    .computation_seconds = *computation_seconds};
}

bool HaveSameJobProgram(const Scenario& a, const Scenario& b) {
  if (a.has_servers() != b.has_servers()) return false;
  return a.has_servers() ? HaveSameProgram(a, b) : HaveSameCollectiveProgram(a, b);
}

bool HaveSameRanking(const Scenario& a, const Scenario& b) {
  return !a.has_servers() || (a.servers().synchronization == b.servers().synchronization &&
                              a.servers().transfer_order == b.servers().transfer_order &&
                              a.servers().transfer_priorities == b.servers().transfer_priorities);
}

JobGraph JobOf(const JobProgram& job, std::shared_ptr<const Ranking> ranking,
               const Scenario& scenario) {
  if (scenario.has_servers()) {
    JobGraph graph = JobOf(job.program, std::move(ranking), scenario);
    GiveEachItsProgram(job, graph);
    if (!job.of_recorded.empty() && scenario.is_synchronous()) graph.drawing = StepDrawing::kJoint;
    return graph;
  }
  JobGraph graph = CollectiveJobOf(job.program, job.collectives, job.ring, scenario);
  GiveEachItsProgram(job, graph);
  if (!job.of_recorded.empty()) graph.drawing = StepDrawing::kJoint;
  // It is of one program.
  if (graph.programs.size() == 1) graph.joint.prepared = job.prepared;
  return graph;
}

namespace {

int64_t PartsOf(int64_t bytes, int64_t partition) {
  return partition == 0 ? 1 : (bytes - 1) / partition + 1;
}

int64_t LargestBytes(const Profile& profile) {
  int64_t largest = 1;
  for (const Operation& operation : profile.operations())
    largest = std::max(largest, operation.size_bytes);
  return largest;
}

StepBound BoundOf(const Profile& profile, const AllReduce& job, int32_t workers) {
  const auto operations = static_cast<double>(profile.operations().size());
  const auto pieces = static_cast<double>(PartsOf(LargestBytes(profile), job.partition_bytes));
  // Sharding makes two collectives of one, or three.
  const int shards = job.sharding == Sharding::kNone ? 1 : job.sharding == Sharding::kFull ? 3 : 2;
  // Besides itself: with which it ends, and the chunks of its rounds.
  const double rounds = job.fidelity == Fidelity::kExpanded ? 4.0 * workers : 0;
  // Lanes for the collectives that can be under way at once.
  const double joint =
      std::holds_alternative<Horovod>(job.fusion) ? operations : job.concurrent_collectives - 1;
  return {.chunks = shards * pieces * (1 + rounds) * (operations + 1),
          .lanes = 4 + ProfileLimits{}.max_streams + joint};
}

StepBound BoundOf(const Profile& profile, const ParameterServers& job) {
  const bool has_parsing = job.parsing_overhead != ParsingOverhead{};
  const bool sums = job.synchronization == Synchronization::kSummed;
  const int64_t partition = job.partition_bytes;
  const int64_t parts_of_largest = PartsOf(LargestBytes(profile), partition);
  int64_t chunks = 1;
  for (const Operation& operation : profile.operations()) {
    // A parameter that is all-reduced comes down and goes up, and may have an update of its own.
    const bool is_collective = operation.resource == Resource::kCollective;
    if (is_collective || IsTransfer(operation.resource)) {
      const int64_t part =
          partition == 0 ? operation.size_bytes : std::min(partition, operation.size_bytes);
      const int64_t services =
          PartsOf(operation.size_bytes, partition) *
          (StreamServices::Of(part, job.multiplexing).count + (has_parsing ? 1 : 0));
      chunks += is_collective ? 2 * services + (sums ? 1 : 0) : services;
    } else {
      chunks += operation.resource == Resource::kParameterServer ? parts_of_largest : 1;
    }
  }
  // Lanes are those of the worker and its steps, and of its links and servers.
  return {.chunks = static_cast<double>(chunks),
          .lanes = 2.0 + ServerLanes{.servers = job.servers}.count()};
}

}  // namespace

StepBound StepBoundOf(const Profile& profile, const Scenario& scenario) {
  return scenario.has_servers() ? BoundOf(profile, scenario.servers())
                                : BoundOf(profile, scenario.all_reduce(), scenario.workers);
}

Resource ResourceOf(const LaneSpec& lane) {
  return lane.role == LaneRole::kJoint ? Resource::kCollective : ServerLanes::ResourceOf(lane);
}

}  // namespace stepcast
