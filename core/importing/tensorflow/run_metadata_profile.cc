#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

// The findings that the notes of an import tell, beside the recording itself.
struct RunMetadataFindings {
  PassedOver passed_over;
  size_t steps = 0;
  bool partitioned = true;    // dependencies come from partition graphs
  bool graph_unused = false;  // one was given, too
  int64_t unknown_nodes = 0;  // that ran and are not in the graph
  std::string unknown_node;   // the first of them
};

// The notes of an import of RunMetadata on its recording.
class Notes {
 public:
  Notes(const RunMetadataFindings& found, const RecordedRows& rows, const StepChoice& choice,
        const RecordedOperations& made)
      : found_(found), rows_(rows), choice_(choice), made_(made) {}

  std::vector<std::string> Take() && {
    AddFound();
    AddLeftOut();
    AddPutRight();
    AddAssumed();
    return std::move(notes_);
  }

 private:
  void AddFound() {
    std::array<int64_t, 5> count{};
    std::array<double, 5> bytes{};
    for (const Operation& operation : made_.operations) {
      ++count[static_cast<size_t>(operation.resource)];
      bytes[static_cast<size_t>(operation.resource)] += static_cast<double>(operation.size_bytes);
    }
    const auto of = [](const auto& array, Resource resource) {
      return array[static_cast<size_t>(resource)];
    };
    notes_.push_back(
        absl::StrFormat("Found %d steps; of each, %d downloads of %.2f MiB in all, %d operations "
                        "of the worker, %d uploads of %.2f MiB and %d operations of %d "
                        "servers.",
                        made_.steps.size(), of(count, Resource::kDownlink),
                        of(bytes, Resource::kDownlink) / kMebibyte, of(count, Resource::kWorker),
                        of(count, Resource::kUplink), of(bytes, Resource::kUplink) / kMebibyte,
                        of(count, Resource::kParameterServer), made_.parameter_servers));
    notes_.emplace_back(found_.partitioned
                            ? "Found dependencies in the recording's partition graphs."
                            : "Found dependencies in the graph given; that a tensor carries the "
                              "output of the node it is named after is assumed.");
    if (found_.graph_unused)
      notes_.emplace_back("Left out: the graph given, since the recording has its own.");
  }

  void AddCount(int64_t count, const char* format) {
    if (count > 0) notes_.push_back(absl::StrCat("Left out: ", count, " ", format));
  }

  void AddLeftOut() {
    AddCount(found_.passed_over.empty_steps, "steps without a row of a worker or a server.");
    if (!choice_.partial_steps.empty()) {
      notes_.push_back(
          absl::StrCat("Left out: ", choice_.partial_steps.size(), " of ", found_.steps,
                       " steps, which lack operations that most have; step ",
                       choice_.partial_steps.front() + 1, " lacks ", Quoted(choice_.lacking), "."));
    }
    if (!choice_.rare_nodes.empty()) {
      const RecordedNode& first = rows_.nodes()[static_cast<size_t>(choice_.rare_nodes.front())];
      notes_.push_back(absl::StrCat(
          "Left out: ", choice_.rare_nodes.size(), " nodes that at most half of the steps ran, ",
          Quoted(first.name), " among them; what waited for them waits for what they waited for."));
    }
    if (found_.unknown_nodes > 0) {
      notes_.push_back(absl::StrCat("Left out: ", found_.unknown_nodes,
                                    " nodes that ran and are not in the graph, ",
                                    Quoted(found_.unknown_node), " among them."));
    }
    AddCount(found_.passed_over.copy_rows,
             "rows of kernels by stream, which all streams have once more, and of copies between "
             "host and GPU.");
    AddCount(rows_.repairs().loose_kernels, "kernels of no node that ran.");
    AddCount(found_.passed_over.transfer_nodes,
             "rows of _Send and _Recv, whose tensors have rows of their own.");
    AddCount(found_.passed_over.other_transfers,
             "tensors received within a machine, between servers or between workers.");
    AddCount(found_.passed_over.other_job_rows, "rows of jobs that are neither worker nor server.");
    AddCount(rows_.repairs().duplicates, "rows that were there twice.");
  }

