#include "core/communication/parameter_servers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "core/communication/full_sharding.h"
#include "core/communication/step_plan.h"

namespace stepcast {

namespace {

struct ParameterBytes {
  int64_t down = 0;
  int64_t up = 0;
  int32_t server = 0;
};

}  // namespace

std::vector<int32_t> PlaceParameters(const Profile& profile, int32_t servers) {
  const std::vector<Operation>& operations = profile.operations();
  std::vector<int32_t> placed(operations.size(), 0);
  if (servers == profile.parameter_servers()) {
    for (size_t i = 0; i < operations.size(); ++i)
      placed[i] = operations[i].resource == Resource::kWorker ? 0 : operations[i].parameter_server;
    return placed;
  }
  std::unordered_map<std::string_view, size_t> index_of;
  std::vector<ParameterBytes> parameters;  // in graph order
  const auto find = [&](const Operation& operation) -> ParameterBytes& {
    const auto [at, is_new] = index_of.try_emplace(operation.parameter, parameters.size());
    if (is_new) parameters.emplace_back();
    return parameters[at->second];
  };
  for (size_t i = 0; i < operations.size(); ++i) {
    // Of all-reduced ones the last gradient's parameter is the first that is downloaded.
    const Operation& operation =
        operations[profile.has_collectives() ? operations.size() - 1 - i : i];
    if (operation.resource == Resource::kWorker) continue;
    ParameterBytes& bytes = find(operation);
    if (operation.resource == Resource::kDownlink) bytes.down += operation.size_bytes;
    if (operation.resource == Resource::kUplink) bytes.up += operation.size_bytes;
    // Down and up.
    if (operation.resource == Resource::kCollective) bytes.down += operation.size_bytes;
  }
  std::vector<int64_t> load(static_cast<size_t>(servers), 0);
  for (ParameterBytes& parameter : parameters) {
    const auto least = std::min_element(load.begin(), load.end());
    parameter.server = static_cast<int32_t>(least - load.begin());
    *least += parameter.down > 0 ? parameter.down : parameter.up;
  }
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].resource != Resource::kWorker) placed[i] = find(operations[i]).server;
  }
  return placed;
}

namespace {

Span ParsingTime(const ParsingOverhead& overhead, int64_t size_bytes) {
  const double seconds =
      overhead.seconds_per_byte * static_cast<double>(size_bytes) + overhead.seconds;
  const double ticks = seconds * 1e9 * static_cast<double>(kTicksPerNanosecond);
  return {ticks >= static_cast<double>(kEndOfTime.ticks) ? kEndOfTime.ticks : std::llround(ticks)};
}

Span RecordedTime(const RecordedStep& step, int32_t operation) {
  return Nanoseconds(step.end_ns[Index(operation)] - step.start_ns[Index(operation)]);
}

// The parameter of an all-reduced gradient, and the computation that needs it first.
struct Download {
  int32_t gradient = 0;
  int32_t user = 0;
};
// In the order in which they are needed.
absl::StatusOr<std::vector<Download>> DownloadsOf(const Profile& profile) {
  const StepPlan plan = PlanOf(profile);
  const std::vector<int32_t> gradients = AllReducesOf(plan);
  const absl::StatusOr<std::vector<int32_t>> uses = ForwardUses(profile, plan, "parameter_servers");
  if (!uses.ok()) return uses.status();
  std::vector<Download> downloads;
  for (size_t i = gradients.size(); i > 0; --i)
    downloads.push_back({.gradient = gradients[i - 1], .user = (*uses)[i - 1]});
  std::stable_sort(downloads.begin(), downloads.end(),
                   [](const Download& a, const Download& b) { return a.user < b.user; });
  return downloads;
}

class ProgramWriter {
 public:
  ProgramWriter(const Profile& profile, const Scenario& scenario, ProgramTimes times,
                StopCheck stop)
      : profile_(profile),
        servers_(scenario.servers()),
        times_(times),
        stop_(stop),
        pace_(stop),
        bandwidth_(scenario.bandwidth_bytes_per_second),
        lanes_{.servers = scenario.servers().servers} {}

