#include "core/trace/perfetto_writer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"

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
  // What waits for nothing begins with the step, and its last operation ends it.
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
  // How much of it was slowed down beside collectives is not known here.
  if (subject_.scenario.slows_computation()) return;
  const bool is_scaled =
      subject_.graph.lanes().IsCompute(subject_.graph.lane(chunk.op)) && !compute_speed_.empty();
  const double speed = is_scaled ? compute_speed_[static_cast<size_t>(chunk.worker)] : 1;
  const double ns = static_cast<double>((chunk.end - chunk.start).ticks) * speed /
                    static_cast<double>(kTicksPerNanosecond);
  event_ += R"(,"recorded_us":)";
  AppendMicroseconds(std::llround(ns) * 1000, event_);
}

}  // namespace stepcast
