// Every flag of a scenario with a profile of either kind: the kind of job changes by --servers and
// --all-reduce alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "client/cli/flags/scenario_flags.h"

#include "tests/client/support/local_program.h"

namespace stepcast::client::scenario_kind_test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// Two parameters that a server keeps, with names by which a schedule knows what uses them.
constexpr char kServers[] = R"({
  "batch_size": 8, "parameter_servers": 1,
  "platform": {"bandwidth_bytes_per_second": 1e9, "window_bytes": 65536},
  "operations": [
    {"name": "recv/a", "resource": "DOWNLINK", "size_bytes": 100000, "parameter": "a"},
    {"name": "recv/b", "resource": "DOWNLINK", "size_bytes": 100000, "parameter": "b"},
    {"name": "forward", "resource": "WORKER", "waiting_for": [0, 1]},
    {"name": "backward", "resource": "WORKER", "waiting_for": [2]},
    {"name": "send/a", "resource": "UPLINK", "size_bytes": 100000, "parameter": "a",
     "waiting_for": [3]},
    {"name": "send/b", "resource": "UPLINK", "size_bytes": 100000, "parameter": "b",
     "waiting_for": [3]}],
  "steps": [{"start_ns": [0, 0, 200000, 1200000, 3200000, 3200000],
             "end_ns": [100000, 200000, 1200000, 3200000, 3300000, 3400000]}]})";
// The same with collectives.
constexpr char kCollectives[] = R"({
  "batch_size": 8, "framework": "pytorch",
  "platform": {"bandwidth_bytes_per_second": 1e9, "window_bytes": 65536},
  "operations": [
    {"name": "forward/l", "resource": "WORKER"},
    {"name": "backward/l", "resource": "WORKER", "waiting_for": [0]},
    {"name": "a", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 100000,
     "parameter": "a", "waiting_for": [1]},
    {"name": "b", "resource": "COLLECTIVE", "collective": "ALL_REDUCE", "size_bytes": 100000,
     "parameter": "b", "waiting_for": [1]}],
  "steps": [{"start_ns": [0, 1000000, 3000000, 3000000],
             "end_ns": [1000000, 3000000, 3000000, 3000000]}]})";

constexpr char kContention[] = R"({
  "alpha2": 1e-4, "overlapped": {"gamma1": 1e9, "gamma2": 5e8, "gamma3": 0.02},
  "alone": {"gamma1": 1.2e9, "gamma2": 5e8, "gamma3": 0.02}})";

enum class Belongs { kToBoth, kToServers, kToCollectives };

// A flag with a value, and what it needs beside it.
struct Row {
  std::string flag;
  Belongs belongs;
  std::vector<std::string> rest;
};

