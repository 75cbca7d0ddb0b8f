#include "core/importing/layers/layer_profile.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/error.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/layers/layer_graph.h"
#include "core/importing/layers/layer_table.h"
#include "core/model/made_steps.h"

namespace stepcast {

namespace {

// The layers that compute, with their indices among each other.
std::vector<TrainingLayer> ComputingLayers(const std::vector<MeasuredLayer>& measured) {
  std::vector<int32_t> place(measured.size(), -1);
  std::vector<TrainingLayer> layers;
  for (size_t i = 0; i < measured.size(); ++i) {
    const MeasuredLayer& from = measured[i];
    if (from.is_input()) continue;
    place[i] = static_cast<int32_t>(layers.size());
    TrainingLayer& layer = layers.emplace_back();
    layer.name = from.name();
    layer.forward_ns = std::llround(from.forward_ms * kNsPerMs);
    layer.backward_ns = std::llround(from.backward_ms * kNsPerMs);
    if (from.parameter_bytes > 0)
      layer.parameters = {{.name = from.name(), .size_bytes = from.parameter_bytes}};
    for (const int32_t input : from.inputs) {
      if (const int32_t at = place[static_cast<size_t>(input)]; at >= 0) layer.inputs.push_back(at);
    }
  }
  return layers;
}

std::vector<std::string> NotesOn(const std::vector<MeasuredLayer>& measured) {
  size_t layers = 0;
  size_t with_parameters = 0;
  double bytes = 0;
  double forward_ms = 0;
  double backward_ms = 0;
  std::vector<std::string> left_out;
  for (const MeasuredLayer& layer : measured) {
    if (layer.is_input()) {
      left_out.push_back(
          absl::StrFormat("Left out: data loading (node%d), %.3f ms a step, which is not a "
                          "computation of the model.",
                          layer.number, layer.forward_ms + layer.backward_ms));
      continue;
    }
    ++layers;
    with_parameters += layer.parameter_bytes > 0 ? 1 : 0;
    bytes += static_cast<double>(layer.parameter_bytes);
    forward_ms += layer.forward_ms;
    backward_ms += layer.backward_ms;
  }
  std::vector<std::string> notes = {
      absl::StrFormat("Found %d layers, %d of them with parameters, %.2f MiB in all.", layers,
                      with_parameters, bytes / kMebibyte),
      absl::StrFormat("Found %.3f ms of forward and %.3f ms of backward computation a step.",
                      forward_ms, backward_ms)};
  notes.insert(notes.end(), left_out.begin(), left_out.end());
  notes.emplace_back("Left out: activation sizes, which do not travel.");
  notes.emplace_back(
      "Assumed: a layer's weights and biases travel as one variable, since the format has one size "
      "a layer.");
  notes.push_back(
      absl::StrFormat("Assumed: the server updates a variable at %.3g bytes per second of memory "
                      "traffic, %.0f accesses a byte.",
                      kServerMemoryBytesPerSecond, kUpdateAccessesPerByte));
  return notes;
}

std::vector<std::string> NotesOn(const LayerTable& table) {
  int64_t bytes = 0;
  int64_t forward_ns = 0;
  int64_t backward_ns = 0;
  int64_t optimizer_ns = table.optimizer_ns;
  for (const TrainingLayer& layer : table.layers) {
    for (const ParameterTensor& tensor : layer.parameters) bytes += tensor.size_bytes;
    forward_ns += layer.forward_ns;
    backward_ns += layer.backward_ns + layer.backward_weight_ns.value_or(0);
    optimizer_ns += layer.optimizer_ns;
  }
  return {absl::StrFormat(
              "Found a table of %d layers, which run one after the other: %.3f ms of forward and "
              "%.3f ms of backward computation, %.3f ms of optimizer and %.2f MiB of parameters a "
              "step.",
              table.layers.size(), static_cast<double>(forward_ns) / kNsPerMs,
              static_cast<double>(backward_ns) / kNsPerMs,
              static_cast<double>(optimizer_ns) / kNsPerMs, static_cast<double>(bytes) / kMebibyte),
          "Assumed: a layer's gradients are one, as large as its parameters, and met in an "
          "all-reduce; the batch of the profile is that of the table's times."};
}

std::string NoteOnSizes(int32_t devices) {
  return absl::StrCat(
      "Assumed: sizes are of a transformer in float32 (12 h^2 + 13 h parameters a block), of one "
      "of ",
      devices, devices == 1 ? " device" : " devices",
      " that share each layer; a worker is all of them.");
}

void CheckSailorsAlone(const LayerProfileOptions& options, FaultList& faults) {
  if (options.tensor_parallel != 0)
    faults.Add("tensor_parallel",
               absl::StrCat(options.tensor_parallel, ": only a profile of Sailor's has several"));
  if (!options.sizes.empty())
    faults.Add(kAtGraph, "bytes, where only a profile of Sailor's takes a configuration");
}

ProfileDraft MakeDraft(TrainingGraph graph, const LayerProfileOptions& options,
                       const StepVariation& variation) {
  ProfileDraft draft{.display_name = options.model,
                     .model = options.model,
                     .framework = std::string(kLayersFramework),
                     .batch_size = options.batch_size};
  draft.platform = options.platform;
  draft.steps = MakeSteps(graph.operations, graph.durations_ns, options.platform, variation);
  draft.operations = std::move(graph.operations);
  return draft;
}

}  // namespace

absl::StatusOr<ImportedProfile> ImportLayerProfile(std::string_view text,
                                                   const LayerProfileOptions& options,
                                                   const ProfileLimits& limits) {
  FaultList faults;
  CheckRecordingOptions({options.model, options.batch_size, options.platform}, limits, faults);
  ResolveStepVariation(options.variation, 0, limits, faults);
  TrainingGraph graph;
  std::vector<std::string> notes;
  int32_t devices = 1;
  const bool is_sailors = IsSailorProfile(text, !options.sizes.empty());
  if (!is_sailors) CheckSailorsAlone(options, faults);
  if (is_sailors || IsLayerTable(text)) {
    const LayerTable table =
        is_sailors
            ? ParseSailorProfile(text, {options.batch_size, options.tensor_parallel, options.sizes},
                                 limits, faults, devices)
            : ParseLayerTable(text, limits, faults);
    if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());
    graph = BuildAllReduceGraph(table.layers, table.optimizer_ns);
    notes = NotesOn(table);
    if (is_sailors) notes.push_back(NoteOnSizes(devices));
    if (table.bounded > 0)
      notes.push_back(absl::StrCat(
          "Found ", table.bounded, " of ", table.layers.size(),
          " layers that took longer than with a larger micro-batch, whose time is taken: the "
          "device may have been idle, and may take even less in training."));
  } else {
    const std::vector<MeasuredLayer> measured = ParseLayerGraph(text, limits, faults);
    if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());
    const std::vector<TrainingLayer> layers = ComputingLayers(measured);
    if (layers.empty())
      return FaultsError(
          "IMPORT_INVALID",
          {{.field = "line 1", .description = "the text has no layer but data loading"}});
    graph = BuildTrainingGraph(layers);
    notes = NotesOn(measured);
  }
  const StepVariation variation =
      ResolveStepVariation(options.variation, graph.operations.size(), limits, faults);
  if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());
  ProfileDraft draft = MakeDraft(std::move(graph), options, variation);
  draft.devices_per_worker = devices;
  absl::StatusOr<Profile> profile = Profile::Create(std::move(draft), limits);
  if (!profile.ok()) return FaultsError("IMPORT_INVALID", DetailsOf(profile.status()).faults);
  ImportedProfile imported{.profile = *std::move(profile), .notes = std::move(notes)};
  imported.notes.push_back(NoteOn(variation));
  return imported;
}

}  // namespace stepcast
