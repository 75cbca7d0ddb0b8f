// stepcast_paper_results: asks the papers' questions of the model zoo, and prints the answers as
// markdown tables.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/papers/all_reduce_scaling.h"
#include "tests/bench/papers/dpro_memory.h"
#include "tests/bench/papers/enforced_order.h"
#include "tests/bench/papers/libra_paper.h"
#include "tests/bench/papers/scaling.h"
#include "tests/bench/papers/second_server.h"
#include "tests/bench/papers/tictac.h"

namespace stepcast::bench {
namespace {

void Print(const char* title, const std::string& table) {
  std::printf("### %s\n\n%s\n", title, table.c_str());
  std::fflush(stdout);
}

void Append(std::vector<ScalingCurves> more, std::vector<ScalingCurves>& curves) {
  for (ScalingCurves& one : more) curves.push_back(std::move(one));
}

// None: there is no such file on this machine.
std::string ReadMeasurements(const char* file) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment.
  const char* chosen = std::getenv("STEPCAST_SHARED_DATA");
  const std::filesystem::path folder =
      chosen != nullptr ? std::filesystem::path(chosen)
                        : std::filesystem::path(STEPCAST_SOURCE_DIR) / ".." / "shared" / "data";
  std::ifstream stream(folder / "scaling" / file);
  if (!stream) {
    std::printf("%s is not on this machine: what it measured is left out.\n\n",
                (folder / "scaling" / file).c_str());
    return "";
  }
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void PrintMeasuredScaling() {
  std::vector<ScalingScore> scores;
  struct Source {
    const char* file;
    PublishedSet (*read)(std::string_view text);
  };
  for (const auto& [file, read] :
       {Source{"pollux.json", ReadPollux}, Source{"gavel.json", ReadGavel},
        Source{"dlperf.json", ReadDlPerf}}) {
    const std::string text = ReadMeasurements(file);
    if (text.empty()) continue;
    for (ScalingScore& score : ScoreSet(read(text))) scores.push_back(std::move(score));
  }
  if (scores.empty()) return;
  Print("Clusters as calibrated", ClusterTable(scores));
  Print("All-reduce jobs, mean absolute errors of examples/s", ErrorTable(scores));
  Print("All-reduce jobs, every row", RowTable(scores));
}

void PrintAll() {
  PrintMeasuredScaling();
  Print("LIBRA: gain over one all-reduce after the backward pass (SE), examples/s", LibraTable());
  Print(
      "LIBRA: Figs. 7 and 8, ms of a backward pass on 8 nodes: computation + residual (all) "
      "communication",
      LibraBreakdownTable());
  Print("LIBRA: Fig. 9, throughput of a node over that of a single one", LibraScalingTable());
  Print("dPRO: Table 3, memory with batches of 32", Table3(MeasureTable3()));
  Print("dPRO: Table 4, memory passes of BERT Base on 16 GPUs", Table4(MeasureTable4()));
  std::vector<ScalingCurves> plain = MeasureScaling({});
  std::vector<ScalingCurves> inception = plain;
  // Parsing as long as a ninth of the transfer at 1 Gbit/s: the example of ICPE 2020, section 4.3.
  Append(MeasureScaling({.parsing_overhead = {.seconds_per_byte = 1 / kGigabit / 9}}), inception);
  Append(MeasureScaling({.gigabits_per_second = 1}), inception);
  Print("Saturation of Inception-v3, examples/s", SaturationTable(inception));
  Print("A second parameter server, examples/s", SecondServerTable(MeasureSecondServer({})));
  Print("TIC / TAC / SEARCH over a random order, %, synchronous",
        OrderTable({}, MeasureOrders({})));
  const EnforcedOrderOptions asynchronous{.methods = {OrderMethod::kTic},
                                          .workers = {4},
                                          .synchronization = Synchronization::kAsynchronous};
  Print("TIC over a random order, %, asynchronous",
        OrderTable(asynchronous, MeasureOrders(asynchronous)));
  constexpr Length kLength{.steps_per_worker = 60, .replications = 2};
  Print("TicTac: Figs. 7, 9, 10 and 11", TicTacTable(TicTacPoints(TicTacModels(), kLength)));
  Print("TicTac: Fig. 12, 1,000 steps of each", ConsistencyTable(1000));
  Print("ICPE: Fig. 16, three workers that begin together", OutOfStepTable());
  Append(MeasureScaling({.model = "alexnet", .batch_sizes = {64, 512}}), plain);
  Print("Simpler models beside the simulation", RivalTable(plain));
}

}  // namespace
}  // namespace stepcast::bench

int main() {
  try {
    stepcast::bench::PrintAll();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stepcast_paper_results: %s\n", error.what());
    return 2;
  }
}