std::vector<Row> Rows(const std::string& priorities, const std::string& contention) {
  constexpr auto kBoth = Belongs::kToBoth;
  constexpr auto kToServers = Belongs::kToServers;
  constexpr auto kToCollectives = Belongs::kToCollectives;
  return {{"--bandwidth", kBoth, {"1Gbit/s"}},
          {"--bandwidth-measured", kBoth, {}},
          {"--other-traffic", kBoth, {"25%"}},
          {"--cluster", kBoth, {"10gbe"}},
          {"--nodes-per-worker", kToCollectives, {"1"}},
          {"--worker-group", kBoth, {"2:0.5"}},
          {"--batch-size", kBoth, {"16"}},
          {"--global-batch", kBoth, {"16"}},
          {"--batch-fixed", kBoth, {"0.5", "--batch-size", "16"}},
          {"--compute-speed", kBoth, {"2"}},
          {"--gradient-bytes", kBoth, {"0.5"}},
          {"--offsets", kBoth, {"0,1ms"}},
          {"--parsing-seconds-per-byte", kToServers, {"1e-9"}},
          {"--parsing-seconds", kToServers, {"1e-5"}},
          {"--first-come", kToServers, {}},
          {"--turns", kToServers, {"65160B"}},
          {"--equal-shares", kToServers, {}},
          {"--multiplexing", kToServers, {"round-robin"}},
          {"--window", kToServers, {"64KiB"}},
          {"--quantum", kToServers, {"1MiB"}},
          {"--sync", kToServers, {}},
          {"--summed", kToServers, {}},
          {"--server-partition", kToServers, {"50000B"}},
          {"--order", kToServers, {"tac"}},
          {"--priorities", kToServers, {priorities}},
          {"--algorithm", kToCollectives, {"tree"}},
          {"--workers-per-node", kToCollectives, {"2", "--intra-bandwidth", "100GB/s"}},
          {"--latency", kToCollectives, {"20us"}},
          {"--intra-bandwidth", kToCollectives, {"100GB/s", "--workers-per-node", "2"}},
          {"--intra-latency",
           kToCollectives,
           {"3us", "--workers-per-node", "2", "--intra-bandwidth", "100GB/s"}},
          {"--reduction-seconds-per-byte", kToCollectives, {"1e-10"}},
          {"--launch", kToCollectives, {"10us"}},
          {"--bucket-cap", kToCollectives, {"25MiB"}},
          {"--bucket-cap-mb", kToCollectives, {"25"}},
          {"--first-bucket", kToCollectives, {"1MiB", "--bucket-cap", "25MiB"}},
          {"--horovod-fusion", kToCollectives, {"1MiB"}},
          {"--horovod-cycle", kToCollectives, {"1ms"}},
          {"--byte-scheduler", kToCollectives, {"16MB"}},
          {"--concurrent", kToCollectives, {"2", "--algorithm", "gloo"}},
          {"--partition", kToCollectives, {"50000B"}},
          {"--sharding", kToCollectives, {"optimizer"}},
          {"--fidelity", kToCollectives, {"expanded"}},
          {"--workers-per-rack",
           kToCollectives,
           {"1", "--rack-bandwidth", "1GB/s", "--fidelity", "expanded"}},
          {"--rack-bandwidth",
           kToCollectives,
           {"1GB/s", "--workers-per-rack", "1", "--fidelity", "expanded"}},
          {"--overlap-slowdown", kToCollectives, {"1.5"}},
          {"--collective-slowdown", kToCollectives, {"1.5"}},
          {"--contention", kToCollectives, {contention, "--collective-threads", "512"}},
          {"--collective-threads", kToCollectives, {"512", "--contention", contention}}};
}

