#include "core/importing/benchmarks/collective_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "tests/core/importing/random_training.h"

namespace stepcast::collective_benchmark_test {
namespace {

using ::stepcast::testing::Told;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;

struct PrintedForm {
  int workers = 4;
  double bus_share = 1.5;  // bus over algorithm bandwidth
  const char* reduction = "sum";
  bool root = true;  // the column of 2022 and later
  const char* wrong = "0";
  std::string prefix;
};

struct PrintedRow {
  int64_t size_bytes = 0;
  double out_of_place_us = 0;
  double in_place_us = 0;
};

std::string Half(int64_t size, double us, const PrintedForm& form) {
  const double rate = static_cast<double>(size) / us / 1e3;
  return absl::StrFormat("  %.2f  %.2f  %.2f  %s", us, rate, rate * form.bus_share, form.wrong);
}

// As nccl-tests print it.
std::string Printed(const PrintedForm& form, const std::vector<PrintedRow>& rows) {
  std::string text = form.prefix + "# Using devices\n";
  for (int rank = 0; rank < form.workers; ++rank)
    absl::StrAppend(&text, form.prefix, "#   Rank  ", rank,
                    " Pid  9 on  node device  0 [0x00] V100\n");
  absl::StrAppend(&text, form.prefix, "#\n", form.prefix, "#   out-of-place    in-place\n",
                  form.prefix, "#       size         count      type   redop ",
                  form.root ? "   root " : "");
  for (int half = 0; half < 2; ++half)
    absl::StrAppend(&text, "    time   algbw   busbw ", form.root ? "#wrong" : " error");
  absl::StrAppend(&text, "\n", form.prefix, "#        (B)    (elements)   (us)  (GB/s)  (GB/s)\n");
  for (const PrintedRow& row : rows) {
    absl::StrAppend(&text, form.prefix, "  ", row.size_bytes, "  ", row.size_bytes / 4, "  float  ",
                    form.reduction, form.root ? "  -1" : "",
                    Half(row.size_bytes, row.out_of_place_us, form),
                    Half(row.size_bytes, row.in_place_us, form), "\n");
  }
  return text + form.prefix + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5\n";
}

const std::vector<PrintedRow> kRows = {{1 << 20, 120, 100}, {1 << 24, 1100, 1000}};

TEST(CollectiveBenchmarkTest, OfNcclTestsTheTimesInPlaceAreTaken) {
  for (const bool root : {false, true}) {
    for (const char* wrong : {"0", "N/A", "1e-07"}) {
      const auto measured =
          ReadCollectiveBenchmark(Printed({.root = root, .wrong = wrong}, kRows), {});
      ASSERT_TRUE(measured.ok()) << measured.status();
      EXPECT_THAT(
          *measured,
          ElementsAre(MeasuredCollective{.workers = 4, .size_bytes = 1 << 20, .seconds = 100e-6},
                      MeasuredCollective{.workers = 4, .size_bytes = 1 << 24, .seconds = 1000e-6}));
    }
  }
}

TEST(CollectiveBenchmarkTest, TheKindFollowsFromTheRatesAndTheReduction) {
  for (const int workers : {2, 3, 4, 8, 16}) {
    const double share = (workers - 1) / static_cast<double>(workers);
    const std::tuple<const char*, double, Collective> kinds[] = {
        {"sum", 2 * share, Collective::kAllReduce},
        {"sum", share, Collective::kReduceScatter},
        {"none", share, Collective::kAllGather},
        {"none", 1.0, Collective::kBroadcast}};
    for (const auto& [reduction, bus_share, kind] : kinds) {
      const auto measured = ReadCollectiveBenchmark(
          Printed({.workers = workers, .bus_share = bus_share, .reduction = reduction}, kRows), {});
      ASSERT_TRUE(measured.ok()) << measured.status();
      EXPECT_EQ(measured->front().kind, kind) << workers << " " << reduction << " " << bus_share;
      EXPECT_EQ(measured->front().workers, workers);
    }
  }
}

TEST(CollectiveBenchmarkTest, WhatLaunchersAndLibrariesPrintIsPassedOver) {
  for (const char* prefix : {"0: ", "[1,0]<stdout>:"}) {
    std::string text = Printed({.prefix = prefix}, kRows);
    text.insert(text.find(absl::StrCat(prefix, "  ", 1 << 24)),
                "node:3876:3876 [0] NCCL INFO Launch mode Parallel\n");
    const auto measured = ReadCollectiveBenchmark(text, {});
    ASSERT_TRUE(measured.ok()) << measured.status();
    EXPECT_EQ(measured->size(), 2U);
  }
}

// A header of OSU's that was cut names no test, and its table is of none.
TEST(CollectiveBenchmarkTest, AHeaderWithoutANameIsNoTest) {
  const std::string table = "# Size  Avg Latency(us)\n1024  10.5\n2048  12\n";
  for (const char* const header :
       {"# OSU Test Allreduce\n", "# OSU MPI Test v7.0\n", "# OSU Test\n"}) {
    const auto measured = ReadCollectiveBenchmark(header + table, {});
    EXPECT_EQ(measured.status().code(), absl::StatusCode::kInvalidArgument) << header;
  }
}

TEST(CollectiveBenchmarkTest, OfATableTooOnlyTheKindAskedForIsRead) {
  const std::string table =
      "kind,workers,size_bytes,seconds\nall_reduce,2,1024,1e-4\nall_gather,2,1024,2e-4\n";
  const auto gathers = ReadCollectiveBenchmark(table, {.kind = Collective::kAllGather});
  ASSERT_TRUE(gathers.ok()) << gathers.status();
  EXPECT_THAT(
      *gathers,
      ElementsAre(MeasuredCollective{
          .kind = Collective::kAllGather, .workers = 2, .size_bytes = 1024, .seconds = 2e-4}));
  const auto none = ReadCollectiveBenchmark(table, {.kind = Collective::kBroadcast});
  EXPECT_THAT(Told(none.status()), HasSubstr("kind"));
  EXPECT_THAT(Told(none.status()), HasSubstr("other collectives only"));
}

// As many as the log itself says somewhere, if not where the benchmark says it.
TEST(CollectiveBenchmarkTest, WorkersAreCountedWhereverTheLogTellsThem) {
  const auto workers_of = [](const std::string& text) {
    const auto measured = ReadCollectiveBenchmark(text, {});
    return measured.ok() ? measured->front().workers : 0;
  };
  const std::string table = "# Size  Avg Latency(us)\n1024  10.5\n2048  12\n";
  const std::string osu = "# OSU MPI Allreduce Latency Test v7.0\n" + table;
  EXPECT_EQ(workers_of(osu), 0);
  EXPECT_EQ(workers_of("$ mpirun -n 144 -N 36 --hostfile h /opt/osu_allreduce\n" + osu), 144);
  EXPECT_EQ(workers_of("/usr/bin/mpiexec --x y -np 6 osu_allreduce\n\n" + osu), 6);
  // Nodes are not processes, nor does an earlier command say anything of this one.
  EXPECT_EQ(workers_of("mpirun -np 8 other\nsrun -N 2 osu_allreduce\n" + osu), 0);
  EXPECT_EQ(workers_of("mpirun -np eight osu_allreduce\n" + osu), 0);
  // Intel's says it itself.
  EXPECT_EQ(workers_of("mpirun -np 8 IMB-MPI1\n# Benchmarking Allreduce \n# #processes = 4 \n"
                       " #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
                       " 1024  40  9.0  11.0  10.0\n"),
            4);
  // The first lines of the ranks are cut off.
  std::string ranks;
  for (int rank = 2; rank < 4; ++rank)
    absl::StrAppend(&ranks, "#  Rank  ", rank, " Group  0 Pid 9 on node device 0 [0x00] V100\n");
  const std::string rows = Printed({}, kRows);
  const std::string without = Printed({.workers = 0}, kRows);
  EXPECT_EQ(workers_of(rows), 4);
  EXPECT_EQ(workers_of(absl::StrReplaceAll(
                without, {{"# Using devices\n", absl::StrCat("# Using devices\n", ranks)}})),
            4);
  EXPECT_EQ(workers_of(without), 0);
  EXPECT_EQ(workers_of("a:1:2 [0] NCCL INFO comm 0x5 rank 0 nranks 4 cudaDev 0\n" + without), 4);
}

// A launch says something of one table, and of the test that it runs alone.
TEST(CollectiveBenchmarkTest, ALaunchIsOfItsOwnTable) {
  const std::string table =
      "# OSU MPI Allreduce Latency Test v7.0\n# Size  Avg Latency(us)\n1024  10.5\n";
  const std::string other = absl::StrReplaceAll(table, {{"10.5", "99"}});
  const std::string two = "mpirun -np 2 ./osu_allreduce\n";
  const std::string eight = "mpirun -np 8 ./osu_allreduce\n";
  for (const std::string& launches :
       {std::string("+ mpirun -np 4 -host a ./osu_allreduce : -np 4 -host b ./osu_allreduce\n"),
        eight + "mpirun -np 2 hostname\n", eight + "mpirun does not support recursive calls\n",
        eight + "+ " + eight, "mpirun -np 2 ./osu_bcast\n" + eight,
        std::string("mpirun -np 2 hostname && mpirun -np 8 osu_allreduce -n 4\n")}) {
    const auto measured = ReadCollectiveBenchmark(launches + table, {});
    ASSERT_TRUE(measured.ok()) << launches << measured.status();
    EXPECT_EQ(measured->front().workers, 8) << launches;
  }
  const auto both = ReadCollectiveBenchmark(two + table + eight + other, {});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->size(), 2U);
  EXPECT_EQ(both->back(), (MeasuredCollective{.workers = 8, .size_bytes = 1024, .seconds = 99e-6}));
  for (const std::string& log :
       {two + eight + table + other, eight + table + other, "mpirun -np 8 hostname\n" + table,
        std::string("mpirun osu_allreduce -n 8\n") + table,
        "mpirun -np 4 osu_allreduce : osu_allreduce\n" + table}) {
    EXPECT_THAT(Told(ReadCollectiveBenchmark(log, {}).status()),
                HasSubstr("say how many took part"))
        << log;
  }
  EXPECT_THAT(Told(ReadCollectiveBenchmark(two + table + eight + other, {.workers = 8}).status()),
              HasSubstr("8 given, and its tests are of 2, 8 workers"));
}

TEST(CollectiveBenchmarkTest, JobsThatAreMixedOrOfOneRankAreRefused) {
  const auto refusal = [](const std::string& text, const CollectiveBenchmarkOptions& options) {
    return Told(ReadCollectiveBenchmark(text, options).status());
  };
  const CollectiveBenchmarkOptions asked = {.kind = Collective::kAllReduce, .workers = 4};
  const std::string one = Printed({.workers = 1, .bus_share = 0}, kRows);
  const std::string rank = "#   Rank  0 Pid  9 on node device  0 [0x00] V100\n";
  for (const CollectiveBenchmarkOptions& options : {CollectiveBenchmarkOptions(), asked}) {
    EXPECT_THAT(refusal(one, options), HasSubstr("its bus bandwidth is 0, as of one worker alone"));
    for (const char* const group : {"", " Group  0"}) {
      const std::string text =
          absl::StrReplaceAll("# Using devices\n" + rank + rank + one,
                              {{"  0 Pid", absl::StrCat("  0", group, " Pid")}});
      EXPECT_THAT(refusal(text, options), HasSubstr("mixed output of 3 jobs of one rank"));
    }
  }
  const std::string four = Printed({}, kRows);
  const std::string ranks = four.substr(0, four.find("#\n"));
  EXPECT_THAT(refusal(ranks + four, {}), HasSubstr("2 jobs: give each job's log by itself"));
  // Tables one below the other are repetitions.
  EXPECT_TRUE(
      ReadCollectiveBenchmark(absl::StrReplaceAll(four + four, {{"# Using devices\n", ""}}), {})
          .ok());
}

TEST(CollectiveBenchmarkTest, SizesThatDidNotRunAreLeftOutWithANote) {
  const std::string text =
      "# Benchmarking Allreduce \n# #processes = 4 \n"
      " #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
      " 1024  40  9.0  11.0  10.0\n";
  for (const char* const row : {"2048  time-out.; Time limit is over; use \"-time X\"",
                                "2048  10 ------------ out-of-mem.; needed X= 1.0 GB; use",
                                "2048  10 ------------ int-overflow.; The production overflowed"}) {
    std::vector<std::string> notes;
    const auto measured = ReadCollectiveBenchmark(absl::StrCat(text, row, "\n"), {}, {}, &notes);
    ASSERT_TRUE(measured.ok()) << row << measured.status();
    EXPECT_EQ(measured->size(), 1U);
    EXPECT_THAT(notes,
                ElementsAre(HasSubstr("1 sizes that the benchmark did not run (2048 bytes")));
  }
}

TEST(CollectiveBenchmarkTest, OptionsSayWhatTheTextDoesNot) {
  const std::string text = Printed({.workers = 1, .bus_share = 0}, {{1024, 20, 20}});
  EXPECT_THAT(Told(ReadCollectiveBenchmark(text, {}).status()), HasSubstr("workers"));
  EXPECT_THAT(Told(ReadCollectiveBenchmark(text, {.workers = 1}).status()),
              HasSubstr("1 is below 2"));
  EXPECT_THAT(Told(ReadCollectiveBenchmark(text, {.workers = 8}).status()), HasSubstr("kind"));
  const auto measured =
      ReadCollectiveBenchmark(text, {.kind = Collective::kAllGather, .workers = 8});
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_THAT(
      *measured,
      ElementsAre(MeasuredCollective{
          .kind = Collective::kAllGather, .workers = 8, .size_bytes = 1024, .seconds = 20e-6}));
}

TEST(CollectiveBenchmarkTest, BrokenLinesAreNamed) {
  const std::string good = Printed({}, kRows);
  const std::pair<std::string, const char*> cases[] = {
      {Printed({.wrong = "3"}, kRows), "3 wrong values"},
      {absl::StrReplaceAll(good, {{"1000.00", "1.00"}}), "are the units others?"},
      {absl::StrReplaceAll(good, {{"1000.00", "x"}, {"1100.00", "-"}}), "\"-\" is not a time"},
      {good.substr(0, good.find("1000.00")), "the line is cut short"},
      {"nothing of the kind\n", "what nccl-tests, rccl-tests or the MPI benchmarks"},
      {"", "what nccl-tests, rccl-tests or the MPI benchmarks"}};
  for (const auto& [text, expected] : cases) {
    const auto measured = ReadCollectiveBenchmark(text, {});
    ASSERT_FALSE(measured.ok()) << expected;
    EXPECT_EQ(DetailsOf(measured.status()).reason, "IMPORT_INVALID");
    EXPECT_THAT(Told(measured.status()), HasSubstr(expected));
    EXPECT_THAT(DetailsOf(measured.status()).faults.front().field, HasSubstr("line "));
  }
}

// JSON of nccl-tests, of processes with so many GPUs each.
std::string NcclJson(int processes, int gpus, const std::string& edits = "") {
  std::string devices;
  for (int p = 0; p < processes; ++p)
    absl::StrAppend(&devices, p == 0 ? "" : ",", R"({"rank": )", p * gpus, R"(, "group": 0})");
  const double share = 2.0 * (processes * gpus - 1) / (processes * gpus);
  return absl::StrFormat(
      R"({"args": ["./build/all_reduce_perf", "-g", "4"], "env": ["TEST=all_gather_perf"],
          "config": {"ngpus": %d, "nthreads": 1, "devices": [%s]},
          "results": [{"size": 1048576, "type": "float", "redop": "sum",
                       "in_place": {"time": 100.0, "alg_bw": 10.48576, "bus_bw": %f}}]%s})",
      gpus, devices, 10.48576 * share, edits);
}

