#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/texts/prediction_table.h"
#include "client/cli/texts/table.h"

namespace stepcast::client {

namespace {

// `2.927 GiB: parameters 97.39 MiB, ...`, with `of` behind the first.
std::string MemoryOfText(const v1::Memory& memory, const std::string& of) {
  std::string parts;
  for (const auto& [name, bytes] : {std::pair("parameters", memory.parameter_bytes()),
                                    std::pair("gradients", memory.gradient_bytes()),
                                    std::pair("optimizer (Adam)", memory.optimizer_bytes()),
                                    std::pair("kept for the backward pass", memory.kept_bytes())}) {
    if (bytes > 0) absl::StrAppend(&parts, parts.empty() ? "" : ", ", name, " ", BytesText(bytes));
  }
  return absl::StrCat(
      memory.has_kept_bytes() ? "" : "at least ", BytesText(memory.total_bytes()), of, ": ", parts,
      memory.has_kept_bytes() ? "" : ", and what the forward pass keeps, which is not known");
}

}  // namespace

std::string MemoryText(const Predictions& predictions) {
  if (predictions.empty() || !predictions.rbegin()->has_memory()) return "";
  const v1::Prediction& first = *predictions.begin();
  const v1::Prediction& last = *predictions.rbegin();
  const bool differ = first.memory().total_bytes() != last.memory().total_bytes();
  const auto of = [&](const v1::Prediction& prediction) {
    const int32_t workers = WorkersOf(prediction);
    return differ ? absl::StrCat(" with ", workers, workers == 1 ? " worker" : " workers") : "";
  };
  std::string text;
  if (differ)
    absl::StrAppend(&text, "memory of a device: ", MemoryOfText(first.memory(), of(first)), "\n");
  absl::StrAppend(&text, "memory of a device: ", MemoryOfText(last.memory(), of(last)), "\n");
  return text;
}

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

std::string CertaintyText(const Predictions& predictions) {
  if (predictions.empty()) return "";
  // The one of which least is known, of equal ones that with the most workers.
  const auto unsure = [](const v1::Prediction& one) {
    const v1::ConfidenceInterval& interval = one.confidence_interval();
    const double value = one.examples_per_second();
    return std::pair(value > 0 ? (interval.upper() - interval.lower()) / value : 0, WorkersOf(one));
  };
  const v1::Prediction& most = *std::max_element(
      predictions.begin(), predictions.end(),
      [&](const v1::Prediction& a, const v1::Prediction& b) { return unsure(a) < unsure(b); });
  const bool is_sample = most.input_fraction() > 0;
  const v1::ModelError& error = most.model_error();
  if (!is_sample && error.fraction() <= 0) return "";
  const double value = most.examples_per_second();
  const v1::ConfidenceInterval& interval = most.confidence_interval();
  const double half_width = (interval.upper() - interval.lower()) / 2;
  std::string text = absl::StrCat(
      "intervals: of the long run", is_sample ? ", the recording being a sample of steps" : "",
      "; of runs, with a run's chance",
      error.fraction() > 0 ? absl::StrCat(" and the model's error, ", PercentText(error.fraction()),
                                          " (", error.source(), ")\n")
                           : "\n");
  const double gained = half_width - most.half_width_with_more_steps();
  if (is_sample && value > 0 && gained > std::max(half_width / 5, value / 200)) {  // worth a record
    absl::StrAppend(&text, "record 20 more steps: +-",
                    PercentText(most.half_width_with_more_steps() / value), " instead of +-",
                    PercentText(half_width / value), " with ", WorkersOf(most),
                    WorkersOf(most) == 1 ? " worker\n" : " workers\n");
  }
  return text;
}

}  // namespace stepcast::client
