#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/common/wire_reader.h"
#include "core/importing/tensorflow/recorded_operations.h"
#include "core/importing/tensorflow/recorded_rows.h"
#include "core/importing/tensorflow/tensorflow_graph.h"
#include "core/importing/tensorflow/tensorflow_profile.h"
#include "core/importing/tensorflow/tensorflow_readers.h"

namespace stepcast {

namespace {

// The step that a timeline shows: what ran on the machine, and what each of that waited for.
struct TimelineStep {
  explicit TimelineStep(const ProfileLimits& limits)
      : rows(limits), graph(false, kAtRecording, limits) {}

  RecordedRows rows;        // of one step
  TensorflowGraph graph;    // of the nodes that ran
  int64_t copies = 0;       // events left out: kernels by stream, and copies between host and GPU
  int64_t bookkeeping = 0;  // events left out: of the executor itself
  int64_t outside = 0;      // inputs that nothing shown makes: fed, or folded
};

// Device of `/job:localhost/replica:0/task:0/cpu:0 Compute`. Empty: a process of another kind.
std::string_view DeviceOf(const Timeline& timeline, int64_t process) {
  constexpr std::string_view kComputes = " Compute";
  const auto found = timeline.processes.find(process);
  if (found == timeline.processes.end()) return {};
  std::string_view name = found->second;
  if (name.size() <= kComputes.size() || name.substr(name.size() - kComputes.size()) != kComputes)
    return {};
  name.remove_suffix(kComputes.size());
  return name;
}

class Filler {
 public:
  Filler(const Timeline& timeline, TimelineStep& step) : timeline_(timeline), step_(step) {
    for (const TimelineEvent& event : timeline.events) ran_.insert(event.node);
  }

  absl::Status Fill() {
    if (absl::Status status = step_.rows.BeginStep(); !status.ok()) return status;
    for (const TimelineEvent& event : timeline_.events) {
      if (absl::Status status = Add(event); !status.ok()) return status;
    }
    return step_.rows.EndStep();
  }

 private:
  absl::Status Add(const TimelineEvent& event) {
    const std::string_view name = DeviceOf(timeline_, event.process);
    if (name.empty()) {
      return ImportFault(
          kAtRecording, absl::StrCat("event ", Quoted(event.node), " is of process ", event.process,
                                     ", which is not named as a device"));
    }
    const TensorflowDevice device = ParseTensorflowDevice(name);
    if (device.role != DeviceRole::kWorker || event.op == "RecvTensor") {
      return ImportFault(kAtRecording,
                         absl::StrCat("event ", Quoted(event.node), " on ", Quoted(name),
                                      " is of several machines, where a timeline does not say "
                                      "which tensors travelled; import the RunMetadata"));
    }
    if (device.rows == DeviceRows::kCopies) ++step_.copies;
    const bool executor = event.node == "_SOURCE" || event.node == "_SINK";
    if (executor) ++step_.bookkeeping;
    if (executor || device.rows == DeviceRows::kCopies) return absl::OkStatus();
    if (event.node.empty()) return ImportFault(kAtRecording, "an event without args.name");
    const absl::StatusOr<int32_t> index = step_.rows.Device(name);
    if (!index.ok()) return index.status();
    const absl::StatusOr<int32_t> node = step_.rows.Node(event.node, *index);
    if (!node.ok()) return node.status();
    if (absl::Status status =
            step_.rows.AddRow(*node, event.start_ns, event.start_ns + event.length_ns);
        !status.ok())
      return status;
    return device.rows == DeviceRows::kKernels ? absl::OkStatus() : AddToGraph(event);
  }

  absl::Status AddToGraph(const TimelineEvent& event) {
    GraphNodeText text{.name = event.node, .op = event.op};
    for (const std::string& input : event.inputs) text.inputs.push_back(Maker(input));
    return step_.graph.Add(text);
  }

  // An input as the node that makes it. Between devices TensorFlow puts nodes that send and
  // receive, which are not shown: `name/_7` is then `name`.
  std::string Maker(const std::string& input) {
    const std::string_view text = input;
    const std::string_view mark = text.substr(0, !text.empty() && text.front() == '^' ? 1 : 0);
    std::string_view name = text.substr(mark.size());
    name = name.substr(0, name.rfind(':'));
    if (!Ran(name)) {
      const size_t suffix = name.rfind("/_");
      if (suffix != std::string_view::npos && Ran(name.substr(0, suffix))) {
        name = name.substr(0, suffix);
      } else {
        ++step_.outside;
      }
    }
    return std::string(mark).append(name);
  }