TEST(CollectiveBenchmarkTest, JsonCountsTheGpusOfEachProcess) {
  const std::string all_listed = absl::StrReplaceAll(
      NcclJson(2, 4), {{R"({"rank": 4, "group": 0})",
                        R"({"rank": 1},{"rank": 2},{"rank": 3},{"rank": 4},{"rank": 5},
                           {"rank": 6},{"rank": 7})"},
                       {R"("group": 0)", R"("pid": 1)"}});
  const std::string rccl =
      R"({"name": "AllReduce", "ranks": 2, "gpusPerRank": 4, "size": 1048576, "redop": "sum",
          "time": 100, "algBw": 10.48576, "busBw": 18.35008})";
  for (const std::string& text :
       {NcclJson(8, 1), NcclJson(2, 4), NcclJson(1, 8), all_listed, rccl}) {
    const auto measured = ReadCollectiveBenchmark(text, {});
    ASSERT_TRUE(measured.ok()) << measured.status() << text;
    EXPECT_THAT(*measured, ElementsAre(MeasuredCollective{
                               .workers = 8, .size_bytes = 1 << 20, .seconds = 100e-6}));
  }
}

// A log's own counts and rates, against what is said of it.
TEST(CollectiveBenchmarkTest, WhatTheRatesContradictIsRefused) {
  const std::string eight = Printed({.workers = 8, .bus_share = 1.75}, kRows);
  const auto refusal = [](const std::string& text, const CollectiveBenchmarkOptions& options) {
    return Told(ReadCollectiveBenchmark(text, options).status());
  };
  EXPECT_THAT(refusal("./build/all_reduce_perf -b 8\n" + eight, {.workers = 2}),
              HasSubstr("bandwidth is 1.75"));
  EXPECT_THAT(refusal("./build/all_gather_perf -b 8\n" + eight, {}),
              HasSubstr("of an all-gather among 8 workers it is 0.875"));
  EXPECT_THAT(refusal(absl::StrReplaceAll(NcclJson(2, 4), {{"\"ngpus\": 4", "\"ngpus\": 2"}}), {}),
              HasSubstr("of an all-reduce among 4 workers it is 1.5"));
  EXPECT_THAT(refusal("# Benchmarking Allreduce \n# #processes = 4 \n"
                      " #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
                      " 1024  40  9.0  11.0  10.0\n",
                      {.workers = 8}),
              HasSubstr("8 workers are given, and the benchmark says 4"));
  // Lines of ranks that are cut off.
  const auto measured =
      ReadCollectiveBenchmark(Printed({.workers = 4, .bus_share = 1.75}, kRows), {.workers = 8});
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->front().workers, 8);
}