  absl::StatusOr<Program> Write() && {
    draft_.lanes = lanes_.Specs();
    if (absl::Status status = PlaceDownloads(); !status.ok()) return status;
    PlaceOperations();
    ConnectOperations();
    FillDurations();
    if (!pace_.status().ok()) return pace_.status();
    return Program::Make(std::move(draft_), stop_);
  }

 private:
  bool HasParsing(const Operation& operation) const {
    const bool travels =
        IsTransfer(operation.resource) || operation.resource == Resource::kCollective;
    return travels && (servers_.parsing_overhead.seconds_per_byte != 0 ||
                       servers_.parsing_overhead.seconds != 0);
  }

  LaneIndex LaneOf(const Operation& operation, int32_t server) const {
    switch (operation.resource) {
      case Resource::kDownlink:
        return lanes_.Downlink(server);
      case Resource::kUplink:
      case Resource::kCollective:
        return lanes_.Uplink(server);
      case Resource::kParameterServer:
        return lanes_.Server(server);
      default:
        return ServerLanes::kWorker;
    }
  }

  OpIndex size() const { return static_cast<OpIndex>(draft_.lane.size()); }

  void Append(int32_t source, LaneIndex lane, int64_t size_bytes) {
    draft_.lane.push_back(lane);
    draft_.source.push_back(source);
    draft_.size_bytes.push_back(size_bytes);
    draft_.work.push_back(
        draft_.lanes.IsLink(lane)
            ? StreamServices::Of(size_bytes, servers_.multiplexing).WorkOn(bandwidth_)
            : TransferWork{});
  }

  // Of a profile whose gradients are all-reduced: what a server sends of each parameter, in the
  // order in which the forward uses them, before all else.
  absl::Status PlaceDownloads() {
    if (!profile_.has_collectives()) return absl::OkStatus();
    const absl::StatusOr<std::vector<Download>> downloads = DownloadsOf(profile_);
    if (!downloads.ok()) return downloads.status();
    const std::vector<int32_t> servers = PlaceParameters(profile_, servers_.servers);
    arrives_.resize(profile_.operations().size());
    for (const Download& download : *downloads) {
      const Operation& gradient = profile_.operations()[Index(download.gradient)];
      const OpIndex first = size();
      Append(download.gradient, lanes_.Downlink(servers[Index(download.gradient)]),
             gradient.size_bytes);
      if (HasParsing(gradient)) {
        Append(download.gradient, ServerLanes::kWorker, 0);
        draft_.dependencies.push_back({.before = first, .after = first + 1});
      }
      arrives_[Index(download.user)].push_back(size() - 1);
    }
    return absl::OkStatus();
  }

  // Gives every operation its lane, and a transfer's parsing overhead its own operation on the
  // receiver (section 3.2.1).
  void PlaceOperations() {
    const std::vector<int32_t> servers = PlaceParameters(profile_, servers_.servers);
    const std::vector<Operation>& operations = profile_.operations();
    for (size_t i = 0; i < operations.size() && pace_.GoesOn(1); ++i) {
      const Operation& operation = operations[i];
      const auto source = static_cast<int32_t>(i);
      first_.push_back(size());
      Append(source, LaneOf(operation, servers[i]), operation.size_bytes);
      if (HasParsing(operation)) {
        Append(source,
               operation.resource == Resource::kDownlink ? ServerLanes::kWorker
                                                         : lanes_.Server(servers[i]),
               0);
      }
      last_.push_back(size() - 1);
    }
  }

  // Connects operations: those that waited for a transfer wait for its parsing, and the parsing for
  // the transfer.
  void ConnectOperations() {
    const std::vector<Operation>& operations = profile_.operations();
    for (size_t i = 0; i < first_.size(); ++i) {
      const std::vector<int32_t>& waiting_for = operations[i].waiting_for;
      if (!pace_.GoesOn(static_cast<int64_t>(1 + waiting_for.size()))) return;
      for (const int32_t before : waiting_for)
        draft_.dependencies.push_back({.before = last_[Index(before)], .after = first_[i]});
      if (!arrives_.empty()) {
        for (const OpIndex download : arrives_[i])
          draft_.dependencies.push_back({.before = download, .after = first_[i]});
      }
      if (first_[i] != last_[i])
        draft_.dependencies.push_back({.before = first_[i], .after = last_[i]});
    }
  }

