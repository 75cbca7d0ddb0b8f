#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/error.h"
#include "core/importing/chakra/chakra_trace.h"
#include "core/importing/file_kind.h"
#include "core/importing/pytorch/pytorch_trace.h"
#include "core/importing/tensorflow/tensorflow_profile.h"
#include "core/replay/overlap_slowdown.h"
#include "server/handlers/profile_handler.h"

namespace stepcast::server {

namespace {

// Field of several recordings, before the place of one of them.
constexpr char kAtRecordings[] = "recordings";

bool IsAtBytes(const std::string& field) {
  return absl::StartsWith(field, "line ") || field == kAtRecording || field == kAtGraph ||
         absl::StartsWith(field, kAtRecordings);
}

absl::Status UnderOptions(std::string_view options, const absl::Status& status) {
  ErrorDetails details = DetailsOf(status);
  if (details.faults.empty()) return status;
  for (Fault& fault : details.faults) {
    if (!IsAtBytes(fault.field)) fault.field = std::string(options).append(".").append(fault.field);
  }
  const size_t left_out = details.faults_left_out;
  details.faults_left_out = 0;
  const absl::Status moved = FaultsError(details.reason, std::move(details.faults));
  ErrorDetails moved_details = DetailsOf(moved);
  moved_details.faults_left_out += left_out;
  return MakeError(moved.code(), {moved.message().data(), moved.message().size()},
                   std::move(moved_details));
}

// A layer profile's faults name lines, and its layers may come in any order, so it is read whole;
// it has a limit of its own.
absl::StatusOr<std::string> ReadText(ByteSource& source) {
  constexpr size_t kMaxLayerBytes = size_t{256} << 20;
  std::array<char, size_t{64} << 10> block;
  std::string text;
  while (true) {
    const absl::StatusOr<size_t> read = source.Read(block.data(), block.size());
    if (!read.ok()) return read.status();
    if (*read == 0) return text;
    text.append(block.data(), *read);
    if (text.size() > kMaxLayerBytes) {
      return ImportFault(kAtRecording, absl::StrCat("more than max_layer_bytes = ", kMaxLayerBytes,
                                                    " of layers as text: give those of one model"));
    }
  }
}

// True if bytes of that kind may be what the call says they are.
bool MayBe(const ImportProfileCall& call, FileKind kind) {
  if (std::holds_alternative<LayerProfileOptions>(call.format)) return kind == FileKind::kLayers;
  if (std::holds_alternative<TimelineOptions>(call.format)) return kind == FileKind::kTimeline;
  const bool is_execution_trace = kind == FileKind::kPyTorchExecutionTrace;
  if (std::holds_alternative<PyTorchTraceOptions>(call.format))
    return kind == FileKind::kPyTorchTrace || kind == FileKind::kTimeline || is_execution_trace;
  if (std::holds_alternative<HorovodTimelineOptions>(call.format))
    return kind == FileKind::kHorovodTimeline;
  if (std::holds_alternative<ChakraTraceOptions>(call.format) &&
      (kind == FileKind::kChakraJson || kind == FileKind::kChakra || is_execution_trace))
    return true;
  return kind == FileKind::kBinary;
}

// Error about bytes that could not be read, whose faults `is_of_them` knows: that no reader takes
// such a file, or what kind it looks like, if that is another than was said, and which are read.
template <typename IsOfThem>
absl::Status SayWhatItLooksLike(const absl::Status& status, const ImportProfileCall& call,
                                KindSource& source, const IsOfThem& is_of_them) {
  ErrorDetails details = DetailsOf(status);
  const auto of_bytes =
      std::find_if(details.faults.begin(), details.faults.end(),
                   [&is_of_them](const Fault& fault) { return is_of_them(fault.field); });
  if (details.reason != "IMPORT_INVALID" || of_bytes == details.faults.end()) return status;
  const FileKind kind = source.Kind().value_or(FileKind::kUnknown);
  const std::string refusal = RefusalOf(kind);
  const bool is_of_graph = of_bytes->field == kAtGraph;
  if (refusal.empty() && (is_of_graph || MayBe(call, kind))) return status;
  const std::string looks(TextOf(kind));
  if (refusal.empty()) {
    of_bytes->description.append("; it looks like ")
        .append(looks)
        .append("; ")
        .append(kReadableFormats);
    // Faults of all else follow from that.
    std::rotate(details.faults.begin(), of_bytes, of_bytes + 1);
  } else {
    const std::string field =
        absl::StartsWith(of_bytes->field, "line ") ? kAtRecording : of_bytes->field;
    details.faults = {{.field = field, .description = refusal}};
    details.faults_left_out = 0;
  }
  const absl::Status said = FaultsError(details.reason, details.faults);
  ErrorDetails said_details = DetailsOf(said);
  said_details.faults_left_out += details.faults_left_out;
  said_details.metadata = std::move(details.metadata);
  said_details.metadata.insert_or_assign("looks_like", looks);
  return MakeError(said.code(), {said.message().data(), said.message().size()},
                   std::move(said_details));
}

bool IsOfRecording(const std::string& field) { return IsAtBytes(field) && field != kAtGraph; }
bool IsOfGraph(const std::string& field) { return field == kAtGraph; }

struct Importer {
  const ImportBytes& bytes;
  const ProfileLimits& limits;
  StopCheck stop;