TEST(CollectiveBenchmarkTest, ATestIsNamedByWhatRunsIt) {
  const std::string rows = Printed({}, kRows);
  for (const char* const line :
       {"Linking  ../build/all_gather_perf\nmake[1]: Leaving directory /src\n",
        "nvcc -O3 -o ../build/all_gather_perf -lnccl\n", "cp build/all_gather_perf /usr/bin\n",
        "-rwxr-xr-x 1 root root 9 all_gather_perf\n"}) {
    const auto measured = ReadCollectiveBenchmark(line + rows, {});
    ASSERT_TRUE(measured.ok()) << line << measured.status();
    EXPECT_EQ(measured->front().kind, Collective::kAllReduce) << line;
  }
  for (const char* const line :
       {"./build/alltoall_perf\n", "$ build/alltoall_perf -b 8\n", "root@n:/# alltoall_perf -g 8\n",
        "NCCL_DEBUG=INFO ./alltoall_perf\n", "/usr/bin/mpirun -np 4 --bind-to none alltoall_perf\n",
        "timeout 60 ./alltoall_perf -b 8\n", "# Collective test starting: alltoall_perf\n"}) {
    EXPECT_THAT(Told(ReadCollectiveBenchmark(line + rows, {}).status()),
                HasSubstr("\"alltoall_perf\" is not"))
        << line;
  }
}

