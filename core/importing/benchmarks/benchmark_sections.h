// The tests that a benchmark of collectives ran, one after the other, and what each measured; the
// readers of logs and of JSON that tell them (benchmark_log.cc, benchmark_json.cc).
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

#include "core/base/error.h"
#include "core/importing/benchmarks/collective_benchmark.h"

namespace stepcast {

// A test as a benchmark calls it: "alltoall_perf", "Allreduce".
struct BenchmarkTest {
  std::string name;
  Collective kind = Collective::kUnspecified;  // kUnspecified: none of the four
};
// Test of a name that is spelled in any of the usual ways; none where it names nothing known.
std::optional<BenchmarkTest> TestNamed(absl::string_view name);
// True of mpirun and others that start processes, by their name or path.
bool IsLauncher(absl::string_view word);
// Test of the one program that a command line runs: "mpirun -np 8 ./build/all_reduce_perf -b 8".
// None where a line runs none or several, or says something else of one, as a build does.
std::optional<BenchmarkTest> TestRun(absl::string_view line);
// Test of a program's name or path: "./build/all_reduce_perf".
std::optional<BenchmarkTest> TestOfProgram(absl::string_view path);

// Processes that a command line starts with a test of OSU's; 0: not told.
struct LaunchedTest {
  Collective kind = Collective::kUnspecified;
  int32_t workers = 0;
};
// The tests that a line launches: "mpirun -np 4 ./osu_bcast : -np 4 ./osu_bcast" launches 8
// processes of one. A line that runs other programs launches none.
std::vector<LaunchedTest> LaunchesIn(absl::string_view line);

// The fault of a table of nccl-tests that has them.
inline constexpr char kTimesOfCpu[] =
    "its times are the CPU's, not the collectives': run nccl-tests without -C";

// A size that was measured.
struct BenchmarkRow {
  std::string field;  // where it stands
  int64_t size_bytes = 0;
  double micros = 0;
  double algorithm_rate = 0;  // GB/s; 0: not printed
  double bus_rate = -1;       // the same; below 0: not printed
  std::string type;           // of its elements; empty: not told
  bool reduces = false;
  bool has_root = false;
  bool is_in_place = true;
  // The values that came out were checked, in place and otherwise.
  bool is_checked = false;
  bool is_checked_in_place = false;
};

// One table of one test.
struct BenchmarkSection {
  std::string field;                  // where it begins
  std::optional<BenchmarkTest> test;  // none: not named
  int32_t workers = 0;                // as the benchmark itself says; 0: not told
  int32_t likely_workers = 0;         // as what ran it says, or a library in it; 0: not told
  bool has_rates = true;              // false: the kind does not follow from the rows
  bool sizes_are_shares = false;      // of an all-gather: a worker's part, not the whole
  std::vector<BenchmarkRow> rows;
  std::vector<Fault> faults;         // of its rows
  std::vector<std::string> not_run;  // rows of sizes that the benchmark left out itself
  std::vector<int32_t> by_host;      // its ranks, where each says its host
};

// The measurements of all sections that are of one of the four kinds. Faults name each other test,
// a section whose kind or workers are not told or contradict its rates, and broken rows. Where
// options ask for a kind, only sections of that kind are read, and those that do not say theirs.
// Notes say which sizes of them did not run, and on how many hosts they ran.
std::vector<std::pair<std::string, MeasuredCollective>> MeasurementsOf(
    std::vector<BenchmarkSection> sections, const CollectiveBenchmarkOptions& options,
    FaultList& faults, std::vector<std::string>& notes);

// Reader of the logs of nccl-tests, rccl-tests, OSU's and Intel's MPI benchmarks.

// The field of a fault at a line: "line 7".
std::string LineField(size_t line);

// The tables of the log, one after the other, with the faults of their rows. The number of workers
// is the benchmark's own, else as NCCL's debugging output or the command line before it says.
std::vector<BenchmarkSection> ReadBenchmarkLog(absl::string_view text);

// The fault of a row whose rate is not what its size and time give, so that its units may be
// others. Empty: there is none.
std::string RateFault(const BenchmarkRow& row);

// Reader of the JSON of nccl-tests and rccl-tests.

struct BenchmarkAround;

// A text, or a number as one; empty: it is neither.
std::string TextOfScalar(const nlohmann::json& value);

// Objects with a size and times, wherever they are, and around them the test and its workers.
//
// Threads: none.
class BenchmarkJson {
 public:
  // A document, or one of several; `field` is before the places in it.
  void Read(const nlohmann::json& json, const std::string& field);
  // Sections by test and workers.
  std::vector<BenchmarkSection> Take() &&;

 private:
  void Walk(const nlohmann::json& json, const std::string& field, BenchmarkAround around,
            int levels);
  // False: it is not a measurement.
  bool AddRow(const nlohmann::json& object, const std::string& field,
              const BenchmarkAround& around);

  std::map<std::pair<std::string, int32_t>, BenchmarkSection> sections_;
};

}  // namespace stepcast