  void AddPutRight() {
    const RecordedRows::Repairs& repairs = rows_.repairs();
    if (repairs.negative > 0)
      notes_.push_back(absl::StrCat("Put right: ", repairs.negative,
                                    " rows that ended before they started last no time."));
    if (repairs.repeated > 0) {
      notes_.push_back(absl::StrCat("Put right: ", repairs.repeated,
                                    " further runs of a node in a step were added to its first."));
    }
    const ClockRepairs& clocks = made_.clocks;
    if (clocks.moved_clocks > 0) {
      notes_.push_back(absl::StrFormat(
          "Put right: the clock of a server was moved in %d cases, by up to %.3f ms, since it "
          "differed from the worker's.",
          clocks.moved_clocks, static_cast<double>(clocks.most_moved_ns) / kNsPerMs));
    }
    if (clocks.clamped > 0) {
      notes_.push_back(
          absl::StrFormat("Put right: %d starts before the step's own, or before what was sent had "
                          "been made, were moved, by %.3f ms in all and up to %.3f ms.",
                          clocks.clamped, static_cast<double>(clocks.clamped_ns) / kNsPerMs,
                          static_cast<double>(clocks.most_clamped_ns) / kNsPerMs));
    }
  }

  void AddAssumed() {
    const RecordedRows::Repairs& repairs = rows_.repairs();
    if (repairs.kernels > 0) {
      notes_.push_back(absl::StrCat(
          "Assumed: an operation whose kernels a GPU recorded lasts as long as they do, ",
          repairs.kernels, " kernels in all; launching them runs beside them."));
    }
    if (repairs.differing_sizes)
      notes_.emplace_back(
          "Assumed: a tensor whose size differs between steps always has the largest.");
    if (repairs.rounded_sizes)
      notes_.emplace_back(
          "Assumed: sizes that only a label has, rounded to a tenth of a MiB, are exact.");
    if (made_.empty_transfers > 0) {
      notes_.push_back(absl::StrCat("Assumed: ", made_.empty_transfers,
                                    " tensors of no bytes, which only signal, have one."));
    }
    notes_.emplace_back(
        "Assumed: a tensor belongs to the variable that it is read from, or that what it is sent "
        "to updates.");
    if (made_.without_parameter > 0) {
      notes_.push_back(absl::StrCat("Assumed: ", made_.without_parameter,
                                    " tensors belong to no variable, and stay with their server."));
    }
  }

  const RunMetadataFindings& found_;
  const RecordedRows& rows_;
  const StepChoice& choice_;
  const RecordedOperations& made_;
  std::vector<std::string> notes_;
};

// A sentence each: what was found, what was left out, what was put right, what was assumed.
std::vector<std::string> NotesOn(const RunMetadataFindings& found, const RecordedRows& rows,
                                 const StepChoice& choice, const RecordedOperations& made) {
  return Notes(found, rows, choice, made).Take();
}

// The GraphDef given beside recordings; without one an empty graph.
absl::StatusOr<TensorflowGraph> ReadGivenGraph(ByteSource* graph, const ProfileLimits& limits,
                                               StopCheck stop) {
  TensorflowGraph given(false, kAtGraph, limits);
  if (graph == nullptr) return given;
  WireReader reader(*graph, kAtGraph, stop);
  if (absl::Status status = ReadWholeGraph(reader, given); !status.ok()) return status;
  return given;
}

class RunMetadataImport {
 public:
  // `given`: as ReadGivenGraph has it, borrowed.
  RunMetadataImport(const TensorflowGraph& given, const RecordingOptions& options,
                    const ProfileLimits& limits)
      : options_(options),
        limits_(limits),
        rows_(limits),
        parts_(true, kAtRecording, limits),
        given_(given) {}