  bool Ran(std::string_view name) const {
    return ran_.contains(absl::string_view(name.data(), name.size()));
  }

  const Timeline& timeline_;
  TimelineStep& step_;
  absl::flat_hash_set<absl::string_view> ran_;
};

// Fails where an event is of a parameter server, or received from one: a timeline does not say
// which tensor that was.
absl::Status FillStep(const Timeline& timeline, TimelineStep& step) {
  return Filler(timeline, step).Fill();
}

constexpr size_t kMaxNamed = 20;

class TimelineImport {
 public:
  TimelineImport(const TimelineOptions& options, const ProfileLimits& limits)
      : options_(options), limits_(limits), step_(limits), given_(false, kAtGraph, limits) {}

  absl::Status Read(ByteSource& recording, ByteSource* graph, StopCheck stop) {
    if (graph != nullptr) {
      WireReader reader(*graph, kAtGraph, stop);
      if (absl::Status status = ReadWholeGraph(reader, given_); !status.ok()) return status;
    }
    const absl::StatusOr<Timeline> timeline = ReadTimeline(recording, limits_, stop);
    if (timeline.ok() && timeline->events.empty())
      return ImportFault(kAtRecording, "it has no events (ph X): record a step that trains");
    return timeline.ok() ? FillStep(*timeline, step_) : timeline.status();
  }

  absl::StatusOr<ImportedProfile> Make() {
    if (absl::Status status = FindSizes(); !status.ok()) return status;
    if (absl::Status status = AddOperations(); !status.ok()) return status;
    const RecordingOptions& recording = options_.recording;
    ProfileDraft draft{.display_name = recording.model,
                       .model = recording.model,
                       .framework = std::string(kTimelineFramework),
                       .batch_size = recording.batch_size};
    draft.platform = recording.platform;
    // ScheduleStep needs what a profile promises.
    draft.operations = operations_;
    draft.steps = {{.start_ns = std::vector<int64_t>(operations_.size(), 0),
                    .end_ns = std::vector<int64_t>(operations_.size(), 1)}};
    const absl::StatusOr<Profile> sound = Profile::Create(draft, limits_);
    if (!sound.ok()) return AsImportFaults(sound.status());
    FaultList faults;
    const StepVariation variation =
        ResolveStepVariation(options_.variation, operations_.size(), limits_, faults);
    if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());
    draft.steps = MakeSteps(operations_, durations_ns_, recording.platform, variation);
    absl::StatusOr<Profile> profile = Profile::Create(std::move(draft), limits_);
    if (!profile.ok()) return AsImportFaults(profile.status());
    return ImportedProfile{.profile = *std::move(profile), .notes = Notes(variation)};
  }

 private:
  bool Ran(size_t node) const {
    return step_.rows.steps().front().start_ns[node] != RecordedRows::kMissing;
  }
  bool Computes(size_t node) const {
    return step_.rows.device_of(step_.rows.nodes()[node]).rows == DeviceRows::kOperations &&
           Ran(node);
  }
  int32_t InGraph(size_t node) const { return step_.graph.Find("", step_.rows.nodes()[node].name); }

  // Finds the variables that are on the server, and their sizes.
  absl::Status FindSizes() {
    std::vector<std::string> variables;
    for (size_t i = 0; i < step_.rows.nodes().size(); ++i) {
      if (!Computes(i) || step_.graph.node(InGraph(i)).kind != TensorflowGraph::Kind::kVariable)
        continue;
      const std::string& name = step_.rows.nodes()[i].name;
      variables.push_back(name);
      const int32_t defined = given_.Find("", name);
      if (defined >= 0 && given_.node(defined).variable_bytes > 0)
        sizes_[name] = given_.node(defined).variable_bytes;
    }
    std::sort(variables.begin(), variables.end());
    FaultList faults;
    for (const auto& [name, bytes] : options_.variable_bytes) {
      const std::string field = absl::StrCat("variable_bytes[", Quoted(name), "]");
      if (!std::binary_search(variables.begin(), variables.end(), name))
        faults.Add(field, "no variable of this name ran");
      if (bytes < 1) faults.Add(field, absl::StrCat(bytes, " is below 1"));
      if (bytes > limits_.max_transfer_bytes)
        faults.Add(field, OverLimit(bytes, "max_transfer_bytes", limits_.max_transfer_bytes));
      sizes_[name] = bytes;
    }
    if (variables.empty())
      faults.Add(kAtRecording,
                 "no variable ran, so there is nothing that a parameter server could keep");
    if (!variables.empty() && sizes_.empty()) faults.Add("variable_bytes", Required(variables));
    local_variables_ = variables.size() - std::min(variables.size(), sizes_.size());
    return faults.empty() ? absl::OkStatus()
                          : FaultsError("IMPORT_INVALID", std::move(faults).Take());
  }

