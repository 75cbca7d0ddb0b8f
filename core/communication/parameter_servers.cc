#include "core/communication/parameter_servers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/communication/server_step.h"
#include "core/communication/server_transfers.h"
#include "core/communication/step_plan.h"

namespace stepcast {

namespace {

// So many dependencies may parts of tensors that wait for parts of others have, of a step.
constexpr int64_t kMaxPartDependencies = 10'000'000;

Span ParsingTime(const ParsingOverhead& overhead, int64_t size_bytes) {
  const double seconds =
      overhead.seconds_per_byte * static_cast<double>(size_bytes) + overhead.seconds;
  const double ticks = seconds * 1e9 * static_cast<double>(kTicksPerNanosecond);
  return {ticks >= static_cast<double>(kEndOfTime.ticks) ? kEndOfTime.ticks : std::llround(ticks)};
}

class ProgramWriter {
 public:
  ProgramWriter(const Profile& profile, const Scenario& scenario, ProgramTimes times,
                StopCheck stop)
      : profile_(profile),
        scenario_(scenario),
        servers_(scenario.servers()),
        times_(times),
        stop_(stop),
        pace_(stop),
        bandwidth_(scenario.bandwidth_bytes_per_second),
        lanes_{.servers = scenario.servers().servers},
        placement_(profile, servers_.servers, servers_.partition_bytes) {}

  absl::StatusOr<Program> Write() && {
    if (absl::Status status = PlanStep(); !status.ok()) return status;
    draft_.lanes = lanes_.Specs();
    PlaceDownloads();
    PlaceOperations();
    ConnectOperations();
    ConnectSums();
    FillDurations();
    if (!pace_.status().ok()) return pace_.status();
    return Program::Make(std::move(draft_), stop_);
  }

  // Failure: see CheckServers.
  absl::Status PlanStep() {
    absl::StatusOr<ServerStep> step = ServerStepOf(profile_, scenario_, stop_);
    if (!step.ok()) return step.status();
    step_ = *std::move(step);
    return CheckParts();
  }

 private:
  // The operations of the program that a part of an operation is; what waits for it waits for the
  // last of them.
  struct Piece {
    OpIndex first = 0;
    OpIndex last = 0;
  };
  // The time that an operation of the program takes.
  struct Work {
    enum class Kind : uint8_t { kTransfer, kParsing, kComputation, kPart };
    Kind kind = Kind::kTransfer;
    int32_t index = 0;  // of the plan; of kPart: of parts_
  };

  const Operation& SourceOf(int32_t planned) const {
    return profile_.operations()[Index(step_.plan[Index(planned)].source)];
  }
  static bool Travels(const Operation& operation) {
    return IsTransfer(operation.resource) || operation.resource == Resource::kCollective;
  }
  bool HasParsing(const Operation& operation) const {
    return Travels(operation) && (servers_.parsing_overhead.seconds_per_byte != 0 ||
                                  servers_.parsing_overhead.seconds != 0);
  }
  int32_t PartsOf(int32_t planned) const {
    return placement_.PartsOf(step_.plan[Index(planned)].source);
  }
  // True if each part of one belongs to the same part of the other.
  bool GoPartByPart(int32_t before, int32_t after) const {
    const Operation& earlier = SourceOf(before);
    return !earlier.parameter.empty() && earlier.parameter == SourceOf(after).parameter &&
           earlier.resource != Resource::kWorker && SourceOf(after).resource != Resource::kWorker &&
           PartsOf(before) == PartsOf(after);
  }

  absl::Status CheckParts() const {
    if (servers_.partition_bytes == 0) return absl::OkStatus();
    int64_t dependencies = 0;
    const auto count = [&](int32_t before, int32_t after) {
      if (!GoPartByPart(before, after)) dependencies += int64_t{PartsOf(before)} * PartsOf(after);
    };
    for (size_t i = 0; i < step_.plan.size(); ++i) {
      for (const int32_t before : step_.plan[i].waiting_for) count(before, static_cast<int32_t>(i));
    }
    for (const SummedDownload& sum : step_.sums) {
      for (const int32_t before : sum.befores) count(before, sum.download);
    }
    if (dependencies <= kMaxPartDependencies) return absl::OkStatus();
    return FaultsError(
        "SCENARIO_INVALID",
        {{.field = "parameter_servers.partition_bytes",
          .description = absl::StrCat(
              servers_.partition_bytes, " makes ", dependencies,
              " dependencies between parts of a step, which is above the limit ",
              "max_part_dependencies = ", kMaxPartDependencies, ": take larger parts")}});
  }

  OpIndex size() const { return static_cast<OpIndex>(draft_.lane.size()); }

