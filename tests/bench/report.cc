#include "tests/bench/report.h"

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace stepcast::bench {

namespace {

const char* Sign(const Goal& goal) {
  return goal.direction == Goal::Direction::kAtLeast ? ">=" : "<=";
}

}  // namespace

std::string TableHeading() {
  return absl::StrFormat("%-34s %11s %11s %9s  %-19s %9s %9s  %s", "name", "ours ns/op", "theirs",
                         "ratio", "spread", "minimum", "aim", "holds");
}

std::string TableLine(const Row& row) {
  const std::string spread = absl::StrFormat("[%.2f, %.2f]", row.ratio.low, row.ratio.high);
  std::string line = absl::StrFormat("%-34s %11.2f %11.2f %9.2f  %-19s %s %6g %s %6g  %-5s  %s",
                                     row.name, row.ours, row.theirs, row.ratio.median, spread,
                                     Sign(row.goal), row.goal.minimum, Sign(row.goal), row.goal.aim,
                                     row.holds ? "yes" : "NO", row.sides);
  if (!row.note.empty()) line += absl::StrFormat("\n%36s%s", "", row.note);
  return line;
}

std::string ToJson(const std::vector<Row>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    list.push_back(
        {{"name", row.name},
         {"sides", row.sides},
         {"direction", row.goal.direction == Goal::Direction::kAtLeast ? "at least" : "at most"},
         {"ratio", row.ratio.median},
         {"low", row.ratio.low},
         {"high", row.ratio.high},
         {"minimum", row.goal.minimum},
         {"aim", row.goal.aim},
         {"holds", row.holds},
         {"ours_ns", row.ours},
         {"theirs_ns", row.theirs},
         {"note", row.note}});
  }
  return list.dump(2) + "\n";
}

}  // namespace stepcast::bench
