#include "client/cli/flags/scenario_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/flags/simulation_flags.h"

#include "tests/client/support/temporary_directory.h"
#include "tests/client/support/text_proto.h"

namespace stepcast::client::scenario_flags_test {
namespace {

using testing::Eq;
using testing::Ne;
using testing::Optional;

// Matches flags that were parsed to a message that is written so.
template <typename Message>
auto Says(const std::string& text) {
  return Optional(EqualsProto(Proto<Message>(text)));
}

// The scenario of the flags but for recorded_kind_only, which has a test of its own; nothing where
// they are wrong.
std::optional<v1::Scenario> Parse(std::vector<std::string> arguments) {
  CLI::App app;
  ScenarioFlags flags;
  flags.Declare(app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kAllowed);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError&) {
    return std::nullopt;
  }
  v1::Scenario scenario = flags.scenario();
  scenario.clear_recorded_kind_only();
  return scenario;
}

std::optional<v1::SimulationOptions> ParseOptions(std::vector<std::string> arguments) {
  CLI::App app;
  SimulationFlags flags;
  flags.Declare(app);
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError&) {
    return std::nullopt;
  }
  return flags.options();
}

TEST(ScenarioFlagsTest, NoFlagsAreAsRecorded) {
  EXPECT_THAT(Parse({}), Says<v1::Scenario>(R"pb()pb"));
}