  void Append(int32_t source, LaneIndex lane, int64_t size_bytes, Work work) {
    draft_.lane.push_back(lane);
    draft_.source.push_back(source);
    draft_.size_bytes.push_back(size_bytes);
    draft_.work.push_back(
        draft_.lanes.IsLink(lane)
            ? StreamServices::Of(size_bytes, servers_.multiplexing).WorkOn(bandwidth_)
            : TransferWork{});
    work_.push_back(work);
  }
  // A transfer, and its parsing overhead as an operation of its own on the receiver (section
  // 3.2.1).
  void AppendTransfer(int32_t planned, int32_t part, bool is_down) {
    const int32_t source = step_.plan[Index(planned)].source;
    const Operation& operation = SourceOf(planned);
    const int32_t server = placement_.ServerOf(source, part);
    const int64_t bytes = placement_.BeginOf(part + 1, operation.size_bytes) -
                          placement_.BeginOf(part, operation.size_bytes);
    Append(source, is_down ? lanes_.Downlink(server) : lanes_.Uplink(server), bytes, {});
    if (!HasParsing(operation)) return;
    Append(source, is_down ? ServerLanes::kWorker : lanes_.Server(server), 0,
           {.kind = Work::Kind::kParsing});
  }

  // Downloads of a profile whose gradients are all-reduced: what a server sends of each parameter,
  // in the order in which the forward uses them, before all else.
  void PlaceDownloads() {
    if (!step_.downloads.empty()) arrives_.resize(step_.plan.size());
    for (const ParameterDownload& download : step_.downloads) {
      for (int32_t part = 0; part < PartsOf(download.gradient); ++part) {
        const OpIndex first = size();
        AppendTransfer(download.gradient, part, /*is_down=*/true);
        ConnectInside({.first = first, .last = size() - 1});
        arrives_[Index(download.user)].push_back(size() - 1);
      }
    }
  }

  // Gives every operation its lanes.
  void PlaceOperations() {
    for (size_t i = 0; i < step_.plan.size() && pace_.GoesOn(1); ++i) {
      const auto planned = static_cast<int32_t>(i);
      first_piece_.push_back(pieces_.size());
      const int32_t parts = PartsOf(planned);
      for (int32_t part = 0; part < parts && pace_.GoesOn(1); ++part) {
        const OpIndex first = size();
        PlacePart(planned, part, parts);
        pieces_.push_back({.first = first, .last = size() - 1});
      }
    }
    first_piece_.push_back(pieces_.size());
  }

  void PlacePart(int32_t planned, int32_t part, int32_t parts) {
    const int32_t source = step_.plan[Index(planned)].source;
    switch (SourceOf(planned).resource) {
      case Resource::kDownlink:
        return AppendTransfer(planned, part, /*is_down=*/true);
      case Resource::kUplink:
        return AppendTransfer(planned, part, /*is_down=*/false);
      case Resource::kCollective: {
        AppendTransfer(planned, part, /*is_down=*/false);
        if (!scenario_.sums()) return;
        // The sum comes back as soon as it is there.
        draft_.gatherings.push_back({.after = size(), .befores = {size() - 1}});
        return AppendTransfer(planned, part, /*is_down=*/true);
      }
      case Resource::kParameterServer: {
        const LaneIndex lane = lanes_.Server(placement_.ServerOf(source, part));
        if (parts == 1) return Append(source, lane, 0, {Work::Kind::kComputation, planned});
        if (part == 0) whole_ns_ = RecordedTimes(source);
        const int64_t whole = placement_.LargestOf(source);
        parts_.push_back({.whole_ns = whole_ns_,
                          .begin = placement_.BeginOf(part, whole),
                          .end = placement_.BeginOf(part + 1, whole),
                          .whole = whole});
        return Append(source, lane, 0,
                      {Work::Kind::kPart, static_cast<int32_t>(parts_.size()) - 1});
      }
      default:
        return Append(source, ServerLanes::kWorker, 0, {Work::Kind::kComputation, planned});
    }
  }
  std::shared_ptr<const std::vector<int64_t>> RecordedTimes(int32_t source) const {
    auto times = std::make_shared<std::vector<int64_t>>();
    for (const RecordedStep& step : profile_.steps())
      times->push_back(step.end_ns[Index(source)] - step.start_ns[Index(source)]);
    return times;
  }

  std::span<const Piece> PiecesOf(int32_t planned) const {
    const size_t first = first_piece_[Index(planned)];
    return {pieces_.data() + first, first_piece_[Index(planned) + 1] - first};
  }
  // Calls with the last operation of every part of `before` that this part of `after` waits for.
  template <typename Visit>
  void ForEachBefore(int32_t before, int32_t after, size_t part, Visit visit) const {
    const std::span<const Piece> pieces = PiecesOf(before);
    if (GoPartByPart(before, after)) return visit(pieces[part].last);
    for (const Piece& piece : pieces) visit(piece.last);
  }