  static std::string Required(const std::vector<std::string>& variables) {
    std::string text = absl::StrCat("required, or a graph: a timeline has no sizes. Its ",
                                    variables.size(), " variables are ");
    for (size_t i = 0; i < variables.size() && i < kMaxNamed; ++i)
      absl::StrAppend(&text, i > 0 ? ", " : "", Quoted(variables[i]));
    return absl::StrCat(text, variables.size() > kMaxNamed ? ", ..." : "");
  }

  // In the order in which they started, with uploads before their updates.
  absl::Status AddOperations() {
    const RecordedStep& step = step_.rows.steps().front();
    std::vector<bool> kept;
    for (size_t i = 0; i < step_.rows.nodes().size(); ++i) {
      kept.push_back(Computes(i));
      if (kept[i]) recorded_.push_back(static_cast<int32_t>(i));
    }
    const auto key = [&](int32_t node) {
      const auto at = static_cast<size_t>(node);
      return std::tie(step.start_ns[at], step.end_ns[at], step_.rows.nodes()[at].name);
    };
    std::sort(recorded_.begin(), recorded_.end(),
              [&](int32_t a, int32_t b) { return key(a) < key(b); });
    std::vector<Operation> computations(recorded_.size(), {.resource = Resource::kWorker});
    NameOperations(step_.rows, recorded_, computations);
    absl::StatusOr<std::vector<std::vector<int32_t>>> dependencies =
        GraphDependencies(step_.rows, step_.graph, kept, limits_).Find();
    if (!dependencies.ok()) return dependencies.status();
    CountUpdates();
    // Downloads and computations first, to know the place of each.
    place_.assign(kept.size(), -1);
    for (size_t i = 0; i < recorded_.size(); ++i) Place(i, std::move(computations[i]));
    for (const int32_t node : recorded_) Connect(node, (*dependencies)[static_cast<size_t>(node)]);
    return absl::OkStatus();
  }

  // The variable on the server that a node is or updates; empty: none.
  std::string VariableOf(int32_t node) const {
    const int32_t index = InGraph(static_cast<size_t>(node));
    const TensorflowGraph::Kind kind = step_.graph.node(index).kind;
    if (kind != TensorflowGraph::Kind::kVariable && kind != TensorflowGraph::Kind::kUpdate)
      return "";
    const int32_t variable = step_.graph.VariableOf(index);
    if (variable < 0 || sizes_.count(step_.graph.node(variable).name) == 0) return "";
    return step_.graph.node(variable).name;
  }
  bool Updates(int32_t node) const {
    return step_.graph.node(InGraph(static_cast<size_t>(node))).kind ==
               TensorflowGraph::Kind::kUpdate &&
           !VariableOf(node).empty();
  }

  void CountUpdates() {
    for (const int32_t node : recorded_) {
      if (Updates(node)) ++updates_[VariableOf(node)];
    }
  }

  void Place(size_t at, Operation operation) {
    const int32_t node = recorded_[at];
    const auto index = static_cast<size_t>(node);
    const RecordedStep& step = step_.rows.steps().front();
    int64_t duration_ns = step.end_ns[index] - step.start_ns[index];
    operation.parameter = VariableOf(node);
    const bool updates = Updates(node);
    if (updates) {
      const std::string& variable = operation.parameter;
      const std::string name = updates_[variable] > 1 ? operation.name : variable;
      operations_.push_back({.name = absl::StrCat("send/", name),
                             .resource = Resource::kUplink,
                             .size_bytes = sizes_[variable],
                             .parameter = variable});
      durations_ns_.push_back(0);
      operation.resource = Resource::kParameterServer;
    } else if (!operation.parameter.empty()) {
      operation.name = absl::StrCat("recv/", operation.name);
      operation.resource = Resource::kDownlink;
      operation.size_bytes = sizes_[operation.parameter];
      duration_ns = 0;
    } else {
      worker_ns_ += duration_ns;
    }
    place_[index] = static_cast<int32_t>(operations_.size());
    operations_.push_back(std::move(operation));
    durations_ns_.push_back(duration_ns);
  }