class ScenarioKindTest : public LocalProgramTest {
 protected:
  Outcome Predict(const std::string& profile, const std::vector<std::string>& flags,
                  bool as_json = true) const {
    std::vector<std::string> arguments{"predict", profile, "--workers", "2", "--steps", "20"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    if (as_json) arguments.insert(arguments.end(), {"--output", "json"});
    return Run(arguments);
  }
  static std::string KindOf(const Outcome& outcome) {
    if (outcome.exit_code != 0) return outcome.err;
    const Json scenario = Json::parse(outcome.out)["predictions"][0]["scenario"];
    return scenario.contains("allReduce") ? "collectives" : "servers";
  }

  const std::string servers_ = directory_.Write("servers.json", kServers);
  const std::string collectives_ = directory_.Write("collectives.json", kCollectives);
  const std::string priorities_ = directory_.Write("priorities", "recv/a\t0\n");
  const std::string contention_ = directory_.Write("contention.json", kContention);
};

TEST_F(ScenarioKindTest, EveryFlagThatIsDeclaredHasARow) {
  CLI::App app;
  ScenarioFlags flags;
  flags.Declare(app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kAllowed);
  std::set<std::string> declared;
  for (const CLI::Option* option : app.get_options()) declared.insert(option->get_name());
  for (const char* asks : {"--help", "--servers", "--all-reduce", "--scenario"})
    declared.erase(asks);
  // These are of the recorded job, whatever kind is asked about, or of a recording or a benchmark
  // in a file: job_change_test, pipeline_test and calibration_test in tests/e2e have them.
  for (const char* recorded : {"--accumulate", "--batch-recording", "--measured", "--pipeline"})
    EXPECT_EQ(declared.erase(recorded), 1) << recorded;
  std::set<std::string> rows;
  for (const Row& row : Rows("", "")) rows.insert(row.flag);
  EXPECT_EQ(rows, declared);
}

TEST_F(ScenarioKindTest, AFlagOfTheOtherKindIsRefusedWithWhatToDo) {
  for (const Row& row : Rows(priorities_, contention_)) {
    SCOPED_TRACE(row.flag);
    std::vector<std::string> flags{row.flag};
    flags.insert(flags.end(), row.rest.begin(), row.rest.end());
    const Outcome of_servers = Predict(servers_, flags);
    if (row.belongs == Belongs::kToCollectives) {
      EXPECT_EQ(of_servers.exit_code, 1);
      EXPECT_THAT(of_servers.err, HasSubstr("belongs to collectives"));
      EXPECT_THAT(of_servers.err, HasSubstr("--all-reduce"));
    } else {
      EXPECT_EQ(KindOf(of_servers), "servers");
    }
    const Outcome of_collectives = Predict(collectives_, flags);
    if (row.belongs == Belongs::kToServers) {
      EXPECT_EQ(of_collectives.exit_code, 1);
      EXPECT_THAT(of_collectives.err, HasSubstr("belongs to parameter servers"));
      EXPECT_THAT(of_collectives.err, HasSubstr("--servers N"));
    } else {
      EXPECT_EQ(KindOf(of_collectives), "collectives");
    }
  }
}

TEST_F(ScenarioKindTest, BesideWhatAsksForItsKindEveryFlagCounts) {
  for (const Row& row : Rows(priorities_, contention_)) {
    SCOPED_TRACE(row.flag);
    // Ranks are of transfers, and this profile's have other names then; nothing of the other kind
    // says which computation uses a parameter.
    if (row.flag == "--priorities" || row.flag == "--byte-scheduler") continue;
    std::vector<std::string> flags{row.flag};
    flags.insert(flags.end(), row.rest.begin(), row.rest.end());
    flags.insert(flags.end(), {"--servers", "1"});
    const Outcome with_servers = Predict(collectives_, flags);
    flags.resize(flags.size() - 2);
    flags.emplace_back("--all-reduce");
    const Outcome with_all_reduce = Predict(servers_, flags);
    if (row.belongs == Belongs::kToCollectives) {
      EXPECT_EQ(with_servers.exit_code, 2) << with_servers.out;
    } else {
      EXPECT_EQ(KindOf(with_servers), "servers");
    }
    if (row.belongs == Belongs::kToServers) {
      EXPECT_EQ(with_all_reduce.exit_code, 2) << with_all_reduce.out;
    } else {
      EXPECT_EQ(KindOf(with_all_reduce), "collectives");
    }
  }
}

TEST_F(ScenarioKindTest, AChangeThatWasAskedForIsALineOfTheAnswer) {
  const Outcome to_servers = Predict(collectives_, {"--servers", "2"}, false);
  EXPECT_EQ(to_servers.exit_code, 0) << to_servers.err;
  EXPECT_THAT(to_servers.out,
              HasSubstr("\nkind of job: The profile was recorded with collectives, and is asked "
                        "about with parameter servers. (--servers)\n"));
  const Outcome to_collectives = Predict(servers_, {"--all-reduce"}, false);
  EXPECT_EQ(to_collectives.exit_code, 0) << to_collectives.err;
  EXPECT_THAT(to_collectives.out, HasSubstr("\nkind of job: The profile was recorded with "
                                            "parameter servers, and is asked about with "
                                            "collectives. (--all-reduce)\n"));
  for (const std::string& same : {Predict(servers_, {"--servers", "1"}, false).out,
                                  Predict(collectives_, {"--all-reduce"}, false).out})
    EXPECT_THAT(same, Not(HasSubstr("kind of job")));
}

TEST_F(ScenarioKindTest, WhatWasAssumedIsOneLineForAllRows) {
  const Outcome outcome = Run({"predict", collectives_, "--workers", "1,2,4", "--steps", "20"});
  EXPECT_THAT(outcome.out,
              HasSubstr("\nassumed: algorithm ring (--algorithm), latency 25us "
                        "(--latency), buckets of 1 MiB, then 25 MiB (--bucket-cap)\n"));
  const Outcome alone = Run({"predict", collectives_, "--workers", "1", "--steps", "20"});
  EXPECT_THAT(alone.out, Not(HasSubstr("assumed:")));
  const Outcome nodes = Run({"predict", servers_, "--workers", "2", "--cluster", "dgx-a100"});
  EXPECT_THAT(nodes.out, HasSubstr("a node's link for each worker (--worker-group)"));
  const Outcome none =
      Predict(collectives_, {"--algorithm", "tree", "--latency", "0", "--bucket-cap", "none"});
  EXPECT_TRUE(Json::parse(none.out)["predictions"][0].value("assumptions", Json()).empty())
      << none.out;
  const Json told = Json::parse(Predict(collectives_, {}).out)["predictions"][0]["assumptions"];
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[1]["field"], "scenario.all_reduce.latency_seconds");
  EXPECT_EQ(told[1]["value"], "25us");
}

