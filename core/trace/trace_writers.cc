#include "core/trace/trace_writers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"

#include "core/base/index.h"
#include "core/communication/parameter_servers.h"
#include "core/communication/server_transfers.h"

namespace stepcast {

namespace {

constexpr int32_t kPathThread = 1;

const char* KindName(Resource kind) {
  switch (kind) {
    case Resource::kDownlink:
      return "downlink";
    case Resource::kUplink:
      return "uplink";
    case Resource::kParameterServer:
      return "parameter server";
    default:
      return "worker";
  }
}

bool HasServers(const Lanes& lanes) {
  return lanes.networks() > 0 && lanes.first_joint() == lanes.first_link();
}

std::string NameOf(const Lanes& lanes, LaneIndex lane) {
  const LaneSpec& spec = lanes[lane];
  if (spec.role == LaneRole::kJoint)
    return spec.index == 0 ? "collectives" : absl::StrCat("collectives ", spec.index + 1);
  if (spec.role == LaneRole::kCompute && lanes.after_compute() > 1)
    return absl::StrCat("stream ", spec.index);
  if (spec.role == LaneRole::kLink && !HasServers(lanes))
    return spec.network == 0 ? "chunks" : "latency";
  const Resource kind = ServerLanes::ResourceOf(spec);
  const bool has_one_server = HasServers(lanes) && lanes.CountOf(0) == 1;
  if (kind == Resource::kWorker || has_one_server) return KindName(kind);
  return absl::StrCat(KindName(kind), kind == Resource::kParameterServer ? " " : " of server ",
                      spec.index);
}

std::vector<LaneIndex> InOrderOfUse(const Program& graph) {
  std::vector<LaneIndex> order;
  if (!HasServers(graph.lanes())) {
    for (LaneIndex lane = 0; lane < graph.lanes().count(); ++lane) order.push_back(lane);
    return order;
  }
  const ServerLanes lanes = ServerLanes::Of(graph);
  order.reserve(static_cast<size_t>(lanes.count()));
  for (int32_t server = 0; server < lanes.servers; ++server)
    order.push_back(lanes.Downlink(server));
  order.push_back(ServerLanes::kWorker);
  for (int32_t server = 0; server < lanes.servers; ++server) order.push_back(lanes.Uplink(server));
  for (int32_t server = 0; server < lanes.servers; ++server) order.push_back(lanes.Server(server));
  return order;
}

const char* NameOf(Collective kind) {
  constexpr const char* kNames[] = {"", "all-reduce", "reduce-scatter", "all-gather", "broadcast"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

TraceLanes::TraceLanes(const Program& graph)
    : shown_{{.thread_id = 1, .name = "steps"}},
      thread_of_(static_cast<size_t>(graph.lanes().count()), 0) {
  const Lanes& lanes = graph.lanes();
  for (const LaneIndex lane : InOrderOfUse(graph)) {
    const LaneIndex runs = lanes.IsJoint(lane) ? lanes.first_joint() : lane;
    if (graph.operations_on(runs) == 0) continue;
    const auto thread = static_cast<int32_t>(shown_.size()) + 1;
    thread_of_[static_cast<size_t>(lane)] = thread;
    shown_.push_back({.thread_id = thread, .name = NameOf(lanes, lane)});
  }
}

PerfettoWriter::PerfettoWriter(const Subject& subject, TextSink sink)
    : TraceEvents(sink),
      subject_(subject),
      lanes_(subject.graph),
      collective_of_(subject.collectives.empty() ? 0 : Index(subject.graph.size())),
      compute_speed_(subject.scenario.compute_speeds()) {
  for (size_t i = 0; i < subject.collectives.size(); ++i) {
    const PlannedCollective& collective = subject.collectives[i];
    collective_of_[Index(collective.op)] = static_cast<int32_t>(i);
    if (collective.last_op >= 0)
      collective_of_[Index(collective.last_op)] = static_cast<int32_t>(i);
  }
}

void PerfettoWriter::Begin() {
  BeginText();
  for (int32_t worker = 0; worker < subject_.scenario.workers && status().ok(); ++worker) {
    WriteMetadata("process", worker, 0, absl::StrCat("worker ", worker), worker);
    for (const TraceLanes::Lane& lane : lanes_.shown())
      WriteMetadata("thread", worker, lane.thread_id, lane.name, lane.thread_id);
  }
}

void PerfettoWriter::OnStep(std::span<const ChunkRecord> chunks) {
  const ChunkRecord& any = chunks.front();
  if (any.step >= subject_.steps_per_worker || !status().ok()) return;
  // Operations that wait for nothing begin with the step, and its last operation ends it.
  Instant begin = any.start;
  Instant end = any.end;
  for (const ChunkRecord& chunk : chunks) {
    begin = std::min(begin, chunk.start);
    end = std::max(end, chunk.end);
  }
  WriteStep(any.worker, any.step, begin, end);
  for (const ChunkRecord& chunk : chunks) WriteChunk(chunk);
}

void PerfettoWriter::WriteChunk(const ChunkRecord& chunk) {
  const Program& graph = subject_.graph;
  const bool is_transfer = graph.IsTransfer(chunk.op);
  const bool is_parsing = graph.IsParsing(chunk.op);
  const bool is_collective = graph.lanes().IsJoint(graph.lane(chunk.op));
  BeginEvent("X", chunk.worker, ThreadOf(chunk.op, chunk.service));
  absl::StrAppend(&event_, R"(,"cat":")",
                  is_transfer     ? "transfer"
                  : is_parsing    ? "parsing"
                  : is_collective ? "collective"
                                  : "computation",
                  R"(","name":)");
  AppendJsonString(TitleOf(chunk.op), event_);
  AppendTimes(chunk.start, chunk.end);
  absl::StrAppend(&event_, R"(,"args":{"step":)", chunk.step);
  if (is_transfer) {
    AppendTransferArgs(chunk);
  } else if (is_collective) {
    AppendCollectiveArgs(chunk);
  } else if (is_parsing) {
    absl::StrAppend(&event_, R"(,"size_bytes":)", graph.size_bytes(chunk.op - 1));
  } else {
    AppendComputationArgs(chunk);
  }
  event_ += '}';
  EndEvent();
}

std::string PerfettoWriter::TitleOf(OpIndex op) const {
  const Program& graph = subject_.graph;
  const std::string& name = subject_.profile.operations()[Index(graph.source(op))].name;
  return graph.IsParsing(op) ? name + " parsing" : name;
}

int32_t PerfettoWriter::ThreadOf(OpIndex op, int32_t service) const {
  const LaneIndex lane = subject_.graph.lane(op);
  return lanes_.ThreadOf(lane + (subject_.graph.lanes().IsJoint(lane) ? service : 0));
}

void PerfettoWriter::WritePath(const Execution& execution, const CriticalPath& path,
                               PacedStopCheck& pace) {
  WriteMetadata("process", PathProcess(), 0, "critical path", -1);
  WriteMetadata("thread", PathProcess(), kPathThread, "segments", kPathThread);
  std::vector<const PathSegment*> arrows;
  arrows.reserve(path.segments.size());
  for (const PathSegment& segment : path.segments) {
    if (!status().ok() || !pace.GoesOn(1)) return;
    WriteSegment(execution, segment);
    // The two parts of a computation that is waited for are in one event.
    if (segment.operation >= 0 && (arrows.empty() || arrows.back()->operation != segment.operation))
      arrows.push_back(&segment);
  }
  if (arrows.size() < 2) return;
  for (const PathSegment* const segment : arrows) {
    if (!status().ok() || !pace.GoesOn(1)) return;
    const ExecutedOperation& operation = execution.operations[Index(segment->operation)];
    const bool is_last = segment == arrows.back();
    BeginEvent(segment == arrows.front() ? "s"
               : is_last                 ? "f"
                                         : "t",
               operation.worker, ThreadOf(operation.op, operation.service));
    absl::StrAppend(&event_, R"(,"cat":"path","name":"critical path","id":1)",
                    is_last ? R"(,"bp":"e")" : "", R"(,"ts":)");
    AppendMicroseconds(ToPicoseconds(segment->begin), event_);
    EndEvent();
  }
}

void PerfettoWriter::WriteSegment(const Execution& execution, const PathSegment& segment) {
  const ExecutedOperation* const operation =
      segment.operation >= 0 ? &execution.operations[Index(segment.operation)] : nullptr;
  const std::string title = operation != nullptr ? TitleOf(operation->op) : "gap";
  BeginEvent("X", PathProcess(), kPathThread);
  event_ += R"(,"cat":"path","name":)";
  AppendJsonString(segment.kind == PathKind::kWaiting
                       ? absl::StrCat("waiting for worker ", segment.worker)
                       : title,
                   event_);
  AppendTimes(segment.begin, segment.end);
  absl::StrAppend(&event_, R"(,"args":{"kind":")", NameOf(segment.kind), "\"");
  if (operation != nullptr) {
    absl::StrAppend(&event_, R"(,"step":)", operation->step, R"(,"operation":)");
    AppendJsonString(title, event_);
  }
  if (segment.worker >= 0) absl::StrAppend(&event_, R"(,"worker":)", segment.worker);
  event_ += '}';
  EndEvent();
}

void PerfettoWriter::AppendTransferArgs(const ChunkRecord& chunk) {
  const int64_t size = subject_.graph.size_bytes(chunk.op);
  const std::optional<StreamServices> services = StreamServices::Of(size, subject_.scenario);
  if (!services.has_value()) {
    absl::StrAppend(&event_, R"(,"bytes":)", size);
    return;
  }
  const Span alone = subject_.graph.work(chunk.op).OfService(chunk.service);
  const double share = static_cast<double>(alone.ticks) /
                       static_cast<double>(std::max<int64_t>(1, (chunk.end - chunk.start).ticks));
  absl::StrAppend(&event_, R"(,"bytes":)", services->BytesOf(chunk.service), R"(,"size_bytes":)",
                  size, R"(,"link_share":)", share);
  absl::StrAppend(&event_, R"(,"service":)", chunk.service, R"(,"services":)", services->count);
}

void PerfettoWriter::AppendCollectiveArgs(const ChunkRecord& chunk) {
  const PlannedCollective& collective =
      subject_.collectives[Index(collective_of_[Index(chunk.op)])];
  absl::StrAppend(&event_, R"(,"collective":")", NameOf(collective.kind), R"(","size_bytes":)",
                  collective.bytes, R"(,"buffers":)", collective.members.size());
}

void PerfettoWriter::AppendComputationArgs(const ChunkRecord& chunk) {
  // The part that was slowed down beside collectives is not known here.
  if (subject_.scenario.slows_computation()) return;
  const bool is_scaled =
      subject_.graph.lanes().IsCompute(subject_.graph.lane(chunk.op)) && !compute_speed_.empty();
  const double speed = is_scaled ? compute_speed_[static_cast<size_t>(chunk.worker)] : 1;
  const double ns = static_cast<double>((chunk.end - chunk.start).ticks) * speed /
                    static_cast<double>(kTicksPerNanosecond);
  event_ += R"(,"recorded_us":)";
  AppendMicroseconds(std::llround(ns) * 1000, event_);
}

namespace {

constexpr int32_t kFirstDevice = 2;  // thread, after that of the steps
constexpr std::array<const char*, 4> kPartNames = {"forward", "backward", "backward input",
                                                   "backward weight"};

const char* PartName(PipelinePart part) { return kPartNames[static_cast<size_t>(part)]; }

// The ordered pairs of devices that a stage of one hands on to a stage of the other.
std::set<std::pair<int32_t, int32_t>> LinksOf(const PipelineLayout& layout) {
  std::set<std::pair<int32_t, int32_t>> links;
  for (int32_t stage = 1; stage < layout.stages(); ++stage) {
    const int32_t before = layout.DeviceOf(stage - 1);
    const int32_t device = layout.DeviceOf(stage);
    if (before == device) continue;
    links.emplace(before, device);
    links.emplace(device, before);
  }
  return links;
}

}  // namespace

PipelineTrace::PipelineTrace(const PipelineJob& job, TextSink sink)
    : TraceEvents(sink), job_(job), ended_(Index(job.replicas)) {}

void PipelineTrace::Begin() {
  BeginText();
  int32_t first = 0;
  for (int32_t replica = 0; replica < job_.replicas; ++replica) {
    const int32_t alike = job_.stands_for.empty() ? 1 : job_.stands_for[Index(replica)];
    WriteMetadata("process", replica, 0,
                  alike == 1 ? absl::StrCat("worker ", first)
                             : absl::StrCat("worker ", first, ", as slow as any of workers ", first,
                                            " to ", first + alike - 1),
                  replica);
    first += alike;
    const auto name = [&](int32_t thread, const std::string& text) {
      WriteMetadata("thread", replica, thread, text, thread);
    };
    name(kStepsThread, "steps");
    for (int32_t device = 0; device < job_.layout.devices; ++device)
      name(kFirstDevice + device, absl::StrCat("device ", device));
    for (const auto& [from, to] : LinksOf(job_.layout))
      name(LinkThread(from, to), absl::StrCat("link from ", from, " to ", to));
    for (int32_t device = 0; device < job_.layout.devices; ++device) {
      bool reduces = false;
      for (int32_t chunk = 0; chunk < job_.layout.chunks; ++chunk)
        reduces = reduces || !job_.reductions[Index(job_.layout.StageOf(device, chunk))].empty();
      if (reduces) name(ReductionThread(device), absl::StrCat("gradients of ", device));
    }
  }
}

int32_t PipelineTrace::LinkThread(int32_t from, int32_t to) const {
  const int32_t p = job_.layout.devices;
  return kFirstDevice + p + from * 2 + (to == (from + 1) % p ? 0 : 1);
}

int32_t PipelineTrace::ReductionThread(int32_t device) const {
  return kFirstDevice + 3 * job_.layout.devices + device;
}

int32_t PipelineTrace::ThreadOf(const PipelineSlice& slice) const {
  if (slice.kind == PipelineSlice::Kind::kTransfer) return LinkThread(slice.device, slice.to);
  if (slice.kind == PipelineSlice::Kind::kReduction) return ReductionThread(slice.device);
  return kFirstDevice + slice.device;
}

std::string PipelineTrace::NameOf(const PipelineSlice& slice) const {
  const std::string chunk =
      job_.layout.chunks > 1 ? absl::StrCat(", chunk ", slice.work.chunk) : "";
  const std::string of = absl::StrCat(" ", slice.work.micro_batch, chunk);
  switch (slice.kind) {
    case PipelineSlice::Kind::kComputation:
      return absl::StrCat(PartName(slice.work.part), of);
    case PipelineSlice::Kind::kTransfer:
      return absl::StrCat(slice.work.part == PipelinePart::kForward ? "activation" : "gradient",
                          of);
    case PipelineSlice::Kind::kReduction:
      return absl::StrCat("gradients of stage ", slice.stage);
    default:
      return "end of step";
  }
}

void PipelineTrace::OnSlice(const PipelineSlice& slice) {
  if (!status().ok()) return;
  if (slice.kind == PipelineSlice::Kind::kStep) return EndStep(slice);
  WriteSlice(slice);
  if (slice.kind == PipelineSlice::Kind::kTransfer) {
    WriteFlow("t", slice, slice.output);
  } else {
    if (slice.output >= 0) WriteFlow("s", slice, slice.output);
    if (slice.input >= 0) WriteFlow("f", slice, slice.input);
  }
}

void PipelineTrace::WriteSlice(const PipelineSlice& slice) {
  using Kind = PipelineSlice::Kind;
  const char* const category = slice.kind == Kind::kTransfer    ? "transfer"
                               : slice.kind == Kind::kReduction ? "collective"
                                                                : "computation";
  BeginEvent("X", slice.replica, ThreadOf(slice));
  absl::StrAppend(&event_, R"(,"cat":")", category, R"(","name":)");
  AppendJsonString(NameOf(slice), event_);
  AppendTimes(slice.begin, slice.end);
  absl::StrAppend(&event_, R"(,"args":{"step":)", slice.step);
  const bool is_reduction = slice.kind == Kind::kReduction;
  if (is_reduction) event_ += R"(,"collective":"all-reduce")";
  if (slice.kind == Kind::kRest) {
    event_ += R"(,"part":"rest")";
  } else {
    absl::StrAppend(&event_, R"(,"stage":)", slice.stage);
    if (!is_reduction)
      absl::StrAppend(&event_, R"(,"micro_batch":)", slice.work.micro_batch, R"(,"chunk":)",
                      slice.work.chunk);
  }
  if (slice.kind == Kind::kComputation)
    absl::StrAppend(&event_, R"(,"part":")", PartName(slice.work.part), "\"");
  if (slice.kind == Kind::kTransfer || is_reduction)
    absl::StrAppend(&event_, R"(,"size_bytes":)", slice.bytes);
  event_ += '}';
  EndEvent();
}

void PipelineTrace::WriteFlow(const char* phase, const PipelineSlice& slice, int64_t transfer) {
  BeginEvent(phase, slice.replica, ThreadOf(slice));
  absl::StrAppend(&event_, R"(,"cat":"transfer","name":"transfer","id":)", transfer,
                  *phase == 'f' ? R"(,"bp":"e")" : "", R"(,"ts":)");
  AppendMicroseconds(ToPicoseconds(slice.begin), event_);
  EndEvent();
}

// A step begins with its first device, but not before the one before it has ended.
void PipelineTrace::EndStep(const PipelineSlice& slice) {
  const auto [found, is_new] = open_.try_emplace(std::pair(slice.replica, slice.step));
  OpenStep& step = found->second;
  step.begin = is_new ? slice.begin : std::min(step.begin, slice.begin);
  step.end = std::max(step.end, slice.end);
  if (++step.devices < job_.layout.devices) return;
  Instant& ended = ended_[Index(slice.replica)];
  WriteStep(slice.replica, slice.step, std::max(step.begin, ended), step.end);
  ended = step.end;
  open_.erase(found);
}

int64_t MostPipelineEvents(const PipelineLayout& layout, int32_t replicas, int32_t steps) {
  const int64_t parts = SplitsBackward(layout.schedule) ? 3 : 2;
  // A computation, its transfer and three events of its arrow; of a device its end, and gradients
  // that a stage has no more of than operations, which are counted by the caller.
  const int64_t of_step = 5 * parts * layout.stages() * layout.micro_batches + layout.devices + 1;
  const int64_t names = 2 * (2 + 4 * int64_t{layout.devices});
  return replicas * (steps * of_step + names);
}

}  // namespace stepcast
