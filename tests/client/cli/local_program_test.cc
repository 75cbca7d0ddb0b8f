// The program, on files, without a server.
#include "tests/client/support/local_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace stepcast::client::local_program_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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
      {"diagnose", tiny_, "--steps", "50"},
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
                               "600B",        "--order",
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
              HasSubstr(": --steps: 10 has no effect"));
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

TEST_F(LocalProgramTest, NoWorkersAreRefusedWhereARequestWouldTakeThemForNoneGiven) {
  for (const std::string command : {"diagnose", "optimize", "order", "trace"}) {
    const Outcome outcome = Run({command, "--local", tiny_, "--workers", "0"});
    EXPECT_EQ(outcome.exit_code, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr("--workers: 0 is below 1")) << command;
  }
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

TEST_F(LocalProgramTest, WhatIsMissingIsNamedByItsFlag) {
  const std::string saved = directory_.Path("resnet18.json");
  ASSERT_EQ(Run({"--local", "profile", "zoo", "resnet18", "--all-reduce", "--bandwidth", "1Gbit/s",
                 "--save", saved})
                .exit_code,
            0);
  for (const auto& [flag, missing] : {std::pair("--workers-per-node", "--intra-bandwidth"),
                                      std::pair("--workers-per-rack", "--rack-bandwidth")}) {
    const Outcome outcome = Run({"--local", "predict", saved, "--workers", "8", flag, "4"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr(std::string(missing) + ": not given, and "));
  }
}

TEST_F(LocalProgramTest, AFileNamedByADashIsStandardOutput) {
  const std::vector<std::string> order{"order", "--local",           tiny_, "--method",
                                       "tac",   "--save-priorities", "-"};
  const Outcome written = Run(order);
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out, "recv\t0\n");
  EXPECT_THAT(written.err, HasSubstr("makespan"));
  const Outcome imported =
      Run({"--local", "profile", "zoo", "alexnet", "--bandwidth", "1Gbit/s", "--save", "-"});
  EXPECT_EQ(Json::parse(imported.out)["model"], "alexnet");
  std::vector<std::string> twice = order;
  twice.insert(twice.end(), {"--output", "json"});
  const Outcome refused = Run(twice);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("would both be standard output"));
  EXPECT_EQ(refused.out, "");
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
  std::vector<std::string> flags{
      "recommend", "--local",        tiny_,      "--max-workers", "4",    "--steps",
      "100",       "--objective",    "min-cost", "--examples",    "1000", "--worker-hour",
      "2.5",       "--server-hour",  "1",        "--currency",    "EUR",  "--current-workers",
      "2",         "--rescale-time", "90s",      "--deadline",    "30d",  "--output",
      "json"};
  const Outcome outcome = Run(flags);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["currencyCode"], "EUR");
  EXPECT_GT(json["cost"], 0);
  EXPECT_EQ(json["frontierOutcomes"].size(), json["frontier"].size());
  EXPECT_THAT(std::string(json["reason"]), HasSubstr("the least cost"));
  flags.resize(flags.size() - 2);
  const Outcome table = Run(flags);
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
                                       "1-16",    "--steps", "100",     "--plot"};
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
      Run({"recommend", "--local", "--max-workers", "16", "--steps", "100", "--plot", tiny_},
          {{"LC_ALL", "C"}});
  EXPECT_EQ(recommended.exit_code, 0) << recommended.err;
  EXPECT_THAT(recommended.out, testing::AllOf(HasSubstr("\n->"), HasSubstr("# recommended: ")));
}

TEST_F(LocalProgramTest, APlotInAFileIsSvgBesideAnyOutput) {
  const std::string file = directory_.Path("curve.svg");
  const Outcome predicted = Run({"predict", tiny_, "--local", "--workers", "1-16", "--steps", "100",
                                 "--plot", file, "--output", "json"});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_EQ(Json::parse(predicted.out)["predictions"].size(), 16);
  EXPECT_THAT(
      directory_.Read("curve.svg"),
      testing::AllOf(StartsWith("<?xml"), HasSubstr("<title>tiny</title>"), HasSubstr("knee: ")));
  const Outcome recommended = Run(
      {"recommend", tiny_, "--local", "--max-workers", "16", "--steps", "100", "--plot=" + file});
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
                                       "window", "--window", "600B"};
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
  size_t segments = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++(event["cat"] == "path" ? segments : slices);
  }
  EXPECT_EQ(slices, 2 * 3 * (1 + 4 + 2)) << "each transfer of 1000 bytes takes two services";
  EXPECT_GT(segments, 3U) << "the critical path of three steps";
  std::vector<std::string> without = flags;
  without.emplace_back("--no-critical-path");
  EXPECT_THAT(Run(without).out, Not(HasSubstr("critical path")));
}

TEST_F(LocalProgramTest, ATraceOfARecordingTakesNoWorkers) {
  EXPECT_EQ(Run({"trace", "--local", tiny_, "--recording", "--workers", "2"}).exit_code, 2);
  const Outcome of_one = Run({"trace", "--local", tiny_, "--recording"});
  EXPECT_EQ(of_one.exit_code, 1);
  EXPECT_THAT(of_one.err,
              HasSubstr("recording: the profile holds no recording of several workers"));
}

