#include "core/zoo/model_zoo.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/quoted.h"
#include "core/model/fault_list.h"
#include "core/model/step_schedule.h"
#include "core/model/training_graph.h"
#include "core/model/validate_profile.h"
#include "core/zoo/networks.h"

namespace stepcast {

namespace {

constexpr int64_t kBytesPerElement = 4;  // float32

struct Entry {
  std::string_view name;
  Architecture (*build)();
};

// In ascending order of the names.
constexpr std::array kEntries{
    Entry{"alexnet", AlexNetV2},
    Entry{"googlenet", GoogLeNet},
    Entry{"inception_v3", InceptionV3},
    Entry{"resnet101", ResNet101},
    Entry{"resnet50", ResNet50},
    Entry{"vgg11", Vgg11},
    Entry{"vgg16", Vgg16},
};

void CheckOptions(const ZooOptions& options, const ProfileLimits& limits, FaultList& faults) {
  if (options.batch_size < 1)
    faults.Add("batch_size", absl::StrCat(options.batch_size, " is below 1"));
  if (options.batch_size > limits.max_batch_size)
    faults.Add("batch_size",
               OverLimit(options.batch_size, "max_batch_size", limits.max_batch_size));
  CheckPlatform("platform", options.platform, faults);
  const double rate = options.device_flops_per_second;
  if (!std::isfinite(rate) || rate <= 0)
    faults.Add("device_flops_per_second", absl::StrCat(rate, " is not a finite number above 0"));
}

std::vector<TrainingLayer> TimedLayers(const Architecture& architecture,
                                       const ZooOptions& options) {
  const auto duration_ns = [&](double flops) {
    const double ns = flops * options.batch_size / options.device_flops_per_second * 1e9;
    return std::llround(std::min(ns, static_cast<double>(kFarNs)));
  };
  std::vector<TrainingLayer> layers;
  for (const Layer& layer : architecture.layers) {
    TrainingLayer& timed = layers.emplace_back();
    timed = {.name = layer.name,
             .inputs = layer.inputs,
             .forward_ns = duration_ns(layer.forward_flops),
             .backward_ns = duration_ns(layer.backward_flops)};
    for (const Variable& variable : layer.variables)
      timed.parameters.push_back(
          {.name = variable.name, .size_bytes = variable.elements * kBytesPerElement});
  }
  return layers;
}

// Checks durations: what makes a profile that breaks its limits is said in terms of the options,
// before it is made.
void CheckDurations(const TrainingGraph& graph, const ProfileLimits& limits, FaultList& faults) {
  const int64_t longest = *std::max_element(graph.durations_ns.begin(), graph.durations_ns.end());
  if (longest > limits.max_step_ns) {
    faults.Add("device_flops_per_second",
               absl::StrCat("a single operation would take ns: ",
                            OverLimit(longest, "max_step_ns", limits.max_step_ns)));
  }
}

std::string AllNames() {
  std::string names;
  for (const Entry& entry : kEntries) names.append(names.empty() ? "" : ", ").append(entry.name);
  return names;
}

}  // namespace

std::vector<std::string_view> ZooModels() {
  std::vector<std::string_view> names;
  names.reserve(kEntries.size());
  for (const Entry& entry : kEntries) names.push_back(entry.name);
  return names;
}

absl::StatusOr<Profile> BuildZooProfile(std::string_view model, const ZooOptions& options,
                                        const ProfileLimits& limits) {
  FaultList faults;
  const auto* const entry = std::find_if(kEntries.begin(), kEntries.end(),
                                         [&](const Entry& one) { return one.name == model; });
  if (entry == kEntries.end())
    faults.Add("model", absl::StrCat(Quoted(model), " is none of ", AllNames()));
  CheckOptions(options, limits, faults);
  ResolveStepVariation(options.variation, 0, limits, faults);
  if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());

  TrainingGraph graph = BuildTrainingGraph(TimedLayers(entry->build(), options));
  CheckDurations(graph, limits, faults);
  const StepVariation variation =
      ResolveStepVariation(options.variation, graph.operations.size(), limits, faults);
  if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());

  ProfileDraft draft{.display_name = std::string(model),
                     .model = std::string(model),
                     .framework = "model zoo",
                     .batch_size = options.batch_size};
  draft.platform = options.platform;
  draft.steps = MakeSteps(graph.operations, graph.durations_ns, options.platform, variation);
  draft.operations = std::move(graph.operations);
  absl::StatusOr<Profile> profile = Profile::Create(std::move(draft), limits);
  if (!profile.ok()) return FaultsError("IMPORT_INVALID", DetailsOf(profile.status()).faults);
  return profile;
}

}  // namespace stepcast