// A file's fields count as if it were asked by a client of the API, and flags replace it.
TEST_F(ScenarioKindTest, AFileSaysWhatNoFlagDoes) {
  const std::string file = directory_.Write("scenario.json", R"({"all_reduce": {
    "latency_seconds": 1e-5, "threads": 512, "contention": )" + std::string(kContention) +
                                                                 R"(,
    "groups": {"groups": [{"operations": ["a"], "threads": 64}, {"operations": ["b"]}]}}})");
  const Outcome outcome = Predict(collectives_, {"--scenario", file, "--latency", "2ms"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json told = Json::parse(outcome.out)["predictions"][0]["scenario"]["allReduce"];
  EXPECT_EQ(told["latencySeconds"], 2e-3);
  EXPECT_EQ(told["threads"], 512);
  EXPECT_EQ(told["groups"]["groups"][0]["threads"], 64);
  EXPECT_EQ(told["contention"]["alpha2"], 1e-4);
  for (const char* command : {"predict", "recommend", "tune", "diagnose", "compare", "report"}) {
    SCOPED_TRACE(command);
    std::vector<std::string> arguments{command, collectives_, "--scenario", file};
    if (command == std::string("report"))
      arguments.insert(arguments.end(), {"--out", directory_.Path("out")});
    const Outcome each = Run(arguments);
    EXPECT_EQ(each.exit_code, 0) << each.err;
  }
  const Outcome both = Predict(collectives_, {"--scenario", file, "--sync"});
  EXPECT_EQ(both.exit_code, 2) << both.out;
  const Outcome sized =
      Predict(collectives_, {"--scenario", directory_.Write("sized.json", R"({"workers": 4})")});
  EXPECT_EQ(sized.exit_code, 2);
  EXPECT_THAT(sized.err, HasSubstr("--workers does"));
  const Outcome unknown =
      Predict(collectives_, {"--scenario", directory_.Write("bad.json", R"({"wrokers": 4})")});
  EXPECT_EQ(unknown.exit_code, 2);
}

// The other commands take the same flags.
TEST_F(ScenarioKindTest, EveryCommandRefusesTheOtherKind) {
  for (const char* command : {"predict", "recommend", "tune", "diagnose", "optimize", "compare",
                              "trace", "report", "order"}) {
    SCOPED_TRACE(command);
    std::vector<std::string> arguments{command, collectives_, "--sync"};
    if (command == std::string("trace") || command == std::string("report"))
      arguments.insert(arguments.end(), {"--out", directory_.Path("out")});
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("belongs to parameter servers"));
    arguments[1] = servers_;
    arguments[2] = "--launch";
    arguments.insert(arguments.begin() + 3, "1us");
    const Outcome other = Run(arguments);
    EXPECT_EQ(other.exit_code, 1) << other.out;
    EXPECT_THAT(other.err, HasSubstr("belongs to collectives"));
  }
}

}  // namespace
}  // namespace stepcast::client::scenario_kind_test