  absl::StatusOr<ImportedProfile> operator()(std::monostate) const {
    return FaultsError(
        "REQUEST_INVALID",
        {{.field = "header.format",
          .description =
              "one of layer_profile, model_zoo, run_metadata, timeline, pytorch, chakra and "
              "horovod is required"}});
  }
  absl::StatusOr<ImportedProfile> operator()(LayerProfileOptions options) const {
    if (bytes.graph != nullptr) {
      absl::StatusOr<std::string> sizes = ReadText(*bytes.graph);
      if (!sizes.ok()) return sizes.status();
      options.sizes = *std::move(sizes);
    }
    const absl::StatusOr<std::string> text = ReadText(bytes.recording);
    if (!text.ok()) return text.status();
    return Under("header.layer_profile", ImportLayerProfile(*text, options, limits));
  }
  absl::StatusOr<ImportedProfile> operator()(const ZooImport& zoo) const {
    if (absl::Status status = CheckNoGraph("a model of the zoo"); !status.ok()) return status;
    char first = 0;
    const absl::StatusOr<size_t> read = bytes.recording.Read(&first, 1);
    if (!read.ok()) return read.status();
    if (*read > 0)
      return FaultsError(
          "REQUEST_INVALID",
          {{.field = "chunk", .description = "bytes, where a model of the zoo takes none"}});
    absl::StatusOr<Profile> profile = BuildZooProfile(zoo.model, zoo.options, limits);
    if (!profile.ok()) return UnderOptions("header.model_zoo", profile.status());
    FaultList none;
    const StepVariation variation =
        ResolveStepVariation(zoo.options.variation, profile->operations().size(), limits, none);
    return ImportedProfile{.profile = *std::move(profile), .notes = {NoteOn(variation)}};
  }
  absl::StatusOr<ImportedProfile> operator()(const RecordingOptions& options) const {
    return Under("header.run_metadata",
                 ImportRunMetadata(bytes.recording, bytes.graph, options, limits, stop));
  }
  absl::StatusOr<ImportedProfile> operator()(const TimelineOptions& options) const {
    return Under("header.timeline",
                 ImportTimeline(bytes.recording, bytes.graph, options, limits, stop));
  }
  absl::StatusOr<ImportedProfile> operator()(const PyTorchTraceOptions& options) const {
    if (absl::Status status = CheckNoGraph("a trace of PyTorch's profiler"); !status.ok())
      return status;
    return Under("header.pytorch", ImportPyTorchTrace(bytes.recording, options, limits, stop));
  }
  absl::StatusOr<ImportedProfile> operator()(const ChakraTraceOptions& options) const {
    if (absl::Status status = CheckNoGraph("a Chakra execution trace"); !status.ok()) return status;
    return Under("header.chakra", ImportChakraTrace(bytes.recording, options, limits, stop));
  }
  absl::StatusOr<ImportedProfile> operator()(const HorovodTimelineOptions& options) const {
    if (absl::Status status = CheckNoGraph("a timeline of Horovod"); !status.ok()) return status;
    return Under("header.horovod", ImportHorovodTimeline(bytes.recording, options, limits, stop));
  }

  absl::Status CheckNoGraph(const char* format) const {
    if (bytes.graph == nullptr) return absl::OkStatus();
    return FaultsError(
        "REQUEST_INVALID",
        {{.field = "graph_chunk",
          .description = std::string("bytes, where ").append(format).append(" takes no graph")}});
  }