  // Each waits for the one before: a parsing for its transfer, a download for its upload.
  void ConnectInside(const Piece& piece) {
    for (OpIndex op = piece.first; op < piece.last; ++op)
      draft_.dependencies.push_back({.before = op, .after = op + 1});
  }

  void ConnectOperations() {
    for (size_t i = 0; i < step_.plan.size(); ++i) {
      const auto planned = static_cast<int32_t>(i);
      const std::vector<int32_t>& waiting_for = step_.plan[i].waiting_for;
      const std::span<const Piece> pieces = PiecesOf(planned);
      for (size_t part = 0; part < pieces.size(); ++part) {
        if (!pace_.GoesOn(static_cast<int64_t>(1 + waiting_for.size()))) return;
        const OpIndex first = pieces[part].first;
        const auto wait = [&](OpIndex before) {
          draft_.dependencies.push_back({.before = before, .after = first});
        };
        for (const int32_t before : waiting_for) ForEachBefore(before, planned, part, wait);
        if (!arrives_.empty()) {
          for (const OpIndex download : arrives_[i]) wait(download);
        }
        ConnectInside(pieces[part]);
      }
    }
  }

  void ConnectSums() {
    for (const SummedDownload& sum : step_.sums) {
      const std::span<const Piece> pieces = PiecesOf(sum.download);
      for (size_t part = 0; part < pieces.size(); ++part) {
        Gathering gathering{.after = pieces[part].first, .of_last_step = sum.of_last_step};
        for (const int32_t before : sum.befores) {
          ForEachBefore(before, sum.download, part,
                        [&](OpIndex op) { gathering.befores.push_back(op); });
        }
        draft_.gatherings.push_back(std::move(gathering));
      }
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
        draft_.durations.push_back(AtItsSpeed(op, DurationAt(op, Index(row))));
      }
    }
  }

  Span AtItsSpeed(OpIndex op, Span recorded) const {
    const bool on_server =
        ServerLanes::ResourceOf(draft_.lanes[draft_.lane[Index(op)]]) == Resource::kParameterServer;
    if (!on_server || servers_.compute_speed_factor == 1) return recorded;
    return FromSeconds(ToSeconds(recorded) / servers_.compute_speed_factor);
  }

  Span DurationAt(OpIndex op, size_t row) const {
    const Work& work = work_[Index(op)];
    if (work.kind == Work::Kind::kTransfer) return {};
    if (work.kind == Work::Kind::kParsing)
      return ParsingTime(servers_.parsing_overhead, draft_.size_bytes[Index(op) - 1]);
    if (times_ == ProgramTimes::kRecorded) return RecordedDuration(work, row);
    Span least = RecordedDuration(work, 0);
    for (size_t step = 1; step < profile_.steps().size(); ++step)
      least = std::min(least, RecordedDuration(work, step));
    return least;
  }
  Span RecordedDuration(const Work& work, size_t step) const {
    if (work.kind == Work::Kind::kPart) return parts_[Index(work.index)].Length(step);
    return DurationOf(step_.plan[Index(work.index)], profile_.steps()[step], step);
  }

  const Profile& profile_;
  const Scenario& scenario_;
  const ParameterServers& servers_;
  const ProgramTimes times_;
  const StopCheck stop_;
  PacedStopCheck pace_;
  const Bandwidth bandwidth_;
  const ServerLanes lanes_;
  const Placement placement_;
  ServerStep step_;
  ProgramDraft draft_;
  std::vector<Work> work_;                                // by operation of the program
  std::vector<TimePart> parts_;                           // of what servers compute
  std::shared_ptr<const std::vector<int64_t>> whole_ns_;  // of the last that was cut
  std::vector<Piece> pieces_;                             // of each operation of the plan its parts
  std::vector<size_t> first_piece_;                       // by operation of the plan, one more
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

Program BuildProgram(const Profile& profile, const Scenario& scenario, ProgramTimes times) {
  return *BuildProgram(profile, scenario, times, NeverStop);
}

absl::Status CheckServers(const Profile& profile, const Scenario& scenario) {
  return ProgramWriter(profile, scenario, ProgramTimes::kRecorded, NeverStop).PlanStep();
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
         of_a.multiplexing == of_b.multiplexing && a.sums() == b.sums() &&
         of_a.partition_bytes == of_b.partition_bytes &&
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
  job.networks[Index(ServerLanes::kUplinks)].from_workers = true;
  job.compute_speeds = scenario.compute_speeds();
  if (scenario.workers > 1) job.gatherings = job.programs.front()->gatherings();
  if (scenario.servers().synchronization == Synchronization::kSynchronous) {
    std::vector<int32_t>& all = job.groups.emplace_back();
    for (int32_t worker = 0; worker < scenario.workers; ++worker) all.push_back(worker);
    job.couplings.push_back({.op = kStepEnd, .group = 0});
  }
  return job;
}

}  // namespace stepcast
