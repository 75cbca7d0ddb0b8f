#include "client/cli/flags/presets.h"

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/input_files.h"
#include "client/cli/texts/characters.h"
#include "client/cli/texts/table.h"

#include "stepcast/profile_encoding.h"

namespace stepcast::client {

namespace {

using nlohmann::ordered_json;

constexpr char kClusterForm[] = R"(a cluster: {"name": "x", "bandwidth": "10Gbit/s"})";

absl::Status Wrong(const std::string& why) { return absl::InvalidArgumentError(why); }

// A figure that a request has a field for. `set` takes the value as it is written.
struct FigureField {
  const char* name;
  std::function<absl::Status(const std::string&, v1::Cluster&)> set;
};

template <typename Parse, typename Set>
FigureField Field(const char* name, Parse parse, Set set) {
  return {name, [parse, set](const std::string& text, v1::Cluster& wire) {
            auto value = parse(text);
            if (!value.ok()) return value.status();
            set(wire, *value);
            return absl::OkStatus();
          }};
}

absl::StatusOr<int32_t> ParseWorkersPerNode(const std::string& text) {
  const absl::StatusOr<uint64_t> count = ParseCount(text);
  if (!count.ok() || *count < 1 || *count > INT32_MAX)
    return Wrong(absl::StrCat(InQuotes(text), " is not a number from 1 on"));
  return static_cast<int32_t>(*count);
}

const std::array<FigureField, 7>& Fields() {
  static const auto& fields = *new std::array<FigureField, 7>{
      Field("workers-per-node", ParseWorkersPerNode,
            [](v1::Cluster& wire, int32_t value) { wire.set_workers_per_node(value); }),
      Field("nics", ParseWorkersPerNode, [](v1::Cluster&, int32_t) {}),
      Field(
          "bandwidth", [](const std::string& text) { return ParseRate(text); },
          [](v1::Cluster& wire, double value) { wire.set_bandwidth_bytes_per_second(value); }),
      Field(
          "intra-bandwidth", [](const std::string& text) { return ParseRate(text); },
          [](v1::Cluster& wire, double value) {
            wire.set_intra_node_bandwidth_bytes_per_second(value);
          }),
      Field(
          "latency", [](const std::string& text) { return ParseSeconds(text); },
          [](v1::Cluster& wire, double value) { wire.set_latency_seconds(value); }),
      Field(
          "intra-latency", [](const std::string& text) { return ParseSeconds(text); },
          [](v1::Cluster& wire, double value) { wire.set_intra_node_latency_seconds(value); }),
      Field(
          "algorithm",
          [](const std::string& text) { return ParseChoice(text, CollectiveAlgorithms()); },
          [](v1::Cluster& wire, v1::AllReduce::Algorithm value) { wire.set_algorithm(value); })};
  return fields;
}

// The text of `key`; empty where there is none.
absl::StatusOr<std::string> TextOf(const ordered_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::string();
  if (!found->is_string()) return Wrong(absl::StrCat("\"", key, "\" is not a text"));
  return found->get<std::string>();
}

absl::Status CheckKeys(const ordered_json& object, const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      return Wrong(absl::StrCat(InQuotes(key), " is not one of ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

// A figure is its value alone, or an object with value, basis and source.
absl::StatusOr<ClusterFigure> ReadFigure(const std::string& name, const ordered_json& written) {
  ClusterFigure figure{.name = name, .value = {}, .basis = {}, .source = {}};
  ordered_json value = written;
  if (written.is_object()) {
    if (absl::Status keys = CheckKeys(written, {"value", "basis", "source"}); !keys.ok())
      return keys;
    value = written.value("value", ordered_json());
    for (const auto& [key, text] :
         {std::pair("basis", &figure.basis), std::pair("source", &figure.source)}) {
      absl::StatusOr<std::string> read = TextOf(written, key);
      if (!read.ok()) return read.status();
      *text = *std::move(read);
    }
  }
  if (!value.is_string() && !value.is_number()) return Wrong("its value is not a text or a number");
  figure.value = value.is_string() ? value.get<std::string>() : value.dump();
  constexpr std::array kBases{"", "measured", "nominal", "library"};
  if (std::find(kBases.begin(), kBases.end(), figure.basis) == kBases.end()) {
    return Wrong(
        absl::StrCat("its basis ", InQuotes(figure.basis), " is not measured, nominal or library"));
  }
  return figure;
}

absl::Status AddFigure(const std::string& name, const ordered_json& written,
                       ClusterPreset& preset) {
  const auto field = std::find_if(Fields().begin(), Fields().end(),
                                  [&](const FigureField& known) { return known.name == name; });
  if (field == Fields().end()) {
    return Wrong(
        absl::StrCat("is not a figure: name, about, ",
                     absl::StrJoin(Fields(), ", ", [](std::string* out, const FigureField& known) {
                       absl::StrAppend(out, known.name);
                     })));
  }
  absl::StatusOr<ClusterFigure> figure = ReadFigure(name, written);
  if (!figure.ok()) return figure.status();
  preset.figures.push_back(*std::move(figure));
  return field->set(preset.figures.back().value, preset.wire);
}

absl::StatusOr<ClusterPreset> ReadCluster(const ordered_json& object) {
  if (!object.is_object()) return Wrong("a cluster is an object: {\"name\": ...}");
  ClusterPreset preset;
  preset.definition = object.dump();
  for (const auto& [key, text] :
       {std::pair("name", &preset.name), std::pair("about", &preset.about)}) {
    absl::StatusOr<std::string> read = TextOf(object, key);
    if (!read.ok()) return read.status();
    *text = *std::move(read);
  }
  if (preset.name.empty()) return Wrong("a cluster needs a \"name\"");
  for (const auto& [key, value] : object.items()) {
    if (key == "name" || key == "about") continue;
    if (absl::Status added = AddFigure(key, value, preset); !added.ok())
      return Wrong(absl::StrCat(InQuotes(key), ": ", added.message()));
  }
  if (object.find("bandwidth") == object.end())
    return Wrong("\"bandwidth\" is missing: the rate between nodes");
  if (preset.wire.bandwidth_bytes_per_second() == 0)
    return Wrong("\"bandwidth\": the rate between nodes is 0");
  if (preset.wire.has_intra_node_bandwidth_bytes_per_second() &&
      preset.wire.intra_node_bandwidth_bytes_per_second() == 0)
    return Wrong("\"intra-bandwidth\": the rate inside a node is 0");
  if (preset.wire.workers_per_node() > 1 &&
      !preset.wire.has_intra_node_bandwidth_bytes_per_second())
    return Wrong("\"intra-bandwidth\" is missing: the rate inside a node of several workers");
  return preset;
}

}  // namespace

const std::vector<std::pair<std::string, v1::AllReduce::Algorithm>>& CollectiveAlgorithms() {
  static const auto& algorithms =
      *new Choices<v1::AllReduce::Algorithm>{{"ring", v1::AllReduce::RING},
                                             {"hierarchical", v1::AllReduce::HIERARCHICAL},
                                             {"halving-doubling", v1::AllReduce::HALVING_DOUBLING},
                                             {"tree", v1::AllReduce::TREE},
                                             {"gloo", v1::AllReduce::GLOO},
                                             {"nccl", v1::AllReduce::NCCL}};
  return algorithms;
}

namespace {

// The tree of a text, none of whose objects has a key twice and which is no deeper than a list of
// clusters.
absl::StatusOr<ordered_json> ParseTree(std::string_view json) {
  constexpr int kMaxDepth = 8;
  std::string fault;
  std::vector<std::set<std::string>> keys;
  const auto look = [&](int depth, ordered_json::parse_event_t event, ordered_json& parsed) {
    using Event = ordered_json::parse_event_t;
    if (depth > kMaxDepth) fault = absl::StrCat("is nested deeper than ", kMaxDepth);
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second)
      fault = absl::StrCat("has ", InQuotes(parsed.get<std::string>()), " twice");
    return fault.empty();
  };
  try {
    ordered_json root = ordered_json::parse(json, look);
    if (!fault.empty()) return Wrong(fault);
    return root;
  } catch (const ordered_json::parse_error& error) {
    return Wrong(fault.empty() ? absl::StrCat("is not JSON at byte ", error.byte) : fault);
  } catch (const ordered_json::exception&) {
    return Wrong("has a number that is out of range");
  }
}

}  // namespace

absl::StatusOr<std::vector<ClusterPreset>> ParseClusters(std::string_view json) {
  absl::StatusOr<ordered_json> tree = ParseTree(json);
  if (!tree.ok()) return tree.status();
  ordered_json root = *std::move(tree);
  if (!root.is_array()) root = ordered_json::array({root});
  std::vector<ClusterPreset> clusters;
  for (const ordered_json& object : root) {
    absl::StatusOr<ClusterPreset> cluster = ReadCluster(object);
    if (!cluster.ok()) return cluster.status();
    clusters.push_back(*std::move(cluster));
  }
  return clusters;
}

void ClusterPreset::AddTo(v1::Scenario& scenario) const {
  *scenario.mutable_cluster() = wire;
  const bool is_measured =
      std::any_of(figures.begin(), figures.end(), [](const ClusterFigure& figure) {
        return figure.name == "bandwidth" && figure.basis == "measured";
      });
  if (is_measured && !scenario.has_bandwidth_bytes_per_second())
    scenario.set_bandwidth_is_measured(true);
}

absl::StatusOr<ClusterPreset> ClusterFromArgument(const std::string& argument) {
  const bool is_file =
      argument == kStandardInput || IsFile(argument) || argument.find('/') != std::string::npos;
  const absl::StatusOr<std::string> text =
      is_file ? ReadTextInput(argument, kClusterForm) : std::string(kClusterPresets);
  if (!text.ok()) return text.status();
  absl::StatusOr<std::vector<ClusterPreset>> clusters = ParseClusters(*text);
  if (!clusters.ok()) return Wrong(absl::StrCat(argument, ": ", clusters.status().message()));
  if (is_file) {
    if (clusters->size() == 1) return std::move(clusters->front());
    return Wrong(absl::StrCat(argument, " has ", clusters->size(), " clusters: give one a file"));
  }
  std::vector<std::string> names;
  for (ClusterPreset& cluster : *clusters) {
    if (cluster.name == argument) return std::move(cluster);
    names.push_back(cluster.name);
  }
  return Wrong(absl::StrCat(InQuotes(argument), " is not a cluster or a file",
                            Suggestion(argument, names), "; stepcast clusters lists them"));
}

namespace {

absl::Status Unusable(const std::string& text, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is neither a number nor two devices, as h100/v100: ", why));
}

const ordered_json* Find(const ordered_json& devices, const std::string& name) {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const ordered_json& device) {
    return device["name"].get_ref<const std::string&>() == name;
  });
  return found == devices.end() ? nullptr : &*found;
}

// `7.916 (989.5 / 125 TFLOP/s)`.
std::string RatioText(double one, double other, const char* unit) {
  return absl::StrCat(NumberText(one / other), " (", one, " / ", other, " ", unit, ")");
}

ComputeSpeed SpeedOf(const ordered_json& to, const ordered_json& from, const std::string& rate) {
  const double one = to[rate];
  const double other = from[rate];
  const double memory = to["memory"];
  const double other_memory = from["memory"];
  const auto source = [](const ordered_json& device) {
    return absl::StrCat(device["about"].get<std::string>(), ", ",
                        device["source"].get<std::string>());
  };
  return {.factor = one / other,
          .told = absl::StrCat(
              "compute speed: x ", RatioText(one, other, "TFLOP/s"), ", the ratio of peak ", rate,
              " rates, as if all layers were bound by arithmetic; layers bound by memory gain x ",
              RatioText(memory, other_memory, "GB/s"), ": a job is between (--compute-speed ",
              NumberText(memory / other_memory), " is the other end)\n", "devices: ", source(to),
              "; ", source(from), "\n")};
}

}  // namespace

absl::StatusOr<ComputeSpeed> ParseComputeSpeed(const std::string& text) {
  if (double factor = 0; absl::SimpleAtod(text, &factor)) return ComputeSpeed{.factor = factor};
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  const std::vector<std::string> names = absl::StrSplit(parts.front(), '/');
  const std::string rate = parts.size() < 2 ? "fp16" : parts[1];
  if (names.size() != 2) return Unusable(text, "the recorded device stands behind a slash");
  if (rate != "fp16" && rate != "fp32")
    return Unusable(text, absl::StrCat("\"", rate, "\" is neither fp16 nor fp32"));
  const ordered_json devices = ordered_json::parse(kDevicePresets);
  for (const std::string& name : names) {
    if (Find(devices, name) != nullptr) continue;
    std::vector<std::string> known;
    for (const ordered_json& device : devices) known.push_back(device["name"]);
    return Unusable(text, absl::StrCat("\"", name, "\" is none of ", absl::StrJoin(known, ", ")));
  }
  return SpeedOf(*Find(devices, names[0]), *Find(devices, names[1]), rate);
}

}  // namespace stepcast::client