TEST(ScenarioFlagsTest, EveryFlagOfCollectivesHasItsField) {
  EXPECT_THAT(Parse({"--all-reduce"}), Says<v1::Scenario>(R"pb(all_reduce {})pb"));
  EXPECT_THAT(Parse({"--algorithm",
                     "gloo",
                     "--workers-per-node",
                     "4",
                     "--latency",
                     "20us",
                     "--intra-bandwidth",
                     "300GB/s",
                     "--intra-latency",
                     "3us",
                     "--reduction-seconds-per-byte",
                     "1e-10",
                     "--launch",
                     "30us",
                     "--bucket-cap",
                     "25MiB",
                     "--first-bucket",
                     "1MiB",
                     "--concurrent",
                     "2",
                     "--partition",
                     "4MiB",
                     "--sharding",
                     "gradients",
                     "--overlap-slowdown",
                     "1.5",
                     "--collective-slowdown",
                     "1.25",
                     "--bandwidth",
                     "1GB/s"}),
              Says<v1::Scenario>(R"pb(
                bandwidth_bytes_per_second: 1e9
                all_reduce {
                  algorithm: GLOO
                  latency_seconds: 2e-5
                  workers_per_node: 4
                  intra_node_bandwidth_bytes_per_second: 3e11
                  intra_node_latency_seconds: 3e-6
                  reduction_seconds_per_byte: 1e-10
                  launch_seconds: 3e-5
                  buckets { first_bytes: 1048576 cap_bytes: 26214400 }
                  concurrent_collectives: 2
                  partition_bytes: 4194304
                  sharding: GRADIENTS
                  overlap_slowdown: 1.5
                  collective_slowdown: 1.25
                }
              )pb"));
  for (const auto& [name, field] :
       {std::pair("ring", "RING"), std::pair("hierarchical", "HIERARCHICAL"),
        std::pair("halving-doubling", "HALVING_DOUBLING"), std::pair("tree", "TREE"),
        std::pair("nccl", "NCCL")}) {
    EXPECT_THAT(Parse({"--algorithm", name}),
                Says<v1::Scenario>(absl::StrCat("all_reduce { algorithm: ", field, " }")));
  }
  for (const auto& [name, field] :
       {std::pair("full", "FULL"), std::pair("fsdp", "FULL"), std::pair("zero3", "FULL"),
        std::pair("zero2", "GRADIENTS"), std::pair("zero1", "OPTIMIZER")}) {
    EXPECT_THAT(Parse({"--sharding", name}),
                Says<v1::Scenario>(absl::StrCat("all_reduce { sharding: ", field, " }")));
  }
  EXPECT_THAT(Parse({"--horovod-fusion", "64MiB", "--horovod-cycle", "5ms"}),
              Says<v1::Scenario>(
                  R"pb(all_reduce { horovod { fusion_bytes: 67108864 cycle_seconds: 0.005 } })pb"));
  EXPECT_THAT(Parse({"--horovod-cycle", "often"}), Eq(std::nullopt));
  EXPECT_THAT(Parse({"--bucket-cap", "none"}),
              Says<v1::Scenario>(R"pb(all_reduce { unfused {} })pb"));
  EXPECT_THAT(Parse({"--bucket-cap", "none", "--first-bucket", "1MiB"}), Eq(std::nullopt));
  EXPECT_THAT(Parse({"--bucket-cap", "never"}), Eq(std::nullopt));
  const std::vector<std::vector<std::string>> fusions = {
      {"--bucket-cap", "25MiB"},     {"--bucket-cap-mb", "25"},  {"--bucket-cap", "none"},
      {"--horovod-fusion", "64MiB"}, {"--horovod-cycle", "5ms"}, {"--byte-scheduler", "16MB"}};
  for (const std::vector<std::string>& one : fusions) {
    EXPECT_THAT(Parse(one), Ne(std::nullopt)) << one[0];
    for (const std::vector<std::string>& other : fusions) {
      if (one[0] == other[0] || one[0].substr(0, 9) == other[0].substr(0, 9)) continue;
      EXPECT_THAT(Parse({one[0], one[1], other[0], other[1]}), Eq(std::nullopt))
          << one[0] << " " << other[0];
    }
  }
  EXPECT_THAT(Parse({"--byte-scheduler", "16MB", "--partition", "4MB"}),
              Says<v1::Scenario>(
                  R"pb(all_reduce {
                         byte_scheduler { credit_bytes: 16000000 }
                         partition_bytes: 4000000
                       })pb"));
  EXPECT_THAT(Parse({"--byte-scheduler", "much"}), Eq(std::nullopt));
  EXPECT_THAT(
      Parse({"--fidelity", "expanded", "--workers-per-rack", "8", "--rack-bandwidth", "40Gbit/s"}),
      Says<v1::Scenario>(R"pb(all_reduce {
                                fidelity: EXPANDED
                                workers_per_rack: 8
                                rack_bandwidth_bytes_per_second: 5e9
                              })pb"));
  EXPECT_THAT(Parse({"--fidelity", "collapsed"}),
              Says<v1::Scenario>(R"pb(all_reduce { fidelity: COLLAPSED })pb"));
  EXPECT_THAT(Parse({"--fidelity", "high"}), Eq(std::nullopt));
  EXPECT_THAT(Parse({"--algorithm", "butterfly"}), Eq(std::nullopt));
  EXPECT_THAT(Parse({"--latency", "soon"}), Eq(std::nullopt));
}

TEST(ScenarioFlagsTest, EveryFlagHasItsField) {
  const TemporaryDirectory directory;
  const std::string priorities = directory.Write("priorities", "recv\t3\n");
  const auto servers = [](const std::string& fields) {
    return Optional(EqualsProto(Proto<v1::Scenario>("parameter_servers {" + fields + "}")));
  };
  EXPECT_THAT(Parse({"--servers", "2"}), servers("servers: 2"));
  EXPECT_THAT(Parse({"--bandwidth", "1Gbit/s"}), Says<v1::Scenario>(R"pb(bandwidth_bytes_per_second:
                                                                             125e6)pb"));
  EXPECT_THAT(Parse({"--parsing-seconds-per-byte", "1e-9"}),
              servers("parsing_overhead { seconds_per_byte: 1e-9 }"));
  EXPECT_THAT(Parse({"--parsing-seconds", "0.5", "--parsing-seconds-per-byte", "2"}),
              servers("parsing_overhead { seconds_per_byte: 2 seconds: 0.5 }"));
  EXPECT_THAT(Parse({"--sync"}), servers("synchronization: SYNCHRONOUS"));
  EXPECT_THAT(Parse({"--summed"}), servers("synchronization: SUMMED"));
  EXPECT_THAT(Parse({"--server-partition", "4096000B"}), servers("partition_bytes: 4096000"));
  EXPECT_THAT(Parse({"--first-come"}), servers("first_come {}"));
  EXPECT_THAT(Parse({"--turns", "64KiB"}), servers("turns { bytes: 65536 }"));
  EXPECT_THAT(Parse({"--equal-shares"}), servers("equal {}"));
  EXPECT_THAT(Parse({"--priorities", priorities}),
              servers("transfer_priorities { key: 'recv' value: 3 }"));
  EXPECT_THAT(Parse({"--offsets", "0,5ms,0.1s"}),
              Says<v1::Scenario>(R"pb(start_offsets_ns: [ 0, 5000000, 100000000 ])pb"));
  EXPECT_THAT(
      Parse({"--worker-group", "4", "--worker-group", "2:0.5", "--worker-group", "1:1:100Mbit/s"}),
      Says<v1::Scenario>(R"pb(worker_groups { count: 4 }
                              worker_groups { count: 2 compute_speed_factor: 0.5 }
                              worker_groups {
                                count: 1
                                compute_speed_factor: 1
                                bandwidth_bytes_per_second: 12.5e6
                              })pb"));
}

TEST(ScenarioFlagsTest, StreamsAreWhatTheFlagsSayTogether) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--window", "64KiB"}, "window { bytes: 65536 }"},
      {{"--quantum", "1MB"}, "window { quantum_bytes: 1000000 }"},
      {{"--window", "0"}, "whole_stream {}"},
      {{"--multiplexing", "window"}, "window {}"},
      {{"--multiplexing", "whole-stream"}, "whole_stream {}"},
      {{"--multiplexing", "whole-stream", "--window", "0"}, "whole_stream {}"},
      {{"--multiplexing", "round-robin"}, "round_robin {}"},
      {{"--window", "9B", "--quantum", "7B"}, "window { bytes: 9 quantum_bytes: 7 }"},
      {{"--window", "9B", "--quantum", "7B", "--multiplexing", "round-robin"},
       "round_robin { window_bytes: 9 quantum_bytes: 7 }"}};
  for (const auto& [arguments, streams] : cases) {
    EXPECT_THAT(Parse(arguments), Optional(EqualsProto(Proto<v1::Scenario>(
                                      absl::StrCat("parameter_servers {", streams, "}")))))
        << testing::PrintToString(arguments);
  }
}

TEST(ScenarioFlagsTest, EveryOrderHasItsName) {
  for (const auto& [name, order] :
       {std::pair("graph", v1::ParameterServers::GRAPH),
        std::pair("recorded", v1::ParameterServers::RECORDED),
        std::pair("random", v1::ParameterServers::RANDOM),
        std::pair("reverse", v1::ParameterServers::REVERSE),
        std::pair("tic", v1::ParameterServers::TIC), std::pair("tac", v1::ParameterServers::TAC)}) {
    v1::Scenario expected;
    expected.mutable_parameter_servers()->set_transfer_order(order);
    EXPECT_THAT(Parse({"--order", name}), Optional(EqualsProto(expected))) << name;
  }
}

TEST(ScenarioFlagsTest, WrongUsageIsRefused) {
  const TemporaryDirectory directory;
  const std::string bad = directory.Write("bad", "recv 3\n");
  const std::string empty = directory.Write("empty", "# nothing\n");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--servers", "two"},
                                             {"--servers", "99999999999"},
                                             {"--bandwidth", "10G"},
                                             {"--window", "1.5B"},
                                             {"--order", "fast"},
                                             {"--order", "explicit"},
                                             {"--priorities", "/nowhere"},
                                             {"--priorities", bad},
                                             {"--priorities", empty},
                                             {"--offsets", "1s,,2s"},
                                             {"--offsets", "-1s"},
                                             {"--worker-group", "x"},
                                             {"--worker-group", "1:x"},
                                             {"--worker-group", "1:1:x"},
                                             {"--multiplexing", "fair"},
                                             {"--multiplexing", "whole-stream", "--window", "9B"},
                                             {"--multiplexing", "whole-stream", "--quantum", "9B"},
                                             {"--window", "0", "--quantum", "9B"},
                                             {"--order", "tic", "--priorities", "/nowhere"},
                                             {"--equal-shares", "--first-come"},
                                             {"--equal-shares", "--turns", "9"},
                                             {"--servers", "2", "--latency", "1us"},
                                             {"--all-reduce", "--sync"},
                                             {"--all-reduce", "--summed"},
                                             {"--summed", "--sync"},
                                             {"--server-partition", "4096000"},
                                             {"--latency", "1us", "--sync"},
                                             {"--intra-bandwidth", "3GB/s"},
                                             {"--intra-latency", "3us", "--workers-per-node", "1"},
                                             {"--no-such-flag"},
                                             {"--bandwidth"}}) {
    EXPECT_FALSE(Parse(arguments).has_value()) << testing::PrintToString(arguments);
  }
}

