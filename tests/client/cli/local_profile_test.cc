// The program on profiles in files, without a server: importing, checking, fitting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/client/support/local_program.h"

namespace stepcast::client::local_profile_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

using LocalProfileTest = LocalProgramTest;

// Recordings of the testbed: one as DistributedDataParallel makes buckets by default, one with a
// cap of 5 MiB.
TEST_F(LocalProfileTest, ChecksTracesOfPyTorch) {
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

TEST_F(LocalProfileTest, MakesChecksAndShowsProfiles) {
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

TEST_F(LocalProfileTest, ImportsMeasuredLayers) {
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

TEST_F(LocalProfileTest, ImportsATraceOfPyTorchByItsFirstBytes) {
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
  EXPECT_THAT(Run(with({"--step-seconds", "0"})).err,
              HasSubstr(": --step-seconds: 0 is not above 0"));
}

TEST_F(LocalProfileTest, ImportsTracesOfChakraAndTimelinesOfHorovod) {
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

TEST_F(LocalProfileTest, ImportsATimelineWithTheSizesOfItsVariables) {
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
  EXPECT_THAT(without.err, HasSubstr("--variables: required, or a graph"));
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

TEST_F(LocalProfileTest, ARefusedProfileNamesEveryFaultAndEndsWithOne) {
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

TEST_F(LocalProfileTest, AFileThatIsNoProfileIsRefused) {
  const std::string file = directory_.Write("noise", "this is no profile");
  EXPECT_EQ(Run({"--local", "predict", file}).exit_code, 1);
  EXPECT_EQ(Run({"--local", "profile", "check", file}).exit_code, 1);
  EXPECT_THAT(Run({"--local", "predict", file}).err,
              StartsWith(absl::StrCat("error: INVALID_ARGUMENT: PROFILE_UNREADABLE: cannot read ",
                                      file, ": not a profile in proto text: line 1")));
}

TEST_F(LocalProfileTest, ACheckInJsonIsTheProfileAndWhatItsRecordingSays) {
  const Json json =
      Json::parse(Run({"--local", "profile", "check", tiny_, "--output", "json"}).out);
  EXPECT_FALSE(json["digest"].empty());
  EXPECT_GT(json["recording"]["replay"]["recordedStepSeconds"], 0);
  ASSERT_EQ(json["recording"]["links"].size(), 2);
  EXPECT_EQ(json["recording"]["links"][0]["direction"], "DOWNLINK");
}

TEST_F(LocalProfileTest, FitsAParsingOverheadToAFileOfMeasurements) {
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

TEST_F(LocalProfileTest, FitsALinkToABenchmarkOfCollectives) {
  const std::string file = directory_.Write("benchmark.csv", kBenchmark);
  const Outcome fitted = Run({"--local", "profile", "fit-collectives", file});
  EXPECT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_THAT(fitted.out, HasSubstr("bandwidth             1000 MB/s  1000 MB/s .. 1000 MB/s"));
  EXPECT_THAT(
      fitted.out,
      HasSubstr("use it with --algorithm ring --bandwidth 1000000000B/s --latency 10000ns\n"));
  const Json json = Json::parse(Run({"--local", "profile", "fit-collectives", file, "--algorithm",
                                     "ring", "--level", "0.9", "--output", "json"})
                                    .out);
  EXPECT_NEAR(json["latencySeconds"].get<double>(), 10e-6, 1e-12);
  EXPECT_EQ(json["latencyInterval"]["level"], 0.9);
  EXPECT_EQ(json["byWorkers"].size(), 2);
  EXPECT_EQ(json["scenario"]["allReduce"]["algorithm"], "RING");
}

TEST_F(LocalProfileTest, FitsALinkToSeveralFilesWithoutTheirSmallest) {
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

TEST_F(LocalProfileTest, SaysWhatIsWrongWithATableOfContention) {
  const auto says = [&](const std::string& text, const std::string& wrong) {
    const Outcome outcome =
        Run({"--local", "profile", "fit-contention", directory_.Write("bad.csv", text)});
    EXPECT_EQ(outcome.exit_code, 1) << text;
    EXPECT_THAT(outcome.err, HasSubstr(wrong)) << text;
  };
  const std::string columns = "kind,threads,size_bytes,seconds\n";
  says("", "bad.csv: the file is empty");
  says("kind,threads\n", "line 1: must name the columns");
  says(columns + "alone,1,2\n", "line 2: has 3 of 4 columns");
  says(columns + "beside,1,2,3\n", "\"beside\" is none of alone, overlapped, computation");
  says(columns + "alone,x,2,3\n", "\"x\" is not a number");
  says(columns + "alone,1,many,3\n", "\"many\" is not a number of bytes");
  says(columns + "alone,1,2,-3\n", "\"-3\" is not a number above 0");
  says(columns + "computation,128,,3\n", "no line is of computation with 0 threads");
  says(columns + "computation,0,,3\n", "transfers: of those alone there are 0");
  says("{\"transfers\": 5}", "bad.csv: ");
  EXPECT_EQ(Run({"--local", "profile", "fit-contention", directory_.Path("none.csv")}).exit_code,
            2);
}

TEST_F(LocalProfileTest, SaysWhatIsWrongWithABenchmark) {
  const std::string good = directory_.Write("benchmark.csv", kBenchmark);
  const Outcome broken = Run({"--local", "profile", "fit-collectives", good,
                              directory_.Write("a.csv",
                                               "kind,workers,size_bytes,seconds\n"
                                               "ALL_REDUCE,2,five,1e-3\n")});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.err, HasSubstr("a.csv: line 2: size_bytes \"five\" is not a number of bytes"));
  const Outcome few = Run({"--local", "profile", "fit-collectives", good, "--smallest", "1GiB"});
  EXPECT_EQ(few.exit_code, 1);
  EXPECT_THAT(few.err, HasSubstr("measurements: 0 are too few"));
  EXPECT_EQ(Run({"--local", "profile", "fit-collectives", directory_.Path("none.csv")}).exit_code,
            2);
  EXPECT_EQ(Run({"--local", "profile", "fit-collectives", good, "--algorithm", "tree"}).exit_code,
            2);
}

TEST_F(LocalProfileTest, SaysWhatIsWrongWithMeasurements) {
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
}  // namespace stepcast::client::local_profile_test
