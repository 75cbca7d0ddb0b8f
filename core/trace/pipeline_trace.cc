#include "core/trace/pipeline_trace.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"

#include "core/base/index.h"

namespace stepcast {

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