  void FillDurations() {
    const bool is_least = times_ == ProgramTimes::kLeast;
    const size_t steps = profile_.steps().size();
    draft_.step_count = is_least ? 1 : static_cast<int32_t>(steps);
    draft_.durations.reserve(Index(draft_.step_count) * draft_.lane.size());
    for (int32_t row = 0; row < draft_.step_count; ++row) {
      for (OpIndex op = 0; op < size(); ++op) {
        if (!pace_.GoesOn(is_least ? static_cast<int64_t>(steps) : 1)) return;
        draft_.durations.push_back(AtItsSpeed(op, DurationOf(op, row)));
      }
    }
  }

  Span AtItsSpeed(OpIndex op, Span recorded) const {
    const bool on_server =
        ServerLanes::ResourceOf(draft_.lanes[draft_.lane[Index(op)]]) == Resource::kParameterServer;
    if (!on_server || servers_.compute_speed_factor == 1) return recorded;
    return FromSeconds(ToSeconds(recorded) / servers_.compute_speed_factor);
  }

  Span DurationOf(OpIndex op, int32_t row) const {
    if (draft_.lanes.IsLink(draft_.lane[Index(op)])) return {};
    const int32_t source = draft_.source[Index(op)];
    if (op > 0 && source == draft_.source[Index(op) - 1])
      return ParsingTime(servers_.parsing_overhead, draft_.size_bytes[Index(op) - 1]);
    const std::vector<RecordedStep>& steps = profile_.steps();
    if (times_ == ProgramTimes::kRecorded) return RecordedTime(steps[Index(row)], source);
    Span least = RecordedTime(steps.front(), source);
    for (const RecordedStep& step : steps) least = std::min(least, RecordedTime(step, source));
    return least;
  }

  const Profile& profile_;
  const ParameterServers& servers_;
  const ProgramTimes times_;
  const StopCheck stop_;
  PacedStopCheck pace_;
  const Bandwidth bandwidth_;
  const ServerLanes lanes_;
  ProgramDraft draft_;
  std::vector<OpIndex> first_;  // by the profile's operation: where its own begin
  std::vector<OpIndex> last_;
  std::vector<std::vector<OpIndex>> arrives_;  // likewise: the downloads it waits for besides
};

NetworkSpec NetworkOf(const Scenario& scenario) {
  const Bandwidth server(scenario.bandwidth_bytes_per_second);
  const LinkSharing& sharing = scenario.servers().link_sharing;
  NetworkSpec network;
  if (std::holds_alternative<FirstCome>(sharing)) {
    network.sharing = NetworkSpec::Sharing::kFirstCome;
  } else if (const auto* turns = std::get_if<Turns>(&sharing)) {
    network.sharing = NetworkSpec::Sharing::kTurns;
    network.turn = server.TimeFor(turns->bytes);
  }
  for (const WorkerGroup& group : scenario.worker_groups) {
    const Bandwidth own(
        group.bandwidth_bytes_per_second.value_or(scenario.bandwidth_bytes_per_second));
    network.worker_capacities.insert(network.worker_capacities.end(), Index(group.count),
                                     own.RatioTo(server, LinkLevel::kUnit));
  }
  network.worker_capacities.resize(Index(scenario.workers), LinkLevel::kUnit);
  return network;
}

}  // namespace

Lanes ServerLanes::Specs() const {
  std::vector<LaneSpec> specs{{.role = LaneRole::kCompute}};
  for (int32_t i = 0; i < servers; ++i) specs.push_back({.role = LaneRole::kHub, .index = i});
  for (const int32_t network : {kDownlinks, kUplinks}) {
    for (int32_t i = 0; i < servers; ++i)
      specs.push_back({.role = LaneRole::kLink, .index = i, .network = network});
  }
  return Lanes(std::move(specs));
}

Resource ServerLanes::ResourceOf(const LaneSpec& lane) {
  switch (lane.role) {
    case LaneRole::kHub:
      return Resource::kParameterServer;
    case LaneRole::kLink:
      return lane.network == kDownlinks ? Resource::kDownlink : Resource::kUplink;
    default:
      return Resource::kWorker;
  }
}

