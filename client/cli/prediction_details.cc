#include "client/cli/prediction_details.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/measure_text.h"
#include "client/cli/table.h"

namespace stepcast::client {

std::string PassesText(const Predictions& predictions) {
  if (std::none_of(predictions.begin(), predictions.end(),
                   [](const v1::Prediction& prediction) { return prediction.has_passes(); }))
    return "\npasses: not known, since no operation of the profile says which it belongs to\n";
  Table table({{"workers"}, {"step"}, {"forward"}, {"backward"}, {"optimizer"}, {"other"}});
  for (const v1::Prediction& prediction : predictions) {
    const v1::PassTimes& passes = prediction.passes();
    std::vector<std::string> row{absl::StrCat(WorkersOf(prediction)),
                                 DurationText(prediction.step_time().mean())};
    for (const double seconds : {passes.forward_seconds(), passes.backward_seconds(),
                                 passes.optimizer_seconds(), passes.other_seconds()})
      row.push_back(prediction.has_passes() ? SecondsText(seconds) : "-");
    table.AddRow(std::move(row));
  }
  return absl::StrCat("\n", table.Text());
}

std::string OverTimeText(const Predictions& predictions) {
  Table table({{"workers"}, {"until"}, {"examples/s"}});
  for (const v1::Prediction& prediction : predictions) {
    for (const v1::ThroughputPoint& point : prediction.throughput_over_time()) {
      table.AddRow({absl::StrCat(WorkersOf(prediction)), SecondsText(point.end_seconds()),
                    NumberText(point.examples_per_second())});
    }
  }
  return absl::StrCat("\n", table.Text());
}

}  // namespace stepcast::client