TEST(CollectiveBenchmarkTest, ABenchmarkThatFailedIsRefused) {
  const std::string osu =
      "mpirun -np 4 osu_allreduce -c\n# OSU MPI Allreduce Latency Test v7.1\n"
      "# Size       Avg Latency(us)        Validation\n1024  10.5  Pass\n2048  12  Pass\n";
  const std::string intel =
      "# Benchmarking Allreduce \n# #processes = 4 \n"
      " #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]  defects\n"
      " 1024  40  9.0  11.0  10.0  0.00\n";
  const std::string json = NcclJson(2, 4, R"(, "out_of_bounds": {"count": 0, "okay": "true"})");
  const std::pair<std::string, std::map<std::string, std::string>> cases[] = {
      {Printed({.wrong = "N/A"}, kRows), {{" : 0 OK", " : 12 FAILED"}}},
      {Printed({.root = false, .wrong = "1e+00"}, kRows), {{" : 0 OK", " : 12 FAILED"}}},
      {osu, {{"12  Pass", "12  Fail"}}},
      {intel, {{"0.00", "3.00"}}},
      {json, {{"\"count\": 0", "\"count\": 12"}}},
      {Printed({}, kRows), {{"# Out of", "n: Test NCCL failure common.cu:9\n# Out of"}}},
      {Printed({}, kRows), {{"# Out of", "n:100 Test timeout (60s) common.cu:600\n# Out of"}}},
      {osu, {{"2048  12  Pass\n", "MPI_ABORT was invoked on rank 3\n"}}}};
  for (const auto& [text, edits] : cases) {
    const auto measured = ReadCollectiveBenchmark(text, {});
    EXPECT_TRUE(measured.ok()) << measured.status();
    EXPECT_THAT(Told(ReadCollectiveBenchmark(absl::StrReplaceAll(text, edits), {}).status()),
                HasSubstr("the benchmark failed"))
        << text;
  }
}

