// The program, on files, without a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "stepcast/json.h"
#include "tests/client/support/program.h"
#include "tests/client/support/temporary_directory.h"
#include "tests/client/support/tiny_profile.h"

namespace stepcast::client::local_program_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

// 2 (W - 1) (10 us + bytes / (W x 1 GB/s)).
constexpr char kBenchmark[] =
    "kind,workers,size_bytes,seconds\n"
    "ALL_REDUCE,2,10000,30e-6\nALL_REDUCE,2,1000000,1020e-6\n"
    "ALL_REDUCE,4,10000,75e-6\nALL_REDUCE,4,1000000,1560e-6\n";

class LocalProgramTest : public testing::Test {
 protected:
  Outcome Run(std::vector<std::string> arguments,
              std::map<std::string, std::string> environment = {}) const {
    arguments.insert(arguments.begin(), STEPCAST_PROGRAM);
    environment.emplace("STEPCAST_SERVER", "");
    return RunProgram(arguments, environment);
  }

  TemporaryDirectory directory_;
  std::string tiny_ = directory_.Write("tiny.json", ToJson(TinyProfile()));
};

std::string ContentionTable() {
  std::string table = "kind,threads,size_bytes,seconds\ncomputation,0,,1\n";
  for (const int threads : {128, 256, 512, 1024}) {
    absl::StrAppend(&table, "alone,", threads, ",1000000,", 1e-3 + 0.1 / threads, "\n");
    absl::StrAppend(&table, "overlapped,", threads, ",1000000,", 2e-3 + 0.1 / threads, "\n");
    absl::StrAppend(&table, "computation,", threads, ",,", 1 + 1e-4 * threads, "\n");
  }
  return table;
}

TEST_F(LocalProgramTest, PredictsATable) {
  const Outcome outcome = Run({"--local", "predict", tiny_, "--workers", "1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, StartsWith("workers  examples/s"));
  EXPECT_THAT(outcome.out, HasSubstr("      1        2000"));
}

TEST_F(LocalProgramTest, WhatIsAboutFilesNeedsNeitherFlagNorServer) {
  const std::string jobs = directory_.Write(
      "jobs.json",
      Json{{"jobs", {{{"id", "a"}, {"profile", tiny_}}}}, {"capacity", {{"workers", 3}}}}.dump());
  const std::string parsing = directory_.Write("parsing.csv", "1000,3e-6\n2000,5e-6\n3000,7e-6\n");
  const std::vector<std::vector<std::string>> commands{
      {"predict", tiny_, "--workers", "1", "--steps", "50"},
      {"recommend", tiny_, "--max-workers", "2", "--steps", "50"},
      {"order", tiny_, "--steps", "50"},
      {"compare", tiny_, "--workers", "1", "--steps", "50"},
      {"trace", tiny_, "--workers", "1"},
      {"report", tiny_, "--workers", "1", "--steps", "50", "--out", directory_.Path("report.html")},
      {"allocate", jobs, "--steps", "50"},
      {"profile", "check", tiny_},
      {"profile", "fit", parsing},
      {"profile", "fit-collectives", directory_.Write("benchmark.csv", kBenchmark)},
      {"profile", "fit-contention", directory_.Write("overlapped.csv", ContentionTable())},
      {"profile", "get", tiny_},
      {"profile", "zoo", "alexnet", "--bandwidth", "1Gbit/s", "--save",
       directory_.Path("alexnet.json")},
  };
  for (std::vector<std::string> command : commands) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.exit_code, 0) << testing::PrintToString(command) << outcome.err;
    // A server that is named is asked, whatever the command is about.
    for (const auto& [flags, environment] :
         std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"--server", "127.0.0.1:1"}, ""}, {{}, "127.0.0.1:1"}}) {
      std::vector<std::string> named = command;
      named.insert(named.end(), flags.begin(), flags.end());
      if (command[1] == "get") continue;  // of a server it names what is stored
      const Outcome asked = Run(named, {{"STEPCAST_SERVER", environment}});
      EXPECT_EQ(asked.exit_code, 1) << testing::PrintToString(named) << asked.out;
      EXPECT_THAT(asked.err, HasSubstr("UNAVAILABLE")) << testing::PrintToString(named);
    }
  }
}