  void Connect(int32_t node, const std::vector<int32_t>& dependencies) {
    const auto at = static_cast<size_t>(place_[static_cast<size_t>(node)]);
    if (operations_[at].resource == Resource::kDownlink) return;
    const bool updates = operations_[at].resource == Resource::kParameterServer;
    std::vector<int32_t> waiting_for;
    for (const int32_t before : dependencies) {
      const int32_t place = place_[static_cast<size_t>(before)];
      // The server has the variable that it updates.
      const Operation& maker = operations_[static_cast<size_t>(place)];
      if (updates && maker.resource == Resource::kDownlink &&
          maker.parameter == operations_[at].parameter)
        continue;
      waiting_for.push_back(place);
    }
    std::sort(waiting_for.begin(), waiting_for.end());
    if (updates) {
      operations_[at - 1].waiting_for = std::move(waiting_for);
      operations_[at].waiting_for = {static_cast<int32_t>(at) - 1};
    } else {
      operations_[at].waiting_for = std::move(waiting_for);
    }
  }

  std::vector<std::string> Notes(const StepVariation& variation) const {
    double bytes = 0;
    for (const auto& [name, size] : sizes_) bytes += static_cast<double>(size);
    std::vector<std::string> notes = {absl::StrFormat(
        "Found %d operations of %.3f ms in all, and %d variables of %.2f MiB that are on a server.",
        recorded_.size(), static_cast<double>(worker_ns_) / kNsPerMs, sizes_.size(),
        bytes / kMebibyte)};
    const auto add = [&notes](const char* what, int64_t count, const char* rest) {
      if (count > 0) notes.push_back(absl::StrCat(what, count, rest));
    };
    add("Left out: ", step_.copies,
        " events of kernels by stream, which all streams have once more, and of copies between "
        "host and GPU.");
    add("Left out: ", step_.bookkeeping, " events of the executor itself.");
    add("Left out: ", step_.rows.repairs().loose_kernels, " kernels of no node that ran.");
    add("Left out: ", step_.rows.repairs().duplicates, " events that were there twice.");
    add("Left out: ", step_.outside, " inputs that nothing in the timeline makes: fed, or folded.");
    add("Put right: ", step_.rows.repairs().repeated,
        " further runs of a node were added to its first.");
    add("Put right: ", step_.rows.repairs().negative,
        " events that ended before they started last no time.");
    add("Assumed: an operation whose kernels a GPU recorded lasts as long as they do, ",
        step_.rows.repairs().kernels, " kernels in all.");
    add("Assumed: ", static_cast<int64_t>(local_variables_),
        " variables without a size stay on the worker.");
    add("Assumed: ", static_cast<int64_t>(sizes_.size() - updates_.size()),
        " variables that nothing updates are only downloaded.");
    notes.emplace_back(
        "Assumed: each variable is downloaded at the start of the step, and a gradient of its size "
        "uploaded for each update of it; updates take as "
        "long as recorded.");
    notes.emplace_back(
        "Made: the times of the step, as one worker alone would have recorded them; recorded are "
        "the operations' lengths.");
    notes.push_back(NoteOn(variation));
    return notes;
  }

  const TimelineOptions& options_;
  const ProfileLimits& limits_;
  TimelineStep step_;
  TensorflowGraph given_;
  std::map<std::string, int64_t> sizes_;    // of the variables on the server
  std::map<std::string, int64_t> updates_;  // of those, how many
  size_t local_variables_ = 0;
  std::vector<int32_t> recorded_;  // nodes that become operations
  std::vector<int32_t> place_;     // of their operations
  std::vector<Operation> operations_;
  std::vector<int64_t> durations_ns_;
  int64_t worker_ns_ = 0;
};

}  // namespace

absl::StatusOr<ImportedProfile> ImportTimeline(ByteSource& recording, ByteSource* graph,
                                               const TimelineOptions& options,
                                               const ProfileLimits& limits, StopCheck stop) {
  FaultList faults;
  CheckRecordingOptions(options.recording, limits, faults);
  ResolveStepVariation(options.variation, 0, limits, faults);
  if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());
  TimelineImport import(options, limits);
  if (absl::Status status = import.Read(recording, graph, stop); !status.ok()) return status;
  return import.Make();
}

}  // namespace stepcast