TEST(CollectiveBenchmarkTest, TablesOfSeveralTypesAreToldApart) {
  const std::string table = "# Size       Avg Latency(us)\n1024  10.5\n2048  12\n";
  const auto osu = [&table](const std::string& test) {
    return absl::StrCat("mpirun -np 4 osu_", test == "Broadcast" ? "bcast" : "allreduce",
                        " -T mpi_char,mpi_float\n# OSU MPI ", test,
                        " Latency Test v7.3\n# Datatype: MPI_CHAR.\n", table,
                        "\n# Datatype: MPI_FLOAT.\n", absl::StrReplaceAll(table, {{"12", "90"}}));
  };
  EXPECT_THAT(Told(ReadCollectiveBenchmark(osu("Allreduce"), {}).status()),
              HasSubstr("line 10: its elements are \"MPI_FLOAT\", and before them \"MPI_CHAR\""));
  const std::string floats = Printed({}, kRows);
  EXPECT_THAT(
      Told(ReadCollectiveBenchmark(floats + absl::StrReplaceAll(floats, {{"float", "half"}}), {})
               .status()),
      HasSubstr("give the tables of one type"));
  // Kinds that add nothing up take the same time with all types.
  const auto measured = ReadCollectiveBenchmark(osu("Broadcast"), {});
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->size(), 2U);
  // The rows of a table without a name are none of the test's before it.
  const auto first = ReadCollectiveBenchmark(
      "mpirun -np 4 osu_allreduce\n# OSU MPI Allreduce Latency Test v7.3\n" + table +
          absl::StrReplaceAll(table, {{"12", "90"}}),
      {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->back().seconds, 12e-6);
}