TEST_F(LocalProgramTest, ATraceThatIsRefusedLeavesTheFileAlone) {
  const std::string file = directory_.Write("kept", "what was there");
  const Outcome refused = Run({"trace", "--local", tiny_, "--steps", "0", "--out", file});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr(": --steps: 0 is not from 1"));
  EXPECT_EQ(directory_.Read("kept"), "what was there");
  const Outcome full = Run({"trace", "--local", tiny_, "--out", "/dev/full"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write /dev/full"));
  EXPECT_THAT(full.err, HasSubstr("/dev/full holds only a part of the trace"));
  EXPECT_EQ(Run({"trace", "--local", tiny_, "--replications", "2"}).exit_code, 2);
}

TEST_F(LocalProgramTest, WhatTheServiceRefusesEndsWithOne) {
  const Outcome outcome =
      Run({"--local", "predict", tiny_, "--workers", "5000", "--replications", "0"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("  --workers, number 1: "));
  EXPECT_THAT(outcome.err, HasSubstr("  --replications: "));
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
      {{"fly"}, "unknown command \"fly\""},
      {{"predcit", tiny_}, "unknown command \"predcit\"; did you mean predict?"},
      {{"profile", "imprt"}, "unknown command \"imprt\"; did you mean import?"},
      {{"predict", tiny_, "--summed=false"},
       "--summed takes no value: leave it out, or \"=false\"\n"},
      {{"predict", tiny_, "--local=0"}, "--local takes no value"},
      {{"predict", tiny_, "--servers", "2", "--latency", "20us"},
       "--latency: is of jobs with all-reduces, and --servers of those with parameter servers"},
      {{"layout", tiny_, "--wokers", "3"}, "unknown flag --wokers"},
      {{"layout", tiny_}, "--devices is required"},
      {{"layout", tiny_, "--memory", "80"}, "--memory: \"80\" has no unit"},
      {{"layout", tiny_, "--devices", "eight"}, "--devices"},
      {{"layout", tiny_, "--schedules", "foo"}, "--schedules: \"foo\" is none of"},
      {{"layout", tiny_, "--objective", "x"}, "--objective: \"x\" is none of"},
      {{"layout", tiny_, "--micro-batches", "2", "--examples", "64"},
       "--micro-batches excludes --examples"},
      {{"layout", "fit", "runs.csv", "--al"}, "unknown flag --al; did you mean --all?"},
      {{"predict", tiny_, "--latnecy", "20us"}, "unknown flag --latnecy; did you mean --latency?"},
      {{"job", "start", "predict", tiny_, "--worker=2"}, "did you mean --workers?"},
      {{"profile"}, "subcommand"},
      {{"predict"}, "PROFILE is required"},
      {{"--local", "predict", "/nowhere.json"}, "there is no file \"/nowhere.json\""},
      {{"predict", "/nowhere.json"}, "neither a file nor the name of a stored profile"},
      {{"predict", "inception_v3"}, "names have - for _: inception-v3"},
      {{"--local", "predict", tiny_, "--workers", "0"}, "\"0\" is not a number of workers"},
      {{"--local", "predict", tiny_, "--bandwidth", "10G"},
       "\"10G\" has no unit: write 10Gbit/s or 10GB/s"},
      {{"--local", "predict", tiny_, "--frobnicate"}, "unknown flag --frobnicate\n"},
      {{"--local", "--server", "x:1", "predict", tiny_}, "--local"},
      {{"--local", "--output", "yaml", "predict", tiny_}, "\"yaml\" is none of table, json"},
      {{"--local", "order", tiny_, "--method", "magic"}, "\"magic\" is none of"},
      {{"--local", "recommend", tiny_, "--objective", "joy"}, "\"joy\" is none of"},
      {{"--local", "recommend", tiny_, "--rescale-time", "5s"}, "--current-workers"},
      {{"--local", "profile", "list"}, "--local does not have"},
      {{"--local", "profile", "upload", tiny_}, "--local does not have"},
      {{"--local", "profile", "delete", "tiny"}, "--local does not have"},
      {{"--local", "profile", "zoo", "alexnet"}, "--bandwidth is required"},
      {{"--local", "profile", "zoo", "alexnet", "--bandwidth", "1Gbit/s", "--save", "-", "--seed",
        "3"},
       "--seed is of steps that vary: --variation or --common-variation says how much"},
      {{"--local", "profile", "zoo", "alexnet", "--bandwidth", "1Gbit/s", "--save", "/nowhere/x"},
       "cannot write /nowhere/x"},
      {{"profile", "get", "No/Such"}, "cannot be the name of a stored profile"},
      {{"--local", "profile", "check", directory_.Path(".")}, "it is a directory"},
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
  EXPECT_THAT(version.out,
              testing::MatchesRegex("stepcast [0-9]+\\.[0-9]+\\.[0-9]+([~+]git[0-9.a-z]+)?\n"));
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

TEST_F(LocalProgramTest, DiagnosesAJob) {
  const std::vector<std::string> command{"diagnose",       tiny_,     "--local",
                                         "--worker-group", "1",       "--worker-group",
                                         "1:0.5",          "--steps", "100"};
  std::vector<std::string> as_json = command;
  as_json.insert(as_json.end(), {"--output", "json"});
  const Outcome outcome = Run(as_json);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["workers"].size(), 2);
  EXPECT_EQ(json["whatIfs"].size() + json["leftOut"].size(), 11);
  EXPECT_EQ(json["prediction"]["scenario"]["workers"], 2);
  const Outcome table = Run(command);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, StartsWith("A step takes "));
  EXPECT_THAT(table.out, HasSubstr("\nno stragglers "));
  EXPECT_EQ(Run({"diagnose", tiny_, "--local", "--workers", "0x"}).exit_code, 2);
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

}  // namespace
}  // namespace stepcast::client::local_program_test