TEST(ScenarioFlagsTest, TellsHowARateWasUnderstood) {
  CLI::App app;
  ScenarioFlags flags;
  flags.Declare(app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kAllowed);
  app.parse(std::vector<std::string>{"10Gbit/s", "--bandwidth"});
  std::ostringstream err;
  const Console console{.out = err, .err = err};
  flags.Explain({.client = Client(), .output = OutputFormat::kJson, .console = console});
  EXPECT_EQ(err.str(), "");
  flags.Explain({.client = Client(), .output = OutputFormat::kTable, .console = console});
  EXPECT_EQ(err.str(), "bandwidth: 10Gbit/s is 1250000000 bytes/s\n");
}

// Flags that were given, and the console that Explain wrote to.
struct Explained {
  std::string text;
  std::vector<int32_t> counts;
};
Explained Explain(std::vector<std::string> arguments) {
  CLI::App app;
  ScenarioFlags flags;
  flags.Declare(app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kAllowed);
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  std::ostringstream err;
  const Console console{.out = err, .err = err};
  flags.Explain({.client = Client(), .output = OutputFormat::kTable, .console = console});
  return {.text = err.str(), .counts = flags.DefaultCounts()};
}

TEST(ClusterFlagTest, ItsFiguresAreAMessageBesideTheFlags) {
  EXPECT_THAT(Parse({"--cluster", "infiniband-ndr"}),
              Says<v1::Scenario>(R"pb(cluster {
                                        bandwidth_bytes_per_second: 4.6e10
                                        workers_per_node: 1
                                        latency_seconds: 1.4e-5
                                        algorithm: RING
                                      }
                                      bandwidth_is_measured: true)pb"));
  EXPECT_THAT(Parse({"--cluster", "infiniband-ndr", "--latency", "1us", "--bandwidth", "1GB/s"}),
              Says<v1::Scenario>(R"pb(bandwidth_bytes_per_second: 1e9
                                      all_reduce { latency_seconds: 1e-6 }
                                      cluster {
                                        bandwidth_bytes_per_second: 4.6e10
                                        workers_per_node: 1
                                        latency_seconds: 1.4e-5
                                        algorithm: RING
                                      })pb"));
  EXPECT_THAT(Parse({"--cluster", "infiniband-xdr"}), Eq(std::nullopt));
  EXPECT_THAT(Parse({"--cluster", ""}), Eq(std::nullopt));
}

TEST(ClusterFlagTest, ItsBandwidthIsAsMeasuredAsItsFigureSays) {
  const auto is_measured = [](std::vector<std::string> arguments) {
    return Parse(std::move(arguments))->bandwidth_is_measured();
  };
  EXPECT_TRUE(is_measured({"--cluster", "dgx-a100"}));
  EXPECT_FALSE(is_measured({"--cluster", "dgx-a100", "--bandwidth", "1GB/s"}));
  EXPECT_TRUE(
      is_measured({"--cluster", "dgx-a100", "--bandwidth", "1GB/s", "--bandwidth-measured"}));
  EXPECT_FALSE(is_measured({"--cluster", "10gbe"}));
}

TEST(ClusterFlagTest, SaysWhichFiguresAreInForce) {
  EXPECT_EQ(Explain({"--cluster", "dgx-a100"}).text,
            "cluster: dgx-a100: bandwidth 192GB/s (measured); all-reduces: workers-per-node 8, "
            "latency 4.7us, intra-bandwidth 204GB/s (measured), intra-latency 3.4us (measured), "
            "algorithm ring\n");
  EXPECT_EQ(
      Explain({"--cluster", "dgx-a100", "--bandwidth", "1GB/s", "--latency", "1us",
               "--workers-per-node", "4", "--intra-bandwidth", "2GB/s", "--intra-latency", "2us"})
          .text,
      "cluster: dgx-a100: all-reduces: algorithm ring\nbandwidth: 1GB/s is 1000000000 bytes/s\n");
  // Nothing is sent within a node of one worker.
  EXPECT_EQ(
      Explain({"--cluster", "dgx-a100", "--workers-per-node", "1"}).text,
      "cluster: dgx-a100: bandwidth 192GB/s (measured); all-reduces: latency 4.7us, algorithm "
      "ring\n");
}

TEST(ClusterFlagTest, NumbersOfWorkersFillNodes) {
  EXPECT_THAT(Explain({}).counts,
              testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
  EXPECT_EQ(Explain({"--cluster", "10gbe"}).counts, Explain({}).counts);
  EXPECT_THAT(Explain({"--cluster", "dgx-a100"}).counts,
              testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 16, 24, 32, 40, 48, 56, 64));
  EXPECT_THAT(Explain({"--cluster", "dgx-a100", "--workers-per-node", "2"}).counts,
              testing::ElementsAre(1, 2, 4, 6, 8, 10, 12, 14, 16));
  for (const int32_t count : Explain({"--workers-per-node", "2000"}).counts)
    EXPECT_TRUE(count <= 16 || count == 4000) << count;
}

TEST(BucketCapTest, IsInMiBWherePyTorchsNameIsTyped) {
  const auto cap = Says<v1::Scenario>(R"pb(all_reduce { buckets { cap_bytes: 26214400 } })pb");
  EXPECT_THAT(Parse({"--bucket-cap-mb", "25"}), cap);
  EXPECT_THAT(Parse({"--bucket-cap", "25MiB"}), cap);
  EXPECT_THAT(Parse({"--bucket-cap-mb", "0.5"}),
              Says<v1::Scenario>(R"pb(all_reduce { buckets { cap_bytes: 524288 } })pb"));
  // PyTorch's int(0.1 * 1024 * 1024).
  EXPECT_THAT(Parse({"--bucket-cap-mb", "0.1"}),
              Says<v1::Scenario>(R"pb(all_reduce { buckets { cap_bytes: 104857 } })pb"));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--bucket-cap", "25"},
        {"--bucket-cap-mb", "25MiB"},
        {"--bucket-cap", "0"},
        {"--bucket-cap-mb", "0"},
        {"--bucket-cap-mb", "-1"},
        {"--bucket-cap-mb", ""},
        {"--bucket-cap-mb", "1.2.3"},
        {"--bucket-cap-mb", "25", "--bucket-cap", "25MiB"}}) {
    EXPECT_THAT(Parse(wrong), Eq(std::nullopt)) << testing::PrintToString(wrong);
  }
}

