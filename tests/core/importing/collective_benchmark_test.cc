#include "core/importing/collective_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
      "# Benchmarking Allreduce \n# #processes = 4 \n"
      " #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n 1024  40  9.0  11.0  10.0\n"};
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