  absl::Status Read(ByteSource& recording, StopCheck stop) {
    WireReader reader(recording, kAtRecording, stop);
    return ReadRunMetadata(reader, rows_, parts_, found_.passed_over);
  }

  // The profile, and of its steps what the clocks said; `made` has neither operations nor steps
  // then.
  absl::StatusOr<ImportedProfile> Make(KeptReadings kept, RecordedOperations& made) {
    if (absl::Status status = CheckFound(); !status.ok()) return status;
    const TensorflowGraph& graph = parts_.empty() ? given_ : parts_;
    found_.partitioned = graph.partitioned();
    found_.graph_unused = !parts_.empty() && !given_.empty();
    std::vector<bool> candidates;
    if (absl::Status status = FindCandidates(graph, candidates); !status.ok()) return status;
    StepChoice choice = ChooseSteps(rows_, candidates);
    if (absl::Status status = CheckChoice(choice); !status.ok()) return status;
    found_.steps = rows_.steps().size();
    absl::StatusOr<RecordedOperations> operations =
        MakeOperations(rows_, graph, choice, options_.platform, limits_, kept);
    if (!operations.ok()) return operations.status();
    made = *std::move(operations);
    std::vector<std::string> notes = NotesOn(found_, rows_, choice, made);
    ProfileDraft draft{.display_name = options_.model,
                       .model = options_.model,
                       .framework = "tensorflow",
                       .batch_size = options_.batch_size};
    draft.platform = options_.platform;
    draft.parameter_servers = made.parameter_servers;
    draft.operations = std::move(made.operations);
    draft.steps = std::move(made.steps);
    absl::StatusOr<Profile> profile = Profile::Create(std::move(draft), limits_);
    if (!profile.ok()) return AsImportFaults(profile.status());
    return ImportedProfile{.profile = *std::move(profile), .notes = std::move(notes)};
  }

 private:
  absl::Status CheckFound() const {
    if (rows_.steps().empty())
      return ImportFault(kAtRecording, "it has no step_stats with rows of a worker or a server");
    if (parts_.empty() && given_.empty()) {
      return ImportFault(kAtRecording,
                         "it has no partition_graphs, and no graph is given: nothing says what an "
                         "operation waits for");
    }
    const bool sent = std::any_of(rows_.nodes().begin(), rows_.nodes().end(),
                                  [](const RecordedNode& node) { return node.is_transfer(); });
    if (!sent)
      return ImportFault(
          kAtRecording, "no tensor was received between a worker and a parameter server (/job:ps)");
    return absl::OkStatus();
  }

  // Tensors, and nodes that the graph knows.
  absl::Status FindCandidates(const TensorflowGraph& graph, std::vector<bool>& candidates) {
    int64_t known = 0;
    for (const RecordedNode& node : rows_.nodes()) {
      const RecordedDevice& device = rows_.devices()[static_cast<size_t>(node.device)];
      const bool computes = !node.is_transfer() && device.device.rows == DeviceRows::kOperations;
      const bool in_graph = computes && graph.Find(device.name, node.name) >= 0;
      candidates.push_back(node.is_transfer() || in_graph);
      if (computes) ++(in_graph ? known : found_.unknown_nodes);
      if (computes && !in_graph && found_.unknown_node.empty()) found_.unknown_node = node.name;
    }
    if (found_.unknown_nodes <= known) return absl::OkStatus();
    return ImportFault(kAtGraph,
                       absl::StrCat("it has ", known, " of the ", known + found_.unknown_nodes,
                                    " nodes that ran, and not ", Quoted(found_.unknown_node),
                                    ": it is of something else"));
  }