TEST(CollectiveBenchmarkTest, ARowMayGoOnBelowWhatALibraryPrints) {
  std::string text = Printed({}, kRows);
  const size_t at = text.find("-1", text.find("16777216")) + 2;
  const std::string printed = "\nn:1:2 [0] NCCL INFO opCount 3\n\nn:1:2 [1] NCCL INFO opCount 4\n";
  text.insert(at, printed);
  const auto measured = ReadCollectiveBenchmark(text, {});
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(*measured, *ReadCollectiveBenchmark(Printed({}, kRows), {}));
  text.erase(at + printed.size(), 20);
  EXPECT_THAT(Told(ReadCollectiveBenchmark(text, {}).status()),
              HasSubstr("line 11: 5 columns of 13: the line is cut short"));
}

TEST(CollectiveBenchmarkTest, TimesOfTheCpuAreRefusedByName) {
  for (const std::string& text :
       {absl::StrReplaceAll(Printed({}, kRows), {{" time ", " cputime "}}),
        absl::StrReplaceAll(NcclJson(2, 4), {{"\"time\"", "\"cpu_time\""}})})
    EXPECT_THAT(Told(ReadCollectiveBenchmark(text, {}).status()), HasSubstr("times are the CPU's"));
}

TEST(CollectiveBenchmarkTest, TablesAndJsonSayTheSame) {
  const std::string table =
      "seconds,kind,workers,size_bytes\n"
      "0.25,all_reduce,4,1048576\n\n# again\n0.35,ALL_REDUCE,4,1048576\n"
      "0.1,BROADCAST,2,1024\n0.1,ALL_REDUCE,2,10\n";
  const std::string json =
      R"([{"kind": "ALL_REDUCE", "workers": 4, "size_bytes": 1048576, "seconds": 0.25},
          {"kind": "all_reduce", "workers": "4", "sizeBytes": "1048576", "seconds": 0.35},
          {"kind": "BROADCAST", "workers": 2, "size_bytes": 1024, "seconds": 1e-1},
          {"kind": "ALL_REDUCE", "workers": 2, "size_bytes": 10, "seconds": 0.1}])";
  for (const std::string& text : {table, json, absl::StrCat("{\"measured\": ", json, "}")}) {
    const auto measured = ReadCollectiveBenchmark(text, {});
    ASSERT_TRUE(measured.ok()) << measured.status();
    // Twice measured: the median.
    EXPECT_THAT(
        *measured,
        ElementsAre(
            MeasuredCollective{.workers = 2, .size_bytes = 10, .seconds = 0.1},
            MeasuredCollective{.workers = 4, .size_bytes = 1 << 20, .seconds = 0.3},
            MeasuredCollective{
                .kind = Collective::kBroadcast, .workers = 2, .size_bytes = 1024, .seconds = 0.1}));
  }
}

