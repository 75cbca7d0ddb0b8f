#include "core/zoo/model_zoo.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/model/made_steps.h"
#include "core/model/validate_profile.h"
#include "core/zoo/networks.h"

namespace stepcast {

namespace {

constexpr int64_t kBytesPerElement = 4;  // float32

// Accesses of a worker's memory to a parameter that an optimizer's step makes: SGD with momentum
// reads gradient, momentum and parameter and writes the last two; Adam has a second momentum.
constexpr double kMomentumAccesses = 5;
constexpr double kAdamAccesses = 7;
// Operations of a device in the time in which its memory moves a byte: README.md says of which.
constexpr double kFlopsPerByteMoved = 12;

struct Entry {
  std::string_view name;
  Architecture (*build)();
  double optimizer_accesses = 0;  // 0: the parameter servers update
};

// In ascending order of the names.
constexpr std::array kServerEntries{
    Entry{"alexnet", AlexNetV2},
    Entry{"googlenet", GoogLeNet},
    Entry{"inception_v2", InceptionV2},
    Entry{"inception_v3", InceptionV3},
    Entry{"resnet101", ResNet101},
    Entry{"resnet101_v2", ResNet101V2},
    Entry{"resnet50", ResNet50},
    Entry{"resnet50_v2", ResNet50V2},
    Entry{"vgg11", Vgg11},
    Entry{"vgg16", Vgg16},
    Entry{"vgg19", Vgg19},
};
constexpr std::array kAllReduceEntries{
    Entry{"bert_base", torch::BertBase, kAdamAccesses},
    Entry{"gpt2_small", torch::Gpt2Small, kAdamAccesses},
    Entry{"inception_v3", torch::InceptionV3, kMomentumAccesses},
    Entry{"resnet101", torch::ResNet101, kMomentumAccesses},
    Entry{"resnet152", torch::ResNet152, kMomentumAccesses},
    Entry{"resnet18", torch::ResNet18, kMomentumAccesses},
    Entry{"resnet18_cifar", torch::ResNet18Cifar, kMomentumAccesses},
    Entry{"resnet50", torch::ResNet50, kMomentumAccesses},
    Entry{"vgg16", torch::Vgg16, kMomentumAccesses},
    Entry{"vgg19", torch::Vgg19, kMomentumAccesses},
    Entry{"xception", torch::Xception, kMomentumAccesses},
};

absl::Span<const Entry> EntriesOf(ZooCommunication communication) {
  if (communication == ZooCommunication::kAllReduce) return kAllReduceEntries;
  return kServerEntries;
}

// None: there is no such model.
const Entry* FindEntry(std::string_view model, ZooCommunication communication) {
  const absl::Span<const Entry> entries = EntriesOf(communication);
  const auto* const entry = std::find_if(entries.begin(), entries.end(),
                                         [&](const Entry& one) { return one.name == model; });
  return entry == entries.end() ? nullptr : entry;
}

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

int64_t DurationNs(double flops, const ZooOptions& options) {
  const double ns = flops / options.device_flops_per_second * 1e9;
  return std::llround(std::min(ns, static_cast<double>(kFarNs)));
}

std::vector<TrainingLayer> TimedLayers(const Architecture& architecture,
                                       const ZooOptions& options) {
  const auto duration_ns = [&](double flops) {
    return DurationNs(flops * options.batch_size, options);
  };
  std::vector<TrainingLayer> layers;
  for (const Layer& layer : architecture.layers) {
    const int64_t output_bytes = layer.output.elements() * kBytesPerElement * options.batch_size;
    TrainingLayer& timed = layers.emplace_back();
    timed = {.name = layer.name,
             .inputs = layer.inputs,
             .forward_ns = duration_ns(layer.forward_flops),
             .backward_ns = duration_ns(layer.backward_flops),
             .kept_bytes = output_bytes,
             .output_bytes = output_bytes};
    for (const Variable& variable : layer.variables)
      timed.parameters.push_back(
          {.name = variable.name, .size_bytes = variable.elements * kBytesPerElement});
  }
  return layers;
}

// Checks durations and what is kept: what makes a profile that breaks its limits is said in terms
// of the options, before it is made.
void CheckGraph(const TrainingGraph& graph, const ZooOptions& options, const ProfileLimits& limits,
                FaultList& faults) {
  const int64_t longest = *std::max_element(graph.durations_ns.begin(), graph.durations_ns.end());
  if (longest > limits.max_step_ns) {
    faults.Add("device_flops_per_second",
               absl::StrCat("a single operation would take ns: ",
                            OverLimit(longest, "max_step_ns", limits.max_step_ns)));
  }
  int64_t largest = 0;
  for (const Operation& operation : graph.operations)
    largest = std::max(largest, operation.kept_bytes);
  if (largest > kMaxKeptBytes) {
    faults.Add("batch_size", absl::StrCat(options.batch_size, ": an output would have ", largest,
                                          " bytes, above the maximum of ", kMaxKeptBytes));
  }
}

const char* JobsOf(ZooCommunication communication) {
  return communication == ZooCommunication::kAllReduce ? "all-reduce" : "parameter-server";
}

// The fault of a name of which there is no model.
std::string NoModel(std::string_view model, ZooCommunication communication) {
  std::string text = Quoted(model) + " is none of ";
  std::string_view separator;
  for (const Entry& entry : EntriesOf(communication)) {
    text.append(separator).append(entry.name);
    separator = ", ";
  }
  text.append(", the models of ").append(JobsOf(communication)).append(" jobs");
  const ZooCommunication other = communication == ZooCommunication::kAllReduce
                                     ? ZooCommunication::kParameterServers
                                     : ZooCommunication::kAllReduce;
  if (FindEntry(model, other) != nullptr)
    text.append("; it is one of ").append(JobsOf(other)).append(" jobs");
  return text;
}

int64_t OptimizerNs(const Architecture& architecture, const Entry& entry,
                    const ZooOptions& options) {
  double bytes = 0;
  for (const Layer& layer : architecture.layers) {
    for (const Variable& variable : layer.variables)
      bytes += static_cast<double>(variable.elements * kBytesPerElement);
  }
  const double flops = bytes * entry.optimizer_accesses * kFlopsPerByteMoved;
  return DurationNs(flops, options);
}

TrainingGraph GraphOf(const Entry& entry, const ZooOptions& options) {
  const Architecture architecture = entry.build();
  const std::vector<TrainingLayer> layers = TimedLayers(architecture, options);
  if (options.communication == ZooCommunication::kParameterServers)
    return BuildTrainingGraph(layers);
  return BuildAllReduceGraph(layers, OptimizerNs(architecture, entry, options));
}

}  // namespace

std::vector<std::string_view> ZooModels(ZooCommunication communication) {
  std::vector<std::string_view> names;
  for (const Entry& entry : EntriesOf(communication)) names.push_back(entry.name);
  return names;
}

absl::StatusOr<Profile> BuildZooProfile(std::string_view model, const ZooOptions& options,
                                        const ProfileLimits& limits) {
  FaultList faults;
  const Entry* const entry = FindEntry(model, options.communication);
  if (entry == nullptr) faults.Add("model", NoModel(model, options.communication));
  CheckOptions(options, limits, faults);
  ResolveStepVariation(options.variation, 0, limits, faults);
  if (entry == nullptr || !faults.empty())
    return FaultsError("IMPORT_INVALID", std::move(faults).Take());

  TrainingGraph graph = GraphOf(*entry, options);
  CheckGraph(graph, options, limits, faults);
  const StepVariation variation =
      ResolveStepVariation(options.variation, graph.operations.size(), limits, faults);
  if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());

  ProfileDraft draft{.display_name = std::string(model),
                     .model = std::string(model),
                     .framework = std::string(kZooFramework),
                     .batch_size = options.batch_size};
  draft.platform = options.platform;
  if (options.communication == ZooCommunication::kAllReduce)
    draft.buckets = RecordedBuckets{.rule = Buckets{}};
  draft.steps = MakeSteps(graph.operations, graph.durations_ns, options.platform, variation);
  draft.operations = std::move(graph.operations);
  absl::StatusOr<Profile> profile = Profile::Create(std::move(draft), limits);
  if (!profile.ok()) return FaultsError("IMPORT_INVALID", DetailsOf(profile.status()).faults);
  return profile;
}

}  // namespace stepcast
