// stepcast_bench: measures the engine against its peers and the server under load, prints a line
// for each row, and fails where a minimum does not hold.
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

#include "tests/bench/benchmark.h"
#include "tests/bench/report.h"
#include "tests/bench/rows/rows.h"

namespace stepcast::bench {
namespace {

struct Flags {
  std::string json;
  std::string filter;
  int rounds = 0;  // 0: as many as each row has
  bool list = false;
};

// Prints each row as soon as it is measured.
std::vector<Row> Measure(const std::vector<Benchmark>& benchmarks, int rounds) {
  std::vector<Row> rows;
  std::printf("%s\n", TableHeading().c_str());
  for (const Benchmark& benchmark : benchmarks) {
    try {
      rows.push_back(RowOf(benchmark, benchmark.run(rounds > 0 ? rounds : benchmark.rounds)));
    } catch (const std::exception& error) {
      throw std::runtime_error(benchmark.name + ": " + error.what());
    }
    std::printf("%s\n", TableLine(rows.back()).c_str());
    std::fflush(stdout);
  }
  return rows;
}

int Run(const Flags& flags) {
  const std::vector<Benchmark> benchmarks = AllRows().Matching(flags.filter);
  if (benchmarks.empty())
    throw std::runtime_error("no row's name contains \"" + flags.filter + "\"");
  if (flags.list) {
    for (const Benchmark& benchmark : benchmarks)
      std::printf("%-34s %s\n", benchmark.name.c_str(), benchmark.sides.c_str());
    return 0;
  }
  const std::vector<Row> rows = Measure(benchmarks, flags.rounds);
  if (!flags.json.empty() && !(std::ofstream(flags.json) << ToJson(rows) << std::flush)) {
    throw std::runtime_error("cannot write " + flags.json);
  }
  int failed = 0;
  for (const Row& row : rows) {
    if (row.holds) continue;
    std::printf("minimum does not hold: %s\n", row.name.c_str());
    ++failed;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace stepcast::bench

int main(int argc, char** argv) {
  CLI::App app("Measures the engine against its peers, and the server under load.");
  stepcast::bench::Flags flags;
  app.add_option("--json", flags.json, "Also write the rows to this file");
  app.add_option("--filter", flags.filter, "Only rows whose name contains this");
  app.add_option("--rounds", flags.rounds, "So many rounds for every row")
      ->check(CLI::PositiveNumber);
  app.add_flag("--list", flags.list, "Show the rows' names and measure nothing");
  CLI11_PARSE(app, argc, argv);
  try {
    return stepcast::bench::Run(flags);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stepcast_bench: %s\n", error.what());
    return 2;
  }
}
