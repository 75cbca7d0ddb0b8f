#include "tests/bench/benchmark.h"

namespace stepcast::bench {

Row RowOf(const Benchmark& benchmark, const Outcome& outcome) {
  std::vector<double> ours;
  std::vector<double> theirs;
  std::vector<double> values;
  for (const Round& round : outcome.rounds) {
    ours.push_back(round.ours);
    theirs.push_back(round.theirs);
    values.push_back(round.value);
  }
  Row row{.name = benchmark.name,
          .sides = benchmark.sides,
          .goal = benchmark.goal,
          .note = outcome.note};
  row.ours = SpreadOf(ours).median;
  row.theirs = SpreadOf(theirs).median;
  row.ratio = SpreadOf(values);
  row.holds = row.goal.Holds(row.ratio.median);
  return row;
}

}  // namespace stepcast::bench
