// Clusters and devices by name, whose presets are data.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "stepcast/v1/scenario.pb.h"

namespace stepcast::client {

// Machines and the networks between them, by name: figures for a scenario, each with its source.
//
// Presets are data, client/clusters/presets.json; a file of one's own has one such object. A figure
// is written as the flag of its name takes it, so that a rate, a size and a time have units.

// The file of presets, as it is in the tree.
extern const std::string_view kClusterPresets;

// The words of --algorithm.
const std::vector<std::pair<std::string, v1::AllReduce::Algorithm>>& CollectiveAlgorithms();

struct ClusterFigure {
  std::string name;   // of its flag, without --: "bandwidth"; or "nics", which has none
  std::string value;  // as it is written: "192GB/s"
  std::string basis;  // "measured", "nominal", or "library": a library's own constant; may be empty
  std::string source;  // may be empty in a file of one's own
};

struct ClusterPreset {
  std::string name;
  std::string about;
  std::vector<ClusterFigure> figures;  // in the order of the file
  v1::Cluster wire;                    // the same as a request has them
  std::string definition;              // the object as JSON, as it is in the file

  // Asks for it. Its bandwidth, where no other is asked for, is said to be measured if it is.
  void AddTo(v1::Scenario& scenario) const;
};

// One object, or a list of them. Failure: INVALID_ARGUMENT, with the cluster, the figure and what
// would be right.
absl::StatusOr<std::vector<ClusterPreset>> ParseClusters(std::string_view json);

// The cluster of an argument: a file where one has that name or a slash is in it, else the preset.
// Failure: INVALID_ARGUMENT; of a name that is not known with the names that are like it.
absl::StatusOr<ClusterPreset> ClusterFromArgument(const std::string& argument);

// Devices by name, whose peak rates say how fast one is beside another.
//
// Presets are data, client/devices/presets.json, each with its maker's data sheet: dense rates of
// 16 and 32 bits in TFLOP/s (matrix units at 16 bits, vector units at 32), and of memory in GB/s.

// The file of presets, as it is in the tree.
extern const std::string_view kDevicePresets;

// The speed of devices over that of the recorded one.
struct ComputeSpeed {
  double factor = 1;
  std::string told;  // lines for people on where it is from; empty: it was given as a number
};

// A number, or NEW/RECORDED or NEW/RECORDED:fp32 of devices' names: the ratio of their peak rates.
// Failure: INVALID_ARGUMENT; of a name that is not known with all that are.
absl::StatusOr<ComputeSpeed> ParseComputeSpeed(const std::string& text);

}  // namespace stepcast::client