TEST(CollectiveBenchmarkTest, FaultsOfPointsAreAtTheirLineOrPlace) {
  const std::pair<const char*, std::pair<const char*, const char*>> cases[] = {
      {"kind,workers,seconds\n", {"line 1", "no column size_bytes"}},
      {"kind,workers,size_bytes,seconds\nALL_REDUCE,4,1024\n", {"line 2", "3 columns of 4"}},
      {"kind,workers,size_bytes,seconds\nALLREDUCE,4,1024,1\n", {"line 2", "\"ALLREDUCE\""}},
      {"kind,workers,size_bytes,seconds\nALL_REDUCE,1,1024,1\n", {"line 2", "at least 2"}},
      {"kind,workers,size_bytes,seconds\nALL_REDUCE,4,0,1\n", {"line 2", "0 bytes"}},
      {"kind,workers,size_bytes,seconds\nALL_REDUCE,4,1,-1\n", {"line 2", "-1 seconds"}},
      {"kind,workers,size_bytes,seconds\nALL_REDUCE,4,1,nan\n", {"line 2", "nan seconds"}},
      {"kind,workers,size_bytes,seconds\n", {"recording", "no points"}},
      {R"({"measured": [1]})", {"measured[0]", "not an object"}},
      {"[{\"kind\": \"ALL_REDUCE\", \"workers\": 1.5}]",
       {"measured[0]", "\"1.5\" is not a number of workers"}},
      {"[{\"kind\": {}}]", {"measured[0]", "kind \"\""}},
      {"{\"points\": []}", {"recording", "no objects with a size and times"}},
      {"[{", {"recording", "no JSON"}}};
  for (const auto& [text, expected] : cases) {
    const auto measured = ReadCollectiveBenchmark(text, {});
    ASSERT_FALSE(measured.ok()) << text;
    const Fault fault = DetailsOf(measured.status()).faults.front();
    EXPECT_EQ(fault.field, expected.first) << text;
    EXPECT_THAT(fault.description, HasSubstr(expected.second)) << text;
  }
}