  static absl::StatusOr<ImportedProfile> Under(std::string_view options,
                                               absl::StatusOr<ImportedProfile> imported) {
    if (!imported.ok()) return UnderOptions(options, imported.status());
    return imported;
  }
};

}  // namespace

namespace {

// A slow-down that the call gives, by its field.
struct AskedSlowdown {
  const char* field;
  std::optional<double> value;
  double most;
};
std::array<AskedSlowdown, 2> AskedSlowdowns(const ImportProfileCall& call) {
  return {{{"header.overlap_slowdown", call.overlap_slowdown, kMaxOverlapSlowdown},
           {"header.collective_slowdown", call.collective_slowdown, kMaxCollectiveSlowdown}}};
}

absl::Status Refused(const char* field, std::string why) {
  return FaultsError("REQUEST_INVALID", {{.field = field, .description = std::move(why)}});
}

absl::Status CheckSlowdowns(const ImportProfileCall& call, const ImportBytes& bytes) {
  for (const AskedSlowdown& asked : AskedSlowdowns(call)) {
    if (!asked.value.has_value()) continue;
    if (!(*asked.value >= 1 && *asked.value <= asked.most))
      return Refused(asked.field, absl::StrCat(*asked.value, " is not from 1 to ", asked.most));
    if (bytes.recordings.empty()) {
      return Refused(asked.field,
                     absl::StrCat(*asked.value,
                                  " given, and one worker's recording has no collectives of others "
                                  "beside its computation: give it to the scenario"));
    }
  }
  return absl::OkStatus();
}

// The slow-down asked for; else that which the recording tells for certain; else 1. `found`: as it
// tells it.
struct Slowdown {
  double value = 1;
  std::string source;
};
template <typename Found>
Slowdown SlowdownOf(const std::optional<double>& asked, const std::optional<Found>& found,
                    double most) {
  if (asked.has_value()) return {.value = *asked, .source = " as asked for"};
  if (!found.has_value() || found->interval.lower <= 1) return {};
  return {.value = std::min(found->slowdown, most),
          .source = absl::StrFormat(" as they tell (%.3g to %.3g)", found->interval.lower,
                                    found->interval.upper)};
}

// Takes what computation cost the collectives beside it, and what they cost it, out of the
// recording's times: as much as the call says, else what the recording tells for certain; with
// notes.
absl::Status TakeContentionOut(const ImportProfileCall& call, const JobRecordingReport& report,
                               const ProfileLimits& limits, StopCheck stop,
                               MultiRankRecording& recording) {
  if (recording.has_servers()) {
    for (const AskedSlowdown& asked : AskedSlowdowns(call)) {
      if (asked.value.has_value())
        return Refused(asked.field, absl::StrCat(*asked.value,
                                                 " given, and workers that meet at parameter "
                                                 "servers have no collectives"));
    }
    return absl::OkStatus();
  }
  std::vector<NodeClock> clocks;
  for (const WorkerReport& worker : report.workers) clocks.push_back(worker.clock);
  std::optional<CollectiveSlowdown> of_collectives;
  // A worker that was not recorded may have computed beside a collective.
  if (!call.collective_slowdown.has_value() && recording.job_workers == 0) {
    absl::StatusOr<std::optional<CollectiveSlowdown>> found =
        CollectiveSlowdownOf(recording, clocks, stop);
    if (!found.ok()) return found.status();
    of_collectives = *std::move(found);
  }
  if (const Slowdown slowdown =
          SlowdownOf(call.collective_slowdown, of_collectives, kMaxCollectiveSlowdown);
      slowdown.value != 1) {
    absl::StatusOr<Profile> freed =
        FreeOfContention(recording, clocks, slowdown.value, limits, stop);
    if (!freed.ok()) return freed.status();
    recording.profile = *std::move(freed);
    recording.notes.push_back(absl::StrFormat(
        "a collective took %.3g times as long while some worker computed,%s: predictions take its "
        "times as if none had, and put that back where workers compute",
        slowdown.value, slowdown.source));
  }
  std::optional<OverlapSlowdown> of_computation;
  if (!call.overlap_slowdown.has_value()) {
    absl::StatusOr<std::optional<OverlapSlowdown>> found =
        OverlapSlowdownOf(recording, clocks, stop);
    if (!found.ok()) return found.status();
    of_computation = *std::move(found);
  }
  const Slowdown slowdown = SlowdownOf(call.overlap_slowdown, of_computation, kMaxOverlapSlowdown);
  if (slowdown.value == 1) return absl::OkStatus();
  absl::StatusOr<Profile> freed = FreeOfOverlap(recording, clocks, slowdown.value, limits, stop);
  if (!freed.ok()) return freed.status();
  recording.profile = *std::move(freed);
  recording.notes.push_back(absl::StrFormat(
      "computation took %.3g times as long beside a collective,%s: its times are stored as if "
      "nothing had run beside, and predictions put that back where collectives run",
      slowdown.value, slowdown.source));
  return absl::OkStatus();
}

absl::StatusOr<ImportedFormat> OfPipeline(const ImportProfileCall& call, ImportedProfile pipeline) {
  for (const AskedSlowdown& asked : AskedSlowdowns(call)) {
    if (asked.value.has_value())
      return Refused(asked.field, absl::StrCat(*asked.value,
                                               " given, and the recordings are of a pipeline's "
                                               "stages, which reduce nothing together"));
  }
  return ImportedFormat{.imported = std::move(pipeline), .recording = std::nullopt};
}

// The recordings of several workers: a profile that holds them all, and what they say of each
// other.
absl::StatusOr<ImportedFormat> ImportRecordings(const ImportProfileCall& call,
                                                const ImportBytes& bytes,
                                                const ProfileLimits& limits, StopCheck stop) {
  const auto* pytorch = std::get_if<PyTorchTraceOptions>(&call.format);
  const auto* chakra = std::get_if<ChakraTraceOptions>(&call.format);
  const auto* run_metadata = std::get_if<RecordingOptions>(&call.format);
  if (pytorch == nullptr && chakra == nullptr && run_metadata == nullptr) {
    return FaultsError(
        "REQUEST_INVALID",
        {{.field = "recording",
          .description = absl::StrCat(bytes.recordings.size(),
                                      " recordings, where only pytorch, chakra and "
                                      "run_metadata take those of several workers")}});
  }
  if (bytes.graph != nullptr && run_metadata == nullptr) {
    return FaultsError("REQUEST_INVALID",
                       {{.field = "graph_chunk",
                         .description = "bytes, where traces of several workers take no graph"}});
  }
  std::deque<KindSource> sources;
  std::vector<RankTrace> traces;
  for (const RankTrace& trace : bytes.recordings)
    traces.push_back({.recording = &sources.emplace_back(*trace.recording), .name = trace.name});
  absl::StatusOr<PyTorchJob> job =
      pytorch != nullptr ? ImportPyTorchJob(traces, *pytorch, limits, stop)
      : chakra != nullptr
          ? absl::StatusOr<PyTorchJob>(ImportChakraRanks(traces, *chakra, limits, stop))
          : ImportRunMetadataOfWorkers(traces, bytes.graph, *run_metadata, limits, stop);
  if (!job.ok()) {
    const absl::Status status = UnderOptions(pytorch != nullptr  ? "header.pytorch"
                                             : chakra != nullptr ? "header.chakra"
                                                                 : "header.run_metadata",
                                             job.status());
    const std::vector<Fault> faults = DetailsOf(status).faults;
    for (size_t i = 0; i < sources.size() && !faults.empty(); ++i) {
      const std::string at = absl::StrCat(kAtRecordings, "[", i, "]");
      if (faults.front().field != at) continue;
      return SayWhatItLooksLike(status, call, sources[i],
                                [&at](const std::string& field) { return field == at; });
    }
    return status;
  }
  if (auto* pipeline = std::get_if<ImportedProfile>(&*job))
    return OfPipeline(call, std::move(*pipeline));
  auto& recording = std::get<MultiRankRecording>(*job);
  absl::StatusOr<JobRecordingReport> report = ReportOnRecording(recording, stop);
  if (!report.ok()) {
    ErrorDetails details = DetailsOf(report.status());
    if (details.reason.empty()) return report.status();
    for (Fault& fault : details.faults) fault.field = kAtRecordings;
    return MakeError(report.status().code(),
                     {report.status().message().data(), report.status().message().size()},
                     std::move(details));
  }
  if (absl::Status status = TakeContentionOut(call, *report, limits, stop, recording); !status.ok())
    return status;
  return ImportedFormat{
      .imported = {.profile = std::move(recording.profile), .notes = std::move(recording.notes)},
      .recording = *std::move(report)};
}

}  // namespace

absl::StatusOr<ImportedFormat> ImportFormat(const ImportProfileCall& call, const ImportBytes& bytes,
                                            const ProfileLimits& limits, StopCheck stop) {
  if (absl::Status status = CheckSlowdowns(call, bytes); !status.ok()) return status;
  if (!bytes.recordings.empty()) return ImportRecordings(call, bytes, limits, stop);
  KindSource recording(bytes.recording);
  std::optional<KindSource> graph;
  if (bytes.graph != nullptr) graph.emplace(*bytes.graph);
  const ImportBytes looked_at{.recording = recording, .graph = graph ? &*graph : nullptr};
  absl::StatusOr<ImportedProfile> imported =
      std::visit(Importer{looked_at, limits, stop}, call.format);
  if (!imported.ok()) {
    absl::Status said = SayWhatItLooksLike(imported.status(), call, recording, IsOfRecording);
    return graph ? SayWhatItLooksLike(said, call, *graph, IsOfGraph) : said;
  }
  return ImportedFormat{.imported = *std::move(imported), .recording = std::nullopt};
}

}  // namespace stepcast::server