TEST_F(LocalProgramTest, WhatIsNoFileIsAskedOfTheServerAndSaid) {
  const Outcome outcome = Run({"predict", "resnet50", "--server", "127.0.0.1:1"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(
      outcome.err,
      HasSubstr(
          "hint: there is no file \"resnet50\", so it was taken for the name of a stored profile"));
}

TEST_F(LocalProgramTest, PredictsForOneToSixteenWorkersUnlessTold) {
  const Json json =
      Json::parse(Run({"predict", tiny_, "--local", "--steps", "100", "--output", "json"}).out);
  ASSERT_EQ(json["predictions"].size(), 16);
  EXPECT_EQ(json["predictions"][15]["scenario"]["workers"], 16);
}

TEST_F(LocalProgramTest, EveryFlagReachesTheSimulation) {
  const Outcome outcome = Run({"predict",     tiny_,
                               "--local",     "--output",
                               "json",        "--workers",
                               "2",           "--bandwidth",
                               "16Mbit/s",    "--window",
                               "600",         "--order",
                               "tac",         "--sync",
                               "--steps",     "50",
                               "--warmup",    "5",
                               "--seed",      "9",
                               "--staggered", "--replications",
                               "2",           "--servers",
                               "1",           "--parsing-seconds",
                               "0.001",       "--confidence",
                               "0.9"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  const Json& scenario = json["predictions"][0]["scenario"];
  EXPECT_EQ(scenario["workers"], 2);
  EXPECT_EQ(scenario["bandwidthBytesPerSecond"], 2e6);
  const Json& servers = scenario["parameterServers"];
  EXPECT_EQ(servers["window"]["bytes"], "600");
  EXPECT_EQ(servers["transferOrder"], "TAC");
  EXPECT_EQ(servers["synchronization"], "SYNCHRONOUS");
  EXPECT_EQ(servers["parsingOverhead"]["seconds"], 0.001);
  EXPECT_EQ(json["options"]["stepsPerWorker"], 50);
  EXPECT_EQ(json["options"]["warmupSteps"], 5);
  EXPECT_EQ(json["options"]["start"], "STAGGERED");
  EXPECT_EQ(json["options"]["replications"], 2);
  EXPECT_EQ(json["options"]["confidenceLevel"], 0.9);
  EXPECT_EQ(json["seed"], "9");
  EXPECT_EQ(outcome.err, "") << "JSON is for programs";
}

TEST_F(LocalProgramTest, PredictsTheBeginningOfAJob) {
  for (const auto& [flag, value] :
       {std::pair("--first-steps", "10"), std::pair("--first-seconds", "0.05")}) {
    const Outcome outcome =
        Run({"predict", tiny_, "--local", "--output", "json", "--workers", "1", flag, value});
    ASSERT_EQ(outcome.exit_code, 0) << flag << ": " << outcome.err;
    const Json json = Json::parse(outcome.out);
    EXPECT_NEAR(json["predictions"][0]["stepsPerSecond"], 200, 1e-6) << flag;
    EXPECT_EQ(json["predictions"][0]["steadyState"], false) << flag;
    EXPECT_FALSE(json["options"].contains("stepsPerWorker")) << flag;
    EXPECT_FALSE(json["options"].contains("warmupSteps")) << flag;
  }
  EXPECT_THAT(Run({"predict", tiny_, "--local", "--first-steps", "10", "--steps", "10"}).err,
              HasSubstr("steps_per_worker"));
}

TEST_F(LocalProgramTest, OrdersAsTheContractSays) {
  const Outcome outcome = Run({"order", "--local", tiny_, "--workers", "1", "--method", "tac",
                               "--method", "graph", "--output", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["orders"].size(), 2);
  EXPECT_EQ(json["orders"][0]["method"], "TAC");
  EXPECT_EQ(json["orders"][0]["makespanNs"], "5000000");
  EXPECT_EQ(json["orders"][0]["transfers"][0]["name"], "recv");
  EXPECT_EQ(json["orders"][1]["method"], "GRAPH");
}

TEST_F(LocalProgramTest, AMethodDoesNotSwallowTheProfile) {
  EXPECT_EQ(Run({"order", "--local", "--method", "tac", tiny_}).exit_code, 0);
  EXPECT_EQ(Run({"predict", "--local", "--workers", "1", "--worker-group", "1", tiny_}).exit_code,
            0);
}

TEST_F(LocalProgramTest, ASavedOrderCanBePredicted) {
  const std::string file = directory_.Path("priorities");
  ASSERT_EQ(
      Run({"order", "--local", tiny_, "--method", "tac", "--save-priorities", file}).exit_code, 0);
  EXPECT_EQ(directory_.Read("priorities"), "recv\t0\n");
  const Outcome outcome = Run(
      {"predict", "--local", tiny_, "--workers", "1", "--priorities", file, "--output", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(
      Json::parse(outcome.out)["predictions"][0]["scenario"]["parameterServers"]["transferOrder"],
      "EXPLICIT");
}

TEST_F(LocalProgramTest, RecommendsWithinItsBounds) {
  const Outcome outcome =
      Run({"recommend", "--local", tiny_, "--min-workers", "2", "--max-workers", "4", "--objective",
           "max-throughput", "--steps", "100", "--output", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["frontier"].size(), 3);
  EXPECT_EQ(json["frontier"][0]["scenario"]["workers"], 2);
  const Outcome table =
      Run({"recommend", "--local", tiny_, "--max-workers", "3", "--steps", "100"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("\n->"));
}

TEST_F(LocalProgramTest, RecommendsByTimeAndMoney) {
  const std::vector<std::string> flags{
      "recommend", "--local",        tiny_,      "--max-workers", "4",    "--steps",
      "100",       "--objective",    "min-cost", "--examples",    "1000", "--worker-hour",
      "2.5",       "--server-hour",  "1",        "--currency",    "EUR",  "--current-workers",
      "2",         "--rescale-time", "90s",      "--deadline",    "30d",  "--output",
      "json"};
  std::vector<std::string> with_days = flags;
  EXPECT_EQ(Run(with_days).exit_code, 2);  // days are no unit
  with_days[with_days.size() - 3] = "700h";
  const Outcome outcome = Run(with_days);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["currencyCode"], "EUR");
  EXPECT_GT(json["cost"], 0);
  EXPECT_EQ(json["frontierOutcomes"].size(), json["frontier"].size());
  EXPECT_THAT(std::string(json["reason"]), HasSubstr("the least cost"));
  with_days.resize(with_days.size() - 2);
  const Outcome table = Run(with_days);
  EXPECT_THAT(table.out, testing::AllOf(HasSubstr("cost, EUR"), HasSubstr("\n->")));
}

TEST_F(LocalProgramTest, SaysWhatComesNearestToWhatCannotBeKept) {
  const Outcome outcome = Run({"recommend", "--local", tiny_, "--max-workers", "4", "--steps",
                               "100", "--examples", "1000000", "--deadline", "1us"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::AllOf(HasSubstr("No recommendation: "), HasSubstr("too long"),
                                          HasSubstr("comes nearest to the constraints")));
}

TEST_F(LocalProgramTest, PlotsBelowTheTableInWhatTheLocaleHas) {
  const std::vector<std::string> flags{"predict", tiny_,     "--local", "--workers",
                                       "1-4",     "--steps", "100",     "--plot"};
  const Outcome utf8 = Run(flags, {{"LC_ALL", "C.UTF-8"}});
  EXPECT_EQ(utf8.exit_code, 0) << utf8.err;
  EXPECT_THAT(utf8.out, testing::AllOf(StartsWith("workers  examples/s"),
                                       HasSubstr("\n\ntiny\n1 server, 1.000 MB/s links, "),
                                       HasSubstr("\u25c6 knee: ")));
  const Outcome ascii = Run(flags, {{"LC_ALL", "C"}});
  EXPECT_THAT(ascii.out, HasSubstr("# knee: "));
  EXPECT_TRUE(std::all_of(ascii.out.begin(), ascii.out.end(), [](char c) { return c > 0; }))
      << ascii.out;
  const Outcome recommended =
      Run({"recommend", "--local", "--max-workers", "3", "--steps", "100", "--plot", tiny_},
          {{"LC_ALL", "C"}});
  EXPECT_EQ(recommended.exit_code, 0) << recommended.err;
  EXPECT_THAT(recommended.out, testing::AllOf(HasSubstr("\n->"), HasSubstr("# recommended: ")));
}

TEST_F(LocalProgramTest, APlotInAFileIsSvgBesideAnyOutput) {
  const std::string file = directory_.Path("curve.svg");
  const Outcome predicted = Run({"predict", tiny_, "--local", "--workers", "1-4", "--steps", "100",
                                 "--plot", file, "--output", "json"});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_EQ(Json::parse(predicted.out)["predictions"].size(), 4);
  EXPECT_THAT(
      directory_.Read("curve.svg"),
      testing::AllOf(StartsWith("<?xml"), HasSubstr("<title>tiny</title>"), HasSubstr("knee: ")));
  const Outcome recommended = Run(
      {"recommend", tiny_, "--local", "--max-workers", "3", "--steps", "100", "--plot=" + file});
  EXPECT_EQ(recommended.exit_code, 0) << recommended.err;
  EXPECT_EQ(recommended.out.find("linear scaling"), std::string::npos) << "it is in the file";
  EXPECT_THAT(directory_.Read("curve.svg"), HasSubstr("recommended: "));
}

TEST_F(LocalProgramTest, APlotIsValidXmlWhateverTheModelIsCalled) {
  constexpr char kChecker[] = "/usr/bin/xmllint";
  if (!std::filesystem::exists(kChecker)) GTEST_SKIP() << "there is no " << kChecker;
  v1::Profile profile = TinyProfile();
  profile.set_model("]]></svg> & <b \"'\x01\u00e4\ufffe");
  const std::string file = directory_.Path("curve.svg");
  const Outcome outcome = Run({"predict", directory_.Write("odd.json", ToJson(profile)), "--local",
                               "--workers", "1-4", "--plot", file});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Outcome checked = RunProgram({kChecker, "--noout", "--nonet", file});
  EXPECT_EQ(checked.exit_code, 0) << checked.err << directory_.Read("curve.svg");
}

TEST_F(LocalProgramTest, RefusesPlotsThatCannotBe) {
  for (const char* const command : {"predict", "recommend"}) {
    const Outcome json = Run({command, tiny_, "--local", "--plot", "--output", "json"});
    EXPECT_EQ(json.exit_code, 2);
    EXPECT_EQ(json.out, "");
    EXPECT_THAT(json.err, HasSubstr("--plot: with --output json"));
    const Outcome swallowed = Run({command, "--plot", tiny_, "--local"});
    EXPECT_EQ(swallowed.exit_code, 2);
    EXPECT_THAT(swallowed.err, HasSubstr("does not end in .svg"));
    const Outcome unwritable = Run(
        {command, tiny_, "--local", "--steps", "100", "--plot", directory_.Path("none/curve.svg")});
    EXPECT_EQ(unwritable.exit_code, 1);
    EXPECT_THAT(unwritable.err, HasSubstr("cannot write " + directory_.Path("none/curve.svg")));
  }
}

TEST_F(LocalProgramTest, TracesToAFileOrStandardOutput) {
  const std::string file = directory_.Path("trace.json");
  const std::vector<std::string> flags{"trace",  "--local",  tiny_, "--workers",
                                       "2",      "--steps",  "3",   "--multiplexing",
                                       "window", "--window", "600"};
  std::vector<std::string> to_file = flags;
  to_file.insert(to_file.end(), {"--out", file});
  const Outcome written = Run(to_file);
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out + written.err, "");
  const Outcome printed = Run(flags);
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_EQ(directory_.Read("trace.json"), printed.out);
  size_t slices = 0;
  const Json trace = Json::parse(printed.out);
  for (const Json& event : trace["traceEvents"]) slices += event["ph"] == "X" ? 1 : 0;
  EXPECT_EQ(slices, 2 * 3 * (1 + 4 + 2)) << "each transfer of 1000 bytes takes two services";
}

TEST_F(LocalProgramTest, ATraceThatIsRefusedLeavesTheFileAlone) {
  const std::string file = directory_.Write("kept", "what was there");
  const Outcome refused = Run({"trace", "--local", tiny_, "--steps", "0", "--out", file});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("  options.steps_per_worker: 0"));
  EXPECT_EQ(directory_.Read("kept"), "what was there");
  const Outcome full = Run({"trace", "--local", tiny_, "--out", "/dev/full"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write /dev/full"));
  EXPECT_THAT(full.err, HasSubstr("/dev/full holds only a part of the trace"));
  EXPECT_EQ(Run({"trace", "--local", tiny_, "--replications", "2"}).exit_code, 2);
}

// Recordings of the testbed: one as DistributedDataParallel makes buckets by default, one with a
// cap of 5 MiB.
TEST_F(LocalProgramTest, ChecksTracesOfPyTorch) {
  const std::string data = STEPCAST_SOURCE_DIR "/tests/data/";
  const std::string file = directory_.Path("imported.json");
  const auto import = [&](const char* trace) {
    const Outcome made = Run({"profile", "import", data + trace, "--format", "pytorch",
                              "--batch-size", "32", "--bandwidth", "1Gbit/s", "--save", file});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  };
  import("pytorch/alexnet_s-25.json.gz");
  const Outcome by_default = Run({"profile", "check", file});
  EXPECT_EQ(by_default.exit_code, 0) << by_default.err;
  EXPECT_THAT(by_default.out, HasSubstr("\nexplained: 100.0% of one worker's step"));
  EXPECT_THAT(by_default.out, HasSubstr("\nstep: 100.0% computation, 0.0% collectives alone"));
  EXPECT_THAT(by_default.out,
              HasSubstr("\nbuckets: 2: 4.978 MiB at 46.80 ms, 9.927 MiB at 119.9 ms, ready"));
  EXPECT_THAT(by_default.out, HasSubstr("\nrule: DistributedDataParallel's by default"));
  EXPECT_THAT(by_default.out, testing::Not(HasSubstr("link:")));
  import("ddp/resnet50_s/resnet50_s-5.json.gz");
  const Json json = Json::parse(Run({"profile", "check", file, "--output", "json"}).out);
  const Json& all_reduce = json["recording"]["allReduce"];
  EXPECT_EQ(all_reduce["rule"]["verdict"], "OTHER_LIMITS");
  ASSERT_EQ(all_reduce["buckets"].size(), 6U);
  EXPECT_EQ(all_reduce["buckets"][1]["sizeBytes"], "5529504");
  EXPECT_LE(std::stoll(all_reduce["rule"]["cap"]["leastBytes"].get<std::string>()), 5 << 20);
  EXPECT_GE(std::stoll(all_reduce["rule"]["cap"]["mostBytes"].get<std::string>()), 5 << 20);
  ASSERT_EQ(all_reduce["defaultBuckets"].size(), 2U);
  EXPECT_EQ(all_reduce["defaultBuckets"][0]["sizeBytes"], "4096000");
  EXPECT_EQ(all_reduce["defaultBuckets"][1]["sizeBytes"], "23574560");
}

TEST_F(LocalProgramTest, MakesChecksAndShowsProfiles) {
  const std::string file = directory_.Path("alexnet.json");
  const Outcome made = Run({"--local", "profile", "zoo", "alexnet", "--bandwidth", "1Gbit/s",
                            "--label", "team=vision", "--save", file});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("saved: " + file));
  const Outcome checked = Run({"--local", "profile", "check", file});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out, StartsWith("valid: "));
  EXPECT_THAT(checked.out, HasSubstr("\ndownlink: "));
  const Outcome shown = Run({"--local", "profile", "get", file, "--output", "json"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(Json::parse(shown.out)["labels"]["team"], "vision");
  EXPECT_EQ(Json::parse(shown.out)["platform"]["bandwidthBytesPerSecond"], 125e6);
}

TEST_F(LocalProgramTest, ImportsMeasuredLayers) {
  const std::string layers =
      directory_.Write("layers.txt",
                       "node1 -- Input0 -- forward_compute_time=1.000, "
                       "backward_compute_time=0.000, activation_size=0.0, parameter_size=0.000\n"
                       "node2 -- Linear(a) -- forward_compute_time=2.000, "
                       "backward_compute_time=4.000, activation_size=1.0, parameter_size=4000.000\n"
                       "\tnode1 -- node2\n");
  const Outcome outcome = Run({"--local", "profile", "import", layers, "--batch-size", "8",
                               "--bandwidth", "1MB/s", "--output", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["profile"]["batchSize"], 8);
  EXPECT_FALSE(json["profile"]["operations"].empty());
  EXPECT_FALSE(json["notes"].empty());
}

TEST_F(LocalProgramTest, ImportsATraceOfPyTorchByItsFirstBytes) {
  const std::string trace = STEPCAST_SOURCE_DIR "/tests/data/pytorch/alexnet_s-25.json.gz";
  const std::vector<std::string> import = {"--local",      "profile", "import",      trace,
                                           "--batch-size", "128",     "--bandwidth", "1Gbit/s",
                                           "--output",     "json"};
  const auto with = [&import](std::vector<std::string> more) {
    more.insert(more.begin(), import.begin(), import.end());
    return more;
  };
  const Outcome outcome = Run(with({"--step-seconds", "0.12"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json profile = Json::parse(outcome.out)["profile"];
  EXPECT_EQ(profile["framework"], "pytorch");
  EXPECT_EQ(profile["buckets"]["sizesBytes"], Json({"5219304", "10409344"}));
  EXPECT_THAT(outcome.out, HasSubstr("so that a step lasts the 0.12 s"));
  EXPECT_THAT(Run(with({"--steps", "3"})).err,
              HasSubstr("--steps or --seed does not apply to a trace of PyTorch"));
  EXPECT_THAT(Run(with({"--format", "timeline", "--step-seconds", "1"})).err,
              HasSubstr("--step-seconds does not apply to a timeline"));
  EXPECT_THAT(Run(with({"--step-seconds", "0"})).err, HasSubstr("header.pytorch.step_seconds"));
}

TEST_F(LocalProgramTest, ImportsTracesOfChakraAndTimelinesOfHorovod) {
  const std::string chakra = directory_.Write(
      "chakra.json",
      R"({"workload_graph": [{"Id": 1, "Name": "backward", "NodeType": 4, "data_deps": [], "runtime": 318, "is_cpu_op": false},
                             {"Id": 2, "Name": "reduce", "NodeType": 7, "data_deps": [1], "runtime": 9, "comm_type": 0, "comm_size": 4096}]})");
  std::string events = R"([{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "w"}})";
  for (int step = 0; step < 3; ++step) {
    const int at = 1000 * (step + 1);
    events += R"(, {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "pid": 1, "ts": )" +
              std::to_string(at) + R"(}, {"ph": "E", "pid": 1, "ts": )" + std::to_string(at + 1) +
              R"(}, {"ph": "B", "name": "ALLREDUCE", "pid": 1, "ts": )" + std::to_string(at + 2) +
              R"(}, {"ph": "E", "pid": 1, "ts": )" + std::to_string(at + 9) +
              R"(, "args": {"dtype": "float32", "shape": "[1024]"}})";
  }
  const std::string horovod = directory_.Write("horovod.json", events + "]");
  for (const std::string& file : {chakra, horovod}) {
    const Outcome outcome = Run({"--local", "profile", "import", file, "--batch-size", "8",
                                 "--bandwidth", "1MB/s", "--output", "json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json operations = Json::parse(outcome.out)["profile"]["operations"];
    ASSERT_EQ(operations.size(), 2U);
    EXPECT_EQ(operations[1]["collective"], "ALL_REDUCE");
    EXPECT_EQ(operations[1]["sizeBytes"], "4096");
  }
  EXPECT_THAT(Run({"--local", "profile", "import", horovod, "--batch-size", "8", "--bandwidth",
                   "1MB/s", "--seed", "3"})
                  .err,
              HasSubstr("--steps or --seed does not apply to a timeline of Horovod"));
}

TEST_F(LocalProgramTest, ImportsATimelineWithTheSizesOfItsVariables) {
  const std::string timeline = directory_.Write(
      "timeline.json",
      R"({"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/job:localhost/task:0/cpu:0 Compute"}},
                           {"ph": "X", "pid": 1, "ts": 5, "dur": 7, "args": {"name": "w", "op": "VariableV2"}},
                           {"ph": "X", "pid": 1, "ts": 20, "dur": 9, "args": {"name": "loss", "op": "MatMul", "input0": "w"}}]})");
  const std::string sizes = directory_.Write("sizes.txt", "w 4KiB\n");
  const std::vector<std::string> import = {"--local",      "profile", "import",      timeline,
                                           "--batch-size", "8",       "--bandwidth", "1MB/s",
                                           "--output",     "json"};
  const auto with = [&import](std::vector<std::string> more) {
    more.insert(more.begin(), import.begin(), import.end());
    return more;
  };
  const Outcome outcome = Run(with({"--variables", sizes}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["profile"]["operations"][0]["name"], "recv/w");
  EXPECT_EQ(Json::parse(outcome.out)["profile"]["operations"][0]["sizeBytes"], "4096");
  const Outcome without = Run(import);
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_THAT(without.err, HasSubstr("header.timeline.variable_bytes"));
  EXPECT_EQ(Run(with({"--format", "layers"})).exit_code, 1);
  EXPECT_THAT(Run(with({"--format", "run-metadata", "--variables", sizes})).err,
              HasSubstr("--variables does not apply to RunMetadata"));
  EXPECT_THAT(Run(with({"--format", "run-metadata", "--steps", "3"})).err,
              HasSubstr("--steps or --seed does not apply to RunMetadata"));
  const Outcome varied = Run(with({"--variables", sizes, "--variation", "0.1", "--steps", "3"}));
  ASSERT_EQ(varied.exit_code, 0) << varied.err;
  EXPECT_EQ(Json::parse(varied.out)["profile"]["steps"].size(), 3u);
  EXPECT_EQ(
      Json::parse(Run(with({"--variables", sizes, "--variation", "0"})).out)["profile"]["steps"]
          .size(),
      1u);
}

TEST_F(LocalProgramTest, ARefusedProfileNamesEveryFaultAndEndsWithOne) {
  v1::Profile bad = TinyProfile();
  bad.set_batch_size(0);
  bad.mutable_operations(2)->clear_size_bytes();
  const std::string file = directory_.Write("bad.json", ToJson(bad));
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--local", "profile", "check", file}, {"--local", "predict", file}}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("error: INVALID_ARGUMENT: PROFILE_INVALID: "));
    EXPECT_THAT(outcome.err, HasSubstr("batch_size: "));
    EXPECT_THAT(outcome.err, HasSubstr("operations[2].size_bytes: "));
  }
}

TEST_F(LocalProgramTest, AFileThatIsNoProfileIsRefused) {
  const std::string file = directory_.Write("noise", "this is no profile");
  EXPECT_EQ(Run({"--local", "predict", file}).exit_code, 1);
  EXPECT_EQ(Run({"--local", "profile", "check", file}).exit_code, 1);
  EXPECT_THAT(
      Run({"--local", "predict", file}).err,
      StartsWith(
          "error: INVALID_ARGUMENT: PROFILE_UNREADABLE: not a profile in proto text: line 1"));
}

TEST_F(LocalProgramTest, WhatTheServiceRefusesEndsWithOne) {
  const Outcome outcome =
      Run({"--local", "predict", tiny_, "--workers", "5000", "--replications", "0"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("  worker_counts[0]: "));
  EXPECT_THAT(outcome.err, HasSubstr("  options.replications: "));
}

TEST_F(LocalProgramTest, ATimeoutEndsIt) {
  const Outcome outcome = Run(
      {"--local", "predict", tiny_, "--workers", "64", "--steps", "10000000", "--timeout", "20ms"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, StartsWith("error: DEADLINE_EXCEEDED: "));
}

TEST_F(LocalProgramTest, WrongUsageEndsWithTwoAndSaysWhy) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{}, "subcommand"},
      {{"fly"}, "subcommand"},
      {{"profile"}, "subcommand"},
      {{"predict"}, "PROFILE is required"},
      {{"--local", "predict", "/nowhere.json"}, "there is no file \"/nowhere.json\""},
      {{"predict", "/nowhere.json"}, "neither a file nor the name of a stored profile"},
      {{"predict", "inception_v3"}, "names have - for _: inception-v3"},
      {{"--local", "predict", tiny_, "--workers", "0"}, "\"0\" is no number of workers"},
      {{"--local", "predict", tiny_, "--bandwidth", "10G"}, "\"10G\" is not a rate"},
      {{"--local", "predict", tiny_, "--frobnicate"}, "--frobnicate"},
      {{"--local", "--server", "x:1", "predict", tiny_}, "--local"},
      {{"--local", "--output", "yaml", "predict", tiny_}, "\"yaml\" is none of table, json"},
      {{"--local", "order", tiny_, "--method", "magic"}, "\"magic\" is none of"},
      {{"--local", "recommend", tiny_, "--objective", "joy"}, "\"joy\" is none of"},
      {{"--local", "recommend", tiny_, "--rescale-time", "5s"}, "--current-workers"},
      {{"--local", "profile", "list"}, "--local does not have"},
      {{"--local", "profile", "upload", tiny_}, "--local does not have"},
      {{"--local", "profile", "delete", "tiny"}, "--local does not have"},
      {{"--local", "profile", "zoo", "alexnet"}, "--bandwidth is required"},
      {{"--local", "profile", "zoo", "alexnet", "--bandwidth", "1Gbit/s", "--save", "/nowhere/x"},
       "cannot write /nowhere/x"},
      {{"profile", "get", "No/Such"}, "cannot be the name of a stored profile"},
      {{"--local", "profile", "check", directory_.Path(".")}, "there is no file"},
  };
  for (const auto& [arguments, why] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << testing::PrintToString(arguments) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("error: ")) << testing::PrintToString(arguments);
    EXPECT_THAT(outcome.err, HasSubstr(why)) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(LocalProgramTest, HelpAndVersionAreAnswers) {
  const Outcome help = Run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* part : {"predict", "recommend", "order", "report", "trace", "profile",
                           "--server", "--local", "--output", "--timeout", "Exit status"}) {
    EXPECT_THAT(help.out, HasSubstr(part));
  }
  EXPECT_THAT(
      Run({"profile", "--help"}).out,
      testing::AllOf(HasSubstr("import"), HasSubstr("upload"), HasSubstr("get"), HasSubstr("list"),
                     HasSubstr("delete"), HasSubstr("check"), HasSubstr("zoo")));
  const Outcome version = Run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("stepcast [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_F(LocalProgramTest, TheExamplesOfTheHelpWork) {
  const std::string resnet = directory_.Path("resnet50.json");
  EXPECT_EQ(
      Run({"--local", "profile", "zoo", "resnet50", "--bandwidth", "1Gbit/s", "--save", resnet})
          .exit_code,
      0);
  EXPECT_EQ(Run({"--local", "predict", resnet, "--workers", "1-16", "--steps", "20"}).exit_code, 0);
  EXPECT_EQ(Run({"order", "--local", resnet, "--workers", "1", "--method", "tac", "--output",
                 "json", "--steps", "20"})
                .exit_code,
            0);
  EXPECT_EQ(
      Run({"trace", "--local", resnet, "--workers", "4", "--out", directory_.Path("trace.json")})
          .exit_code,
      0);
}

TEST_F(LocalProgramTest, ComparesModels) {
  const Json json = Json::parse(
      Run({"compare", tiny_, "--local", "--workers", "1,2", "--steps", "100", "--output", "json"})
          .out);
  ASSERT_EQ(json["comparisons"].size(), 2);
  EXPECT_EQ(json["comparisons"][1]["workers"], 2);
  EXPECT_EQ(json["comparisons"][1]["models"][0]["model"], "QUEUEING");
  const Outcome table = Run({"compare", tiny_, "--local", "--steps", "100"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("Cynthia"));
}

TEST_F(LocalProgramTest, AllocatesWorkersToTheJobsOfAFile) {
  const Json jobs{
      {"jobs",
       {{{"id", "a"}, {"profile", tiny_}}, {{"id", "b"}, {"profile", tiny_}, {"weight", -1}}}},
      {"capacity", {{"workers", 9}}}};
  const std::string file = directory_.Write("jobs.json", jobs.dump());
  const Json json = Json::parse(
      Run({"allocate", file, "--local", "--workers", "3", "--steps", "100", "--output", "json"})
          .out);
  EXPECT_EQ(json["allocations"][0]["id"], "a");
  EXPECT_LE(json["allocations"][0]["workers"], 3);
  EXPECT_GE(json["allocations"][0]["workers"], 1);
  EXPECT_EQ(json["allocations"][1]["error"]["details"][0]["reason"], "JOB_INVALID");
  EXPECT_THAT(Run({"allocate", file, "--local", "--steps", "100"}).out,
              HasSubstr("error (b): weight: -1"));
}

TEST_F(LocalProgramTest, AFileThatHoldsNoJobsIsRefused) {
  const Outcome outcome =
      Run({"allocate", directory_.Write("jobs.json", "{\"jobs\": 3}"), "--local"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("REQUEST_UNREADABLE"));
}

TEST_F(LocalProgramTest, ACheckInJsonIsTheProfileAndWhatItsRecordingSays) {
  const Json json =
      Json::parse(Run({"--local", "profile", "check", tiny_, "--output", "json"}).out);
  EXPECT_FALSE(json["digest"].empty());
  EXPECT_GT(json["recording"]["replay"]["recordedStepSeconds"], 0);
  ASSERT_EQ(json["recording"]["links"].size(), 2);
  EXPECT_EQ(json["recording"]["links"][0]["direction"], "DOWNLINK");
}

TEST_F(LocalProgramTest, FitsAParsingOverheadToAFileOfMeasurements) {
  const std::string file = directory_.Write(
      "parsing.csv", "# a benchmark\nsize_bytes,seconds\n1000,3e-6\n2000,5e-6\n\n3000,7e-6\n");
  const Outcome fitted = Run({"--local", "profile", "fit", file});
  EXPECT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_THAT(fitted.out, StartsWith("parsing: 1 us a tensor (1 to 1) and 2000 ns a kB"));
  const Json json = Json::parse(
      Run({"--local", "profile", "fit", file, "--output", "json", "--level", "0.9"}).out);
  EXPECT_NEAR(json["secondsPerByte"].get<double>(), 2e-9, 1e-18);
  EXPECT_EQ(json["secondsInterval"]["level"], 0.9);
}

TEST_F(LocalProgramTest, FitsALinkToABenchmarkOfCollectives) {
  const std::string file = directory_.Write("benchmark.csv", kBenchmark);
  const Outcome fitted = Run({"--local", "profile", "fit-collectives", file});
  EXPECT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_THAT(fitted.out, HasSubstr("bandwidth             1000 MB/s  1000 MB/s .. 1000 MB/s"));
  EXPECT_THAT(fitted.out,
              HasSubstr("use it with --algorithm ring --bandwidth 1000000000 --latency 10000ns\n"));
  const Json json = Json::parse(Run({"--local", "profile", "fit-collectives", file, "--algorithm",
                                     "ring", "--level", "0.9", "--output", "json"})
                                    .out);
  EXPECT_NEAR(json["latencySeconds"].get<double>(), 10e-6, 1e-12);
  EXPECT_EQ(json["latencyInterval"]["level"], 0.9);
  EXPECT_EQ(json["byWorkers"].size(), 2);
  EXPECT_EQ(json["scenario"]["allReduce"]["algorithm"], "RING");
}

TEST_F(LocalProgramTest, FitsALinkToSeveralFilesWithoutTheirSmallest) {
  const auto printed = [&](int workers) {
    std::string text;
    for (int rank = 0; rank < workers; ++rank)
      text += "#  Rank  " + std::to_string(rank) + " Group  0 Pid  9 on  node device  0\n";
    text +=
        "#       size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw "
        "#wrong\n";
    for (const int size : {1000, 1'000'000, 2'000'000}) {
      const double micros = 2 * (workers - 1) * (10 + size / (1e3 * workers));
      const std::string half =
          " " + std::to_string(micros) + " " + std::to_string(size / micros / 1e3) + " " +
          std::to_string(2 * (workers - 1) * size / micros / 1e3 / workers) + " 0";
      text.append(std::to_string(size)).append(" 250 float sum -1");
      text.append(half).append(half).append("\n");
    }
    return text;
  };
  const std::vector<std::string> files = {directory_.Write("two.txt", printed(2)),
                                          directory_.Write("four.txt", printed(4))};
  const auto fit = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {
        "--local", "profile", "fit-collectives", files[0], files[1], "--output", "json"};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out);
  };
  const Json all = fit({});
  EXPECT_NEAR(all["bandwidthBytesPerSecond"].get<double>(), 1e9, 1e6);
  EXPECT_EQ(all["byWorkers"][1]["workers"], 4);
  EXPECT_EQ(all["byWorkers"][1]["measurements"], 3);
  EXPECT_EQ(fit({"--smallest", "500kB"})["byWorkers"][1]["measurements"], 2);
  EXPECT_EQ(fit({"--kind", "all-reduce", "--workers-per-node",
                 "4"})["scenario"]["allReduce"]["workersPerNode"],
            4);
}

TEST_F(LocalProgramTest, SaysWhatIsWrongWithATableOfContention) {
  const auto says = [&](const std::string& text, const std::string& wrong) {
    const Outcome outcome =
        Run({"--local", "profile", "fit-contention", directory_.Write("bad.csv", text)});
    EXPECT_EQ(outcome.exit_code, 1) << text;
    EXPECT_THAT(outcome.err, HasSubstr(wrong)) << text;
  };
  const std::string columns = "kind,threads,size_bytes,seconds\n";
  says("", "no line names the columns");
  says("kind,threads\n", "line 1: must name the columns");
  says(columns + "alone,1,2\n", "line 2: has 3 of 4 columns");
  says(columns + "beside,1,2,3\n", "\"beside\" is none of alone, overlapped, computation");
  says(columns + "alone,x,2,3\n", "\"x\" is no number");
  says(columns + "alone,1,many,3\n", "\"many\" is no number of bytes");
  says(columns + "alone,1,2,-3\n", "\"-3\" is no number above 0");
  says(columns + "computation,128,,3\n", "no line is of computation with 0 threads");
  says(columns + "computation,0,,3\n", "transfers: of those alone there are 0");
  says("{\"transfers\": 5}", "bad.csv: ");
  EXPECT_EQ(Run({"--local", "profile", "fit-contention", directory_.Path("none.csv")}).exit_code,
            2);
}

TEST_F(LocalProgramTest, SaysWhatIsWrongWithABenchmark) {
  const std::string good = directory_.Write("benchmark.csv", kBenchmark);
  const Outcome broken = Run({"--local", "profile", "fit-collectives", good,
                              directory_.Write("a.csv",
                                               "kind,workers,size_bytes,seconds\n"
                                               "ALL_REDUCE,2,five,1e-3\n")});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.err, HasSubstr("a.csv: line 2: size_bytes \"five\" is no number of bytes"));
  const Outcome few = Run({"--local", "profile", "fit-collectives", good, "--smallest", "1GiB"});
  EXPECT_EQ(few.exit_code, 1);
  EXPECT_THAT(few.err, HasSubstr("measurements: 0 are too few"));
  EXPECT_EQ(Run({"--local", "profile", "fit-collectives", directory_.Path("none.csv")}).exit_code,
            2);
  EXPECT_EQ(Run({"--local", "profile", "fit-collectives", good, "--algorithm", "tree"}).exit_code,
            2);
}

TEST_F(LocalProgramTest, SaysWhatIsWrongWithMeasurements) {
  const Outcome broken =
      Run({"--local", "profile", "fit", directory_.Write("a.csv", "1000,3e-6\n2000;five\n")});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.err, HasSubstr("line 2 is not \"size_bytes,seconds\": \"2000;five\""));
  const Outcome few = Run({"--local", "profile", "fit", directory_.Write("b.csv", "1000,3e-6\n")});
  EXPECT_EQ(few.exit_code, 1);
  EXPECT_THAT(few.err, HasSubstr("measurements"));
  EXPECT_EQ(Run({"--local", "profile", "fit", directory_.Path("none.csv")}).exit_code, 2);
}

}  // namespace
}  // namespace stepcast::client::local_program_test