TEST(CollectiveBenchmarkTest, ALimitOnPointsIsNamed) {
  std::string table = "kind,workers,size_bytes,seconds\n";
  for (int i = 1; i <= 30; ++i) absl::StrAppend(&table, "ALL_REDUCE,2,", i, ",1\n");
  EXPECT_THAT(Told(ReadCollectiveBenchmark(table, {}, {.max_measured = 20}).status()),
              HasSubstr("30 is above the limit max_measured = 20"));
}

TEST(CollectiveBenchmarkTest, BrokenTextsAreRefusedOrGivePoints) {
  const std::vector<std::string> texts = {
      Printed({}, kRows),
      "kind,workers,size_bytes,seconds\nALL_REDUCE,4,1024,0.5\n",
      R"([{"kind": "ALL_REDUCE", "workers": 4, "size_bytes": 10, "seconds": 0.25}])",
      R"({"nranks": 4, "benchmark": [{"1024": {"redop": "sum", "oop_time": 9.5, "ip_time": 10,
          "ip_algbw": 0.1024, "ip_busbw": 0.1536, "ip_error": 0}}], "test": "all_reduce"})",
      R"({"name": "AllReduce", "gpus": 4, "size": 1024, "time": 10, "algBw": 0.1024, "inPlace": 1}
{"name": "AllGather", "gpus": 4, "size": 1024, "time": 10, "algBw": 0.1024, "inPlace": 1})",
      "# OSU MPI Allreduce Latency Test v7.0\n# Size  Avg Latency(us)\n1024  10.5\n2048  12\n",
      absl::StrCat("# Benchmarking Allreduce \n# #processes = 4 \n",
                   " #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n",
                   " 1024  40  9.0  11.0  10.0\n")};
  constexpr uint64_t kOfEach = 3000;
  std::vector<int> sound(texts.size(), 0);
  for (uint64_t seed = 0; seed < kOfEach * texts.size(); ++seed) {
    Random random({seed, 11});
    const size_t form = seed % texts.size();
    std::string text = texts[form];
    for (uint64_t count = 1 + random.Below(4); count > 0; --count)
      text[random.Below(text.size())] = static_cast<char>(random.Below(128));
    const bool is_without_workers = absl::StrContains(texts[form], "OSU");
    CollectiveBenchmarkOptions options;
    if (is_without_workers) options.workers = 4;
    const auto measured = ReadCollectiveBenchmark(text, options);
    if (!measured.ok()) {
      EXPECT_EQ(DetailsOf(measured.status()).reason, "IMPORT_INVALID") << "seed " << seed;
      continue;
    }
    ++sound[form];
    for (const MeasuredCollective& point : *measured) {
      EXPECT_GE(point.workers, 2) << "seed " << seed;
      EXPECT_GT(point.seconds, 0) << "seed " << seed;
    }
  }
  EXPECT_THAT(sound, Each(Gt(15)));
}

}  // namespace
}  // namespace stepcast::collective_benchmark_test
