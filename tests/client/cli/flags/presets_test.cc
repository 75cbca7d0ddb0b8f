#include "client/cli/flags/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tests/client/support/temporary_directory.h"
#include "tests/client/support/text_proto.h"

namespace stepcast::client::presets_test {
namespace {

using testing::HasSubstr;

const ClusterFigure* Find(const ClusterPreset& cluster, std::string_view name) {
  for (const ClusterFigure& figure : cluster.figures) {
    if (figure.name == name) return &figure;
  }
  return nullptr;
}

std::string Why(const std::string& json) {
  const auto clusters = ParseClusters(json);
  return clusters.ok() ? "taken" : std::string(clusters.status().message());
}

TEST(ClusterPresetsTest, EveryFigureHasASourceAndEveryRateSaysWhetherItWasMeasured) {
  const auto clusters = ParseClusters(kClusterPresets);
  ASSERT_TRUE(clusters.ok()) << clusters.status().message();
  EXPECT_GE(clusters->size(), 10);
  std::set<std::string> names;
  for (const ClusterPreset& cluster : *clusters) {
    SCOPED_TRACE(cluster.name);
    EXPECT_TRUE(names.insert(cluster.name).second) << "twice";
    EXPECT_EQ(cluster.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
              std::string::npos);
    EXPECT_NE(cluster.about, "");
    for (const char* name : {"workers-per-node", "nics", "bandwidth", "latency", "algorithm"})
      EXPECT_NE(Find(cluster, name), nullptr) << name;
    for (const ClusterFigure& figure : cluster.figures) {
      EXPECT_GE(figure.source.size(), 10) << figure.name;
      if (figure.name == "bandwidth" || figure.name == "intra-bandwidth") {
        EXPECT_THAT(figure.basis, testing::AnyOf("measured", "nominal")) << figure.name;
      } else if (figure.name == "latency" || figure.name == "intra-latency") {
        EXPECT_THAT(figure.basis, testing::AnyOf("measured", "library")) << figure.name;
      }
    }
  }
}

TEST(DevicePresetsTest, APairIsTheRatioOfPeakRatesAndSaysWhereBothAreFrom) {
  const auto ratio = [](const std::string& text) {
    const absl::StatusOr<ComputeSpeed> speed = ParseComputeSpeed(text);
    EXPECT_TRUE(speed.ok()) << speed.status();
    return speed.ok() ? speed->factor : 0;
  };
  EXPECT_EQ(ratio("2.5"), 2.5);
  EXPECT_EQ(ratio("a100/v100"), 312 / 125.0);
  EXPECT_EQ(ratio("a100/v100:fp32"), 19.5 / 15.7);
  EXPECT_EQ(ParseComputeSpeed("2.5")->told, "");
  for (const char* name :
       {"v100", "t4", "a10", "a100", "a100-80gb", "l4", "h100", "h200", "mi250x", "mi300x"}) {
    SCOPED_TRACE(name);
    const absl::StatusOr<ComputeSpeed> speed = ParseComputeSpeed(absl::StrCat(name, "/", name));
    ASSERT_TRUE(speed.ok()) << speed.status();
    EXPECT_EQ(speed->factor, 1);
    EXPECT_THAT(speed->told, testing::HasSubstr("data sheet"));
  }
  for (const char* wrong :
       {"", "h100", "h100/", "h100/v100/t4", "h100/v100:", "H100/V100", "x/v100"})
    EXPECT_FALSE(ParseComputeSpeed(wrong).ok()) << wrong;
}

TEST(ClusterPresetsTest, FiguresAreWhatMachinesHave) {
  const auto clusters = ParseClusters(kClusterPresets);
  ASSERT_TRUE(clusters.ok());
  for (const ClusterPreset& cluster : *clusters) {
    SCOPED_TRACE(cluster.name);
    const v1::Cluster& wire = cluster.wire;
    EXPECT_GE(wire.bandwidth_bytes_per_second(), 1e8);
    EXPECT_LE(wire.bandwidth_bytes_per_second(), 1e12);
    EXPECT_GE(wire.workers_per_node(), 1);
    EXPECT_LE(wire.workers_per_node(), 16);
    EXPECT_GE(wire.latency_seconds(), 1e-6);
    EXPECT_LE(wire.latency_seconds(), 1e-4);
    EXPECT_EQ(wire.algorithm(), v1::AllReduce::RING);
    const bool has_inside = wire.workers_per_node() > 1;
    EXPECT_EQ(wire.has_intra_node_bandwidth_bytes_per_second(), has_inside);
    EXPECT_EQ(wire.has_intra_node_latency_seconds(), has_inside);
    if (!has_inside) continue;
    EXPECT_GE(wire.intra_node_bandwidth_bytes_per_second(), 1e10);
    EXPECT_LE(wire.intra_node_bandwidth_bytes_per_second(), 1e12);
    EXPECT_LE(wire.intra_node_latency_seconds(), 1e-5);
  }
}

TEST(ClusterFromArgumentTest, ANameIsThePresets) {
  const auto cluster = ClusterFromArgument("dgx-a100");
  ASSERT_TRUE(cluster.ok()) << cluster.status().message();
  EXPECT_THAT(cluster->wire, EqualsProto(Proto<v1::Cluster>(R"pb(
                bandwidth_bytes_per_second: 1.92e11
                workers_per_node: 8
                intra_node_bandwidth_bytes_per_second: 2.04e11
                latency_seconds: 4.7e-6
                intra_node_latency_seconds: 3.4e-6
                algorithm: RING
              )pb")));
}

TEST(ClusterFromArgumentTest, AnUnknownNameIsRefusedWithTheNearest) {
  for (const auto& [typed, nearest] :
       {std::pair("dgx-a10", "dgx-a100"), std::pair("dgxh100", "dgx-h100"),
        std::pair("p4d.24xlarge", "p4d"), std::pair("10bge", "10gbe"),
        std::pair("a2-megagpu-16g", "a2-megagpu")}) {
    const auto cluster = ClusterFromArgument(typed);
    ASSERT_FALSE(cluster.ok()) << typed;
    EXPECT_EQ(cluster.status().message(),
              absl::StrCat("\"", typed, "\" is not a cluster or a file; did you mean ", nearest,
                           "?; stepcast clusters lists them"));
  }
  EXPECT_EQ(ClusterFromArgument("moon").status().message(),
            "\"moon\" is not a cluster or a file; stepcast clusters lists them");
}

TEST(ClusterFromArgumentTest, AFileOfOnesOwnHasTheSameForm) {
  const TemporaryDirectory directory;
  const auto cluster = ClusterFromArgument(directory.Write("rack.json", R"json({
    "name": "rack", "bandwidth": {"value": "25Gbit/s", "basis": "measured", "source": "iperf3"},
    "workers-per-node": 4, "intra-bandwidth": "50GB/s", "latency": "30us", "algorithm": "tree"})json"));
  ASSERT_TRUE(cluster.ok()) << cluster.status().message();
  EXPECT_EQ(cluster->name, "rack");
  EXPECT_EQ(Find(*cluster, "bandwidth")->basis, "measured");
  EXPECT_THAT(cluster->wire, EqualsProto(Proto<v1::Cluster>(R"pb(
                bandwidth_bytes_per_second: 3.125e9
                workers_per_node: 4
                intra_node_bandwidth_bytes_per_second: 5e10
                latency_seconds: 3e-5
                algorithm: TREE
              )pb")));
  EXPECT_THAT(std::string(ClusterFromArgument(directory.Path("none.json")).status().message()),
              HasSubstr("none.json"));
  EXPECT_THAT(std::string(ClusterFromArgument(directory.Write("two", R"json([
    {"name": "a", "bandwidth": "1GB/s"}, {"name": "b", "bandwidth": "1GB/s"}])json"))
                              .status()
                              .message()),
              HasSubstr("has 2 clusters: give one a file"));
}

TEST(ClusterFromArgumentTest, EveryPresetIsAFileOfOnesOwnToo) {
  const TemporaryDirectory directory;
  const auto clusters = ParseClusters(kClusterPresets);
  ASSERT_TRUE(clusters.ok());
  for (const ClusterPreset& cluster : *clusters) {
    const auto read = ClusterFromArgument(directory.Write("own.json", cluster.definition));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_THAT(read->wire, EqualsProto(cluster.wire));
  }
}

TEST(ParseClustersTest, WhatIsWrongIsSaidWithTheFigure) {
  for (const auto& [json, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "is not JSON"},
           {"{", "is not JSON at byte"},
           {R"({"name": "a", "bandwidth": 1e400})", "has a number that is out of range"},
           {R"({"name": "a", "about": )" + std::string(200'000, '['), "is nested deeper than 8"},
           {R"({"name": "a", "bandwidth": "1GB/s", "bandwidth": "2GB/s"})",
            "has \"bandwidth\" twice"},
           {R"({"name": "a", "bandwidth": "0Gbit/s"})", "\"bandwidth\": the rate between"},
           {R"({"name": "a", "bandwidth": "1GB/s", "intra-bandwidth": "0GB/s"})",
            "\"intra-bandwidth\": the rate inside"},
           {R"({"name": "a", "bandwidth": "1GB/s", "nics": 0})", "\"nics\": \"0\" is not a"},
           {"7", "a cluster is an object"},
           {R"({"bandwidth": "1GB/s"})", "needs a \"name\""},
           {R"({"name": 7, "bandwidth": "1GB/s"})", "\"name\" is not a text"},
           {R"({"name": "a"})", "\"bandwidth\" is missing"},
           {R"({"name": "a", "bandwidth": "10"})", "\"bandwidth\": \"10\" has no unit"},
           {R"({"name": "a", "bandwidth": 10})", "\"bandwidth\": \"10\" has no unit"},
           {R"({"name": "a", "bandwidth": [1]})", "\"bandwidth\": its value is not"},
           {R"({"name": "a", "bandwidth": {"value": "1GB/s", "basis": "guess"}})",
            "\"guess\" is not measured, nominal or library"},
           {R"({"name": "a", "bandwidth": {"value": "1GB/s", "note": "x"}})",
            "\"note\" is not one of value, basis, source"},
           {R"({"name": "a", "bandwidth": "1GB/s", "speed": 3})", "\"speed\": is not a figure"},
           {R"({"name": "a", "bandwidth": "1GB/s", "latency": "20"})",
            "\"latency\": \"20\" has no unit"},
           {R"({"name": "a", "bandwidth": "1GB/s", "algorithm": "fast"})", "\"fast\" is none of"},
           {R"({"name": "a", "bandwidth": "1GB/s", "workers-per-node": 0})", "\"0\" is not a"},
           {R"({"name": "a", "bandwidth": "1GB/s", "workers-per-node": 8})",
            "\"intra-bandwidth\" is missing"}}) {
    EXPECT_THAT(Why(json), HasSubstr(why)) << json;
  }
}

}  // namespace
}  // namespace stepcast::client::presets_test
