#include "core/importing/run_metadata_profile.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/quoted.h"
#include "core/importing/graph_reader.h"
#include "core/importing/recorded_operations.h"
#include "core/importing/recording_notes.h"
#include "core/importing/run_metadata_reader.h"
#include "core/importing/step_choice.h"
#include "core/importing/wire_reader.h"

namespace stepcast {

namespace {

class RunMetadataImport {
 public:
  RunMetadataImport(const RecordingOptions& options, const ProfileLimits& limits)
      : options_(options),
        limits_(limits),
        rows_(limits),
        parts_(true, kAtRecording, limits),
        given_(false, kAtGraph, limits) {}

  absl::Status Read(ByteSource& recording, ByteSource* graph, StopCheck stop) {
    if (graph != nullptr) {
      WireReader reader(*graph, kAtGraph, stop);
      if (absl::Status status = ReadWholeGraph(reader, given_); !status.ok()) return status;
    }
    WireReader reader(recording, kAtRecording, stop);
    return ReadRunMetadata(reader, rows_, parts_, found_.passed_over);
  }

  absl::StatusOr<ImportedProfile> Make() {
    if (absl::Status status = CheckFound(); !status.ok()) return status;
    const TensorflowGraph& graph = parts_.empty() ? given_ : parts_;
    found_.partitioned = graph.partitioned();
    found_.graph_unused = !parts_.empty() && !given_.empty();
    std::vector<bool> candidates;
    if (absl::Status status = FindCandidates(graph, candidates); !status.ok()) return status;
    StepChoice choice = ChooseSteps(rows_, candidates);
    if (absl::Status status = CheckChoice(choice); !status.ok()) return status;
    found_.steps = rows_.steps().size();
    absl::StatusOr<RecordedOperations> made =
        MakeOperations(rows_, graph, choice, options_.platform, limits_);
    if (!made.ok()) return made.status();
    std::vector<std::string> notes = NotesOn(found_, rows_, choice, *made);
    ProfileDraft draft{.display_name = options_.model,
                       .model = options_.model,
                       .framework = "tensorflow",
                       .batch_size = options_.batch_size};
    draft.platform = options_.platform;
    draft.parameter_servers = made->parameter_servers;
    draft.operations = std::move(made->operations);
    draft.steps = std::move(made->steps);
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
  TensorflowGraph given_;
  RunMetadataFindings found_;
};

}  // namespace

absl::StatusOr<ImportedProfile> ImportRunMetadata(ByteSource& recording, ByteSource* graph,
                                                  const RecordingOptions& options,
                                                  const ProfileLimits& limits, StopCheck stop) {
  FaultList faults;
  CheckRecordingOptions(options, limits, faults);
  if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());
  RunMetadataImport import(options, limits);
  if (absl::Status status = import.Read(recording, graph, stop); !status.ok()) return status;
  return import.Make();
}

}  // namespace stepcast