StreamServices StreamServices::Windowed(int64_t size_bytes, int64_t window_bytes,
                                        int64_t quantum_bytes) {
  if (size_bytes <= window_bytes) return Whole(size_bytes);
  const int64_t left = size_bytes - window_bytes;
  const int64_t middle = quantum_bytes > 0 ? std::min(quantum_bytes, left) : left;
  const int64_t middles = (left - 1) / middle;
  return {.first = window_bytes,
          .middle = middle,
          .last = left - middles * middle,
          .count = static_cast<int32_t>(middles) + 2};
}

StreamServices StreamServices::Of(int64_t size_bytes, const Multiplexing& multiplexing) {
  if (const auto* window = std::get_if<Window>(&multiplexing))
    return Windowed(size_bytes, window->bytes, window->quantum_bytes);
  if (const auto* robin = std::get_if<RoundRobin>(&multiplexing))
    return Windowed(size_bytes, robin->window_bytes, robin->quantum_bytes);
  return Whole(size_bytes);
}

TransferWork StreamServices::WorkOn(const Bandwidth& link) const {
  if (count == 1) return {.first = link.TimeFor(first), .middle = {}, .last = {}};
  return {.first = link.TimeFor(first),
          .middle = link.TimeFor(middle),
          .last = link.TimeFor(last),
          .services = count};
}

Program BuildProgram(const Profile& profile, const Scenario& scenario, ProgramTimes times) {
  return *BuildProgram(profile, scenario, times, NeverStop);
}

absl::Status CheckServers(const Profile& profile) {
  if (!profile.has_collectives()) return absl::OkStatus();
  return DownloadsOf(profile).status();
}

absl::StatusOr<Program> BuildProgram(const Profile& profile, const Scenario& scenario,
                                     ProgramTimes times, StopCheck stop) {
  return ProgramWriter(profile, scenario, times, stop).Write();
}

bool HaveSameProgram(const Scenario& a, const Scenario& b) {
  const ParameterServers& of_a = a.servers();
  const ParameterServers& of_b = b.servers();
  return a.bandwidth_bytes_per_second == b.bandwidth_bytes_per_second &&
         of_a.servers == of_b.servers && of_a.parsing_overhead == of_b.parsing_overhead &&
         of_a.multiplexing == of_b.multiplexing &&
         of_a.compute_speed_factor == of_b.compute_speed_factor;
}

std::vector<int32_t> RecordedRanks(const Profile& profile, const Program& program) {
  std::vector<int32_t> ranks(Index(program.size()) * profile.steps().size(), 0);
  std::vector<std::pair<int64_t, OpIndex>> ends;
  int32_t* row = ranks.data();
  for (const RecordedStep& step : profile.steps()) {
    ends.clear();
    for (OpIndex op = 0; op < program.size(); ++op) {
      if (program.IsTransfer(op)) ends.emplace_back(step.end_ns[Index(program.source(op))], op);
    }
    std::sort(ends.begin(), ends.end());
    int32_t rank = -1;
    int64_t last_end = -1;
    for (const auto& [end, op] : ends) {
      if (end != last_end) ++rank;
      last_end = end;
      row[op] = rank;
    }
    row += program.size();
  }
  return ranks;
}

JobGraph JobOf(std::shared_ptr<const Program> program, std::shared_ptr<const Ranking> ranking,
               const Scenario& scenario) {
  JobGraph job;
  job.programs.push_back(std::move(program));
  job.rankings.push_back(std::move(ranking));
  job.program_of_worker.assign(Index(scenario.workers), 0);
  job.networks.assign(2, NetworkOf(scenario));
  for (const WorkerGroup& group : scenario.worker_groups) {
    job.compute_speeds.insert(job.compute_speeds.end(), Index(group.count),
                              group.compute_speed_factor.value_or(1));
  }
  if (scenario.is_synchronous()) {
    std::vector<int32_t>& all = job.groups.emplace_back();
    for (int32_t worker = 0; worker < scenario.workers; ++worker) all.push_back(worker);
    job.couplings.push_back({.op = kStepEnd, .group = 0});
  }
  return job;
}

}  // namespace stepcast