  absl::Status CheckChoice(const StepChoice& choice) const {
    if (choice.steps.empty()) {
      return ImportFault(kAtRecording, absl::StrCat("no step has all that most steps have: step ",
                                                    choice.partial_steps.front() + 1, " lacks ",
                                                    Quoted(choice.lacking)));
    }
    if (std::find(choice.nodes.begin(), choice.nodes.end(), true) != choice.nodes.end())
      return absl::OkStatus();
    return ImportFault(kAtRecording,
                       "no two steps have a node in common: they are not of the same graph");
  }

  const RecordingOptions& options_;
  const ProfileLimits& limits_;
  RecordedRows rows_;
  TensorflowGraph parts_;
  const TensorflowGraph& given_;
  RunMetadataFindings found_;
};

absl::Status CheckOptions(const RecordingOptions& options, const ProfileLimits& limits) {
  FaultList faults;
  CheckRecordingOptions(options, limits, faults);
  return faults.empty() ? absl::OkStatus()
                        : FaultsError("IMPORT_INVALID", std::move(faults).Take());
}

std::string NameOfStep(int64_t number) { return absl::StrCat("step ", number + 1); }

// One worker's part of the recordings of several.
absl::StatusOr<RankPart> PartOf(const RankTrace& trace, const TensorflowGraph& given,
                                const RecordingOptions& options, const ProfileLimits& limits,
                                StopCheck stop) {
  RunMetadataImport import(given, options, limits);
  if (absl::Status status = import.Read(*trace.recording, stop); !status.ok()) return status;
  RecordedOperations made;
  absl::StatusOr<ImportedProfile> imported = import.Make(KeptReadings::kEnds, made);
  if (!imported.ok()) return imported.status();
  const int64_t named = RankOfName(trace.name);
  RankPart part{.rank = named >= 0 ? named : made.worker_task,
                .name_of_step = NameOfStep,
                .meets_at_servers = true};
  const std::vector<RecordedStep>& steps = imported->profile.steps();
  for (size_t i = 0; i < steps.size(); ++i) {
    const RepairedStep& clocks = made.clocks_of_steps[i];
    // The last end on the worker's clock.
    int64_t last_ns = 0;
    for (size_t op = 0; op < steps[i].end_ns.size(); ++op) {
      if (IsOnWorkersClock(imported->profile.operations()[op].resource))
        last_ns = std::max(last_ns, steps[i].end_ns[op]);
    }
    part.steps.push_back({.number = static_cast<int64_t>(i),
                          .begin_ns = clocks.begin_ns,
                          .end_ns = clocks.begin_ns + last_ns,
                          .server_shifts_ns = clocks.shifts_ns});
  }
  part.imported = *std::move(imported);
  return part;
}

}  // namespace

absl::StatusOr<ImportedProfile> ImportRunMetadata(ByteSource& recording, ByteSource* graph,
                                                  const RecordingOptions& options,
                                                  const ProfileLimits& limits, StopCheck stop) {
  if (absl::Status status = CheckOptions(options, limits); !status.ok()) return status;
  const absl::StatusOr<TensorflowGraph> given = ReadGivenGraph(graph, limits, stop);
  if (!given.ok()) return given.status();
  RunMetadataImport import(*given, options, limits);
  if (absl::Status status = import.Read(recording, stop); !status.ok()) return status;
  RecordedOperations made;
  return import.Make(KeptReadings::kNone, made);
}

absl::StatusOr<MultiRankRecording> ImportRunMetadataOfWorkers(const std::vector<RankTrace>& traces,
                                                              ByteSource* graph,
                                                              const RecordingOptions& options,
                                                              const ProfileLimits& limits,
                                                              StopCheck stop) {
  if (absl::Status status = CheckOptions(options, limits); !status.ok()) return status;
  const absl::StatusOr<TensorflowGraph> given = ReadGivenGraph(graph, limits, stop);
  if (!given.ok()) return given.status();
  return ImportRanks(traces, limits, [&](const RankTrace& trace) {
    return PartOf(trace, *given, options, limits, stop);
  });
}

}  // namespace stepcast
