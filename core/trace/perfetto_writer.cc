#include "core/trace/perfetto_writer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

#include "core/communication/parameter_servers.h"
#include "core/trace/json_string.h"
#include "core/trace/trace_time.h"

namespace stepcast {

PerfettoWriter::PerfettoWriter(const Subject& subject, TextSink sink)
    : subject_(subject), lanes_(subject.graph), pieces_(sink) {
  for (const WorkerGroup& group : subject.scenario.worker_groups) {
    compute_speed_.insert(compute_speed_.end(), static_cast<size_t>(group.count),
                          group.compute_speed_factor.value_or(1));
  }
}

void PerfettoWriter::Begin() {
  pieces_.Append("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
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

void PerfettoWriter::End() {
  pieces_.Append("\n]}\n");
  pieces_.Finish();
}

void PerfettoWriter::BeginEvent(const char* phase, int32_t worker, int32_t thread) {
  event_.clear();
  absl::StrAppend(&event_, events_ > 0 ? ",\n" : "", R"({"ph":")", phase, R"(","pid":)", worker + 1,
                  R"(,"tid":)", thread);
}

void PerfettoWriter::EndEvent() {
  event_ += '}';
  pieces_.Append(event_);
  ++events_;
}

void PerfettoWriter::WriteMetadata(const char* kind, int32_t worker, int32_t thread,
                                   const std::string& name, int32_t sort_index) {
  BeginEvent("M", worker, thread);
  absl::StrAppend(&event_, R"(,"name":")", kind, R"(_name","args":{"name":)");
  AppendJsonString(name, event_);
  event_ += '}';
  EndEvent();
  BeginEvent("M", worker, thread);
  absl::StrAppend(&event_, R"(,"name":")", kind, R"(_sort_index","args":{"sort_index":)",
                  sort_index, "}");
  EndEvent();
}

void PerfettoWriter::WriteStep(int32_t worker, int32_t step, Instant begin, Instant end) {
  BeginEvent("X", worker, lanes_.StepsThread());
  absl::StrAppend(&event_, R"(,"cat":"step","name":"step )", step, "\"");
  AppendTimes(begin, end);
  absl::StrAppend(&event_, R"(,"args":{"step":)", step, "}");
  EndEvent();
}

void PerfettoWriter::WriteChunk(const ChunkRecord& chunk) {
  const Program& graph = subject_.graph;
  const bool is_transfer = graph.IsTransfer(chunk.op);
  const bool is_parsing = graph.IsParsing(chunk.op);
  BeginEvent("X", chunk.worker, lanes_.ThreadOf(graph.lane(chunk.op)));
  absl::StrAppend(&event_, R"(,"cat":")",
                  is_transfer  ? "transfer"
                  : is_parsing ? "parsing"
                               : "computation",
                  R"(","name":)");
  const std::string& name =
      subject_.profile.operations()[static_cast<size_t>(graph.source(chunk.op))].name;
  AppendJsonString(is_parsing ? name + " parsing" : name, event_);
  AppendTimes(chunk.start, chunk.end);
  absl::StrAppend(&event_, R"(,"args":{"step":)", chunk.step);
  if (is_transfer) {
    AppendTransferArgs(chunk);
  } else if (is_parsing) {
    absl::StrAppend(&event_, R"(,"size_bytes":)", graph.size_bytes(chunk.op - 1));
  } else {
    AppendComputationArgs(chunk);
  }
  event_ += '}';
  EndEvent();
}

void PerfettoWriter::AppendTimes(Instant begin, Instant end) {
  const int64_t from = ToPicoseconds(begin);
  event_ += R"(,"ts":)";
  AppendMicroseconds(from, event_);
  event_ += R"(,"dur":)";
  AppendMicroseconds(ToPicoseconds(end) - from, event_);
}

void PerfettoWriter::AppendTransferArgs(const ChunkRecord& chunk) {
  const int64_t size = subject_.graph.size_bytes(chunk.op);
  const StreamServices services =
      StreamServices::Of(size, subject_.scenario.servers().multiplexing);
  const Span alone = subject_.graph.work(chunk.op).OfService(chunk.service);
  const double share = static_cast<double>(alone.ticks) /
                       static_cast<double>(std::max<int64_t>(1, (chunk.end - chunk.start).ticks));
  absl::StrAppend(&event_, R"(,"bytes":)", services.BytesOf(chunk.service), R"(,"size_bytes":)",
                  size, R"(,"link_share":)", share);
  absl::StrAppend(&event_, R"(,"service":)", chunk.service, R"(,"services":)", services.count);
}

void PerfettoWriter::AppendComputationArgs(const ChunkRecord& chunk) {
  const bool is_scaled =
      subject_.graph.lane(chunk.op) == ServerLanes::kWorker && !compute_speed_.empty();
  const double speed = is_scaled ? compute_speed_[static_cast<size_t>(chunk.worker)] : 1;
  const double ns = static_cast<double>((chunk.end - chunk.start).ticks) * speed /
                    static_cast<double>(kTicksPerNanosecond);
  event_ += R"(,"recorded_us":)";
  AppendMicroseconds(std::llround(ns) * 1000, event_);
}

}  // namespace stepcast
