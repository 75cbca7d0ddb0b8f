#include "tests/bench/papers/scaling.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/compare/comparison.h"
#include "tests/bench/papers/valid.h"

namespace stepcast::bench {

namespace {

constexpr size_t kShown[] = {1, 2, 3, 4, 6, 8, 10};  // workers

void Add(const ModelComparison& comparison, ScalingCurves& curves) {
  curves.simulated.push_back(comparison.prediction.examples_per_second);
  for (const ComparedPrediction& rival : comparison.rivals) {
    if (rival.model == ComparedModel::kQueueing)
      curves.queueing.push_back(rival.examples_per_second);
    if (rival.model == ComparedModel::kCynthia) curves.cynthia.push_back(rival.examples_per_second);
    if (rival.model == ComparedModel::kCynthiaHalved)
      curves.halved.push_back(rival.examples_per_second);
  }
}

std::vector<std::string> HeadOf(std::vector<std::string> head) {
  for (const size_t workers : kShown) head.push_back(absl::StrCat("W=", workers));
  head.push_back("saturated at");
  return head;
}

}  // namespace

std::vector<ScalingCurves> MeasureScaling(const ScalingOptions& options) {
  std::vector<ScalingCurves> all;
  for (const int32_t batch_size : options.batch_sizes) {
    const Profile profile =
        GpuProfile(options.model, batch_size, options.gigabits_per_second * kGigabit);
    ComparisonDraft draft{.worker_counts = CountsTo(options.most_workers),
                          .scenario = {},
                          .options = OptionsOf(options.length)};
    draft.scenario.servers().transfer_order = TransferOrder::kRandom;
    draft.scenario.servers().parsing_overhead = options.parsing_overhead;
    const StepParts parts = PartsOf(profile);
    ScalingCurves& curves = all.emplace_back();
    curves = {.model = options.model,
              .gigabits_per_second = options.gigabits_per_second,
              .batch_size = batch_size,
              .parsing_seconds_per_byte = options.parsing_overhead.seconds_per_byte,
              .computation_share = parts.computation_seconds / parts.download_seconds};
    const ComparisonAnswer answer =
        Valid(CompareModels(profile, Valid(ResolveComparison(profile, draft)), NeverStop));
    for (const ModelComparison& comparison : answer.comparisons) Add(comparison, curves);
  }
  return all;
}

std::string SaturationTable(const std::vector<ScalingCurves>& curves) {
  std::string table =
      TableHead(HeadOf({"Gbit/s", "parsing, ns/byte", "batch", "computation / download"}));
  for (const ScalingCurves& one : curves) {
    std::vector<std::string> cells = {
        absl::StrCat(one.gigabits_per_second), absl::StrCat(one.parsing_seconds_per_byte * 1e9),
        absl::StrCat(one.batch_size), absl::StrFormat("%.2f", one.computation_share)};
    for (const size_t workers : kShown)
      cells.push_back(absl::StrFormat("%.0f", one.simulated[workers - 1]));
    cells.push_back(absl::StrCat(SaturatedAt(one.simulated)));
    table += TableRow(cells);
  }
  return table;
}

std::string RivalTable(const std::vector<ScalingCurves>& curves) {
  std::string table =
      TableHead(HeadOf({"model", "batch", "computation / download", "predicted by"}));
  for (const ScalingCurves& one : curves) {
    const auto add = [&](const char* name, const std::vector<double>& rival) {
      std::vector<std::string> cells = {one.model, absl::StrCat(one.batch_size),
                                        absl::StrFormat("%.2f", one.computation_share), name};
      for (const size_t workers : kShown)
        cells.push_back(absl::StrFormat(
            "%+.0f %%", 100 * (rival[workers - 1] / one.simulated[workers - 1] - 1)));
      cells.push_back(
          absl::StrFormat("%d (simulated: %d)", SaturatedAt(rival), SaturatedAt(one.simulated)));
      table += TableRow(cells);
    };
    add("Lin et al.", one.queueing);
    add("Cynthia", one.cynthia);
    add("Cynthia, half T_C", one.halved);
  }
  return table;
}

}  // namespace stepcast::bench
