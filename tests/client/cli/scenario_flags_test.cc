#include "client/cli/scenario_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <vector>

#include "client/cli/simulation_flags.h"

#include "tests/client/support/temporary_directory.h"

namespace stepcast::client::scenario_flags_test {
namespace {

// What the flags say; nothing where they are wrong.
std::optional<Scenario> Parse(std::vector<std::string> arguments) {
  CLI::App app;
  ScenarioFlags flags;
  flags.Declare(app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kAllowed);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError&) {
    return std::nullopt;
  }
  return flags.scenario();
}

std::optional<SimulationOptions> ParseOptions(std::vector<std::string> arguments) {
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

TEST(ScenarioFlagsTest, NoFlagsAreAsRecorded) { EXPECT_EQ(Parse({}), Scenario{}); }

TEST(ScenarioFlagsTest, EveryFlagHasItsField) {
  const TemporaryDirectory directory;
  const std::string priorities = directory.Write("priorities", "recv\t3\n");
  EXPECT_EQ(Parse({"--servers", "2"}), (Scenario{.parameter_servers = 2}));
  EXPECT_EQ(Parse({"--bandwidth", "1Gbit/s"}), (Scenario{.bandwidth_bytes_per_second = 125e6}));
  EXPECT_EQ(Parse({"--parsing-seconds-per-byte", "1e-9"}),
            (Scenario{.parsing_overhead = ParsingOverhead{.seconds_per_byte = 1e-9}}));
  EXPECT_EQ(Parse({"--parsing-seconds", "0.5", "--parsing-seconds-per-byte", "2"}),
            (Scenario{.parsing_overhead = ParsingOverhead{.seconds_per_byte = 2, .seconds = 0.5}}));
  EXPECT_EQ(Parse({"--sync"}), (Scenario{.synchronization = Synchronization::kSynchronous}));
  EXPECT_EQ(Parse({"--window", "64KiB"}), (Scenario{.window_bytes = 65536}));
  EXPECT_EQ(Parse({"--quantum", "1MB"}), (Scenario{.quantum_bytes = 1'000'000}));
  EXPECT_EQ(Parse({"--multiplexing", "window"}), (Scenario{.multiplexing = Multiplexing::kWindow}));
  EXPECT_EQ(Parse({"--multiplexing", "whole-stream"}),
            (Scenario{.multiplexing = Multiplexing::kWholeStream}));
  EXPECT_EQ(Parse({"--multiplexing", "round-robin"}),
            (Scenario{.multiplexing = Multiplexing::kRoundRobin}));
  EXPECT_EQ(Parse({"--first-come"}), (Scenario{.link_sharing = LinkSharing::kFirstCome}));
  EXPECT_EQ(Parse({"--turns", "64KiB"}),
            (Scenario{.link_sharing = LinkSharing::kTurns, .turn_bytes = 65'536}));
  EXPECT_EQ(Parse({"--priorities", priorities}), (Scenario{.transfer_priorities = {{"recv", 3}}}));
  EXPECT_EQ(Parse({"--offsets", "0,5ms,0.1"}),
            (Scenario{.start_offsets_ns = {0, 5'000'000, 100'000'000}}));
  EXPECT_EQ(
      Parse({"--worker-group", "4", "--worker-group", "2:0.5", "--worker-group", "1:1:100Mbit/s"}),
      (Scenario{
          .worker_groups = {
              {.count = 4},
              {.count = 2, .compute_speed_factor = 0.5},
              {.count = 1, .compute_speed_factor = 1, .bandwidth_bytes_per_second = 12.5e6}}}));
}

TEST(ScenarioFlagsTest, EveryOrderHasItsName) {
  for (const auto& [name, order] :
       {std::pair("graph", TransferOrder::kGraph), std::pair("recorded", TransferOrder::kRecorded),
        std::pair("random", TransferOrder::kRandom), std::pair("reverse", TransferOrder::kReverse),
        std::pair("tic", TransferOrder::kTic), std::pair("tac", TransferOrder::kTac)}) {
    EXPECT_EQ(Parse({"--order", name}), (Scenario{.transfer_order = order})) << name;
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
                                             {"--window", "1.5"},
                                             {"--order", "fast"},
                                             {"--order", "explicit"},
                                             {"--priorities", "/nowhere"},
                                             {"--priorities", bad},
                                             {"--priorities", empty},
                                             {"--offsets", "1,,2"},
                                             {"--offsets", "-1"},
                                             {"--worker-group", "x"},
                                             {"--worker-group", "1:x"},
                                             {"--worker-group", "1:1:x"},
                                             {"--multiplexing", "fair"},
                                             {"--order", "tic", "--priorities", "/nowhere"},
                                             {"--no-such-flag"},
                                             {"--bandwidth"}}) {
    EXPECT_EQ(Parse(arguments), std::nullopt) << testing::PrintToString(arguments);
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

TEST(SimulationFlagsTest, EveryFlagHasItsField) {
  EXPECT_EQ(ParseOptions({}), SimulationOptions{});
  EXPECT_EQ(ParseOptions({"--steps", "5", "--warmup", "0", "--seed", "18446744073709551615",
                          "--replications", "3", "--precision", "0.01"}),
            (SimulationOptions{.steps_per_worker = 5,
                               .warmup_steps = 0,
                               .seed = UINT64_MAX,
                               .replications = 3,
                               .relative_precision = 0.01}));
  EXPECT_EQ(ParseOptions({"--time-budget", "500ms", "--confidence", "0.9", "--staggered"}),
            (SimulationOptions{.time_budget = std::chrono::milliseconds(500),
                               .start = Start::kStaggered,
                               .confidence_level = 0.9}));
  EXPECT_EQ(ParseOptions({"--first-steps", "7"}),
            (SimulationOptions{.horizon = Horizon::kFirstSteps, .horizon_steps = 7}));
  EXPECT_EQ(ParseOptions({"--first-seconds", "7.5"}),
            (SimulationOptions{.horizon = Horizon::kFirstSeconds, .horizon_seconds = 7.5}));
}

TEST(SimulationFlagsTest, ATraceHasOnlyThoseWithAnEffect) {
  CLI::App app;
  SimulationFlags flags;
  flags.DeclareForTrace(app);
  app.parse(std::vector<std::string>{"--staggered", "9", "--seed", "3", "--steps"});
  EXPECT_EQ(flags.options(),
            (SimulationOptions{.steps_per_worker = 3, .seed = 9, .start = Start::kStaggered}));
  for (const char* flag : {"--warmup", "--replications", "--precision", "--confidence",
                           "--time-budget", "--first-steps", "--first-seconds"}) {
    EXPECT_EQ(app.get_option_no_throw(flag), nullptr) << flag;
  }
}

TEST(SimulationFlagsTest, WrongUsageIsRefused) {
  EXPECT_EQ(ParseOptions({"--first-steps", "7", "--first-seconds", "7"}), std::nullopt);
  EXPECT_EQ(ParseOptions({"--steps", "1.5"}), std::nullopt);
  EXPECT_EQ(ParseOptions({"--seed", "-1"}), std::nullopt);
  EXPECT_EQ(ParseOptions({"--time-budget", "soon"}), std::nullopt);
}

}  // namespace
}  // namespace stepcast::client::scenario_flags_test