TEST(SimulationFlagsTest, EveryFlagHasItsField) {
  EXPECT_THAT(ParseOptions({}), Says<v1::SimulationOptions>(R"pb()pb"));
  EXPECT_THAT(ParseOptions({"--steps", "5", "--warmup", "0", "--seed", "18446744073709551615",
                            "--replications", "3", "--precision", "0.01"}),
              Says<v1::SimulationOptions>(R"pb(steps_per_worker: 5
                                               warmup_steps: 0
                                               seed: 18446744073709551615
                                               replications: 3
                                               relative_precision: 0.01)pb"));
  EXPECT_THAT(ParseOptions({"--time-budget", "500ms", "--confidence", "0.9", "--staggered"}),
              Says<v1::SimulationOptions>(R"pb(time_budget { nanos: 500000000 }
                                               start: STAGGERED
                                               confidence_level: 0.9)pb"));
  EXPECT_THAT(ParseOptions({"--first-steps", "7"}),
              Says<v1::SimulationOptions>(R"pb(horizon: FIRST_STEPS horizon_steps: 7)pb"));
  EXPECT_THAT(ParseOptions({"--first-seconds", "7.5"}),
              Says<v1::SimulationOptions>(R"pb(horizon: FIRST_SECONDS horizon_seconds: 7.5)pb"));
}

TEST(SimulationFlagsTest, ATraceHasOnlyThoseWithAnEffect) {
  CLI::App app;
  SimulationFlags flags;
  flags.DeclareForTrace(app);
  app.parse(std::vector<std::string>{"--staggered", "9", "--seed", "3", "--steps"});
  EXPECT_THAT(std::optional(flags.options()),
              Says<v1::SimulationOptions>(R"pb(steps_per_worker: 3 seed: 9 start: STAGGERED)pb"));
  for (const char* flag : {"--warmup", "--replications", "--precision", "--confidence",
                           "--time-budget", "--first-steps", "--first-seconds"}) {
    EXPECT_EQ(app.get_option_no_throw(flag), nullptr) << flag;
  }
}

TEST(SimulationFlagsTest, WrongUsageIsRefused) {
  EXPECT_FALSE(ParseOptions({"--first-steps", "7", "--first-seconds", "7"}).has_value());
  EXPECT_FALSE(ParseOptions({"--steps", "1.5"}).has_value());
  EXPECT_FALSE(ParseOptions({"--seed", "-1"}).has_value());
  EXPECT_FALSE(ParseOptions({"--time-budget", "soon"}).has_value());
}

}  // namespace
}  // namespace stepcast::client::scenario_flags_test
