#include "core/layouts/run_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/student_t.h"
#include "core/model/fault_list.h"
#include "core/pipeline/schedule.h"

namespace stepcast {
namespace {

constexpr int kPriorRuns = 3;
constexpr double kPriorDeviation = 0.005;
constexpr double kMaxStepSeconds = 1e6;
constexpr int64_t kMaxRunDevices = int64_t{1} << 30;
constexpr size_t kMaxNameBytes = 256;

double WorkOf(const MeasuredRun& run) {
  return run.micro_batches + static_cast<double>(run.stages - 1) / run.chunks;
}

void CheckRuns(const RunFitDraft& draft, FaultList& faults) {
  if (draft.runs.size() < 2 || draft.runs.size() > kMaxMeasuredRuns)
    faults.Add("runs", absl::StrCat(draft.runs.size(), " given, not 2 to ", kMaxMeasuredRuns));
  int32_t stages = 0;
  for (size_t i = 0; i < draft.runs.size() && !faults.full(); ++i) {
    const MeasuredRun& run = draft.runs[i];
    const std::string path = absl::StrCat("runs[", i, "].");
    const auto check = [&](const char* field, auto value, auto most) {
      if (value < 1 || value > most)
        faults.Add(path + field, absl::StrCat(value, " is not from 1 to ", most));
    };
    if (run.name.size() > kMaxNameBytes)
      faults.Add(path + "name", TooLong(run.name, "max_name_bytes", kMaxNameBytes));
    check("devices", run.devices, kMaxRunDevices);
    check("pipeline.stages", run.stages, kMaxPipelineDevices);
    check("pipeline.chunks", run.chunks, kMaxChunks);
    check("pipeline.micro_batches", run.micro_batches, kMaxMicroBatches);
    if (const double seconds = run.step_seconds.value_or(1);
        !(seconds > 0 && seconds <= kMaxStepSeconds))
      faults.Add(path + "step_seconds",
                 absl::StrCat(seconds, " is not above 0 and at most ", kMaxStepSeconds));
    if (stages == 0) stages = run.stages;
    if (run.stages != stages)
      faults.Add(path + "pipeline.stages",
                 absl::StrCat(run.stages, " is not the ", stages,
                              " of runs[0]: devices that "
                              "compute another share of the model are not comparable"));
  }
  const double level = draft.confidence_level.value_or(0.95);
  if (!(level >= 0.5 && level <= 0.999))
    faults.Add("confidence_level", absl::StrCat(level, " is not from 0.5 to 0.999"));
}

// Indices of the runs that are fitted.
std::vector<size_t> BasisOf(const RunFitDraft& draft) {
  std::vector<size_t> measured;
  for (size_t i = 0; i < draft.runs.size(); ++i)
    if (draft.runs[i].step_seconds.has_value()) measured.push_back(i);
  if (draft.basis.value_or(RunBasis::kSmallest) == RunBasis::kAll || measured.empty())
    return measured;
  std::stable_sort(measured.begin(), measured.end(), [&](size_t a, size_t b) {
    return draft.runs[a].devices < draft.runs[b].devices;
  });
  std::vector<size_t> smallest = {measured.front()};
  for (const size_t i : measured) {
    if (WorkOf(draft.runs[i]) == WorkOf(draft.runs[measured.front()])) continue;
    smallest.push_back(i);
    break;
  }
  return smallest;
}

// The normal equations of T = slope x + offset, weighted by 1 / T^2.
class WeightedLine {
 public:
  void Add(double x, double seconds) {
    const double weight = 1 / (seconds * seconds);
    w_ += weight;
    x_ += weight * x;
    xx_ += weight * x * x;
    y_ += weight * seconds;
    xy_ += weight * x * seconds;
  }
  double determinant() const { return w_ * xx_ - x_ * x_; }
  double slope() const { return (w_ * xy_ - x_ * y_) / determinant(); }
  double offset() const { return (xx_ * y_ - x_ * xy_) / determinant(); }
  // Variances of both and of the line at x, in units of a relative error's.
  double slope_variance() const { return w_ / determinant(); }
  double offset_variance() const { return xx_ / determinant(); }
  double VarianceAt(double x) const { return (xx_ - 2 * x_ * x + w_ * x * x) / determinant(); }

 private:
  double w_ = 0;
  double x_ = 0;
  double xx_ = 0;
  double y_ = 0;
  double xy_ = 0;
};

}  // namespace

absl::StatusOr<RunFit> FitMeasuredRuns(const RunFitDraft& draft) {
  FaultList faults;
  CheckRuns(draft, faults);
  if (!faults.empty()) return FaultsError("REQUEST_INVALID", std::move(faults).Take());
  const std::vector<size_t> basis = BasisOf(draft);
  const bool has_two = std::any_of(basis.begin(), basis.end(), [&](size_t i) {
    return WorkOf(draft.runs[i]) != WorkOf(draft.runs[basis.front()]);
  });
  if (!has_two)
    return FaultsError("REQUEST_INVALID",
                       {{"runs", absl::StrCat(basis.size(),
                                              " measured with one number of "
                                              "micro-batches: a line needs two")}});
  WeightedLine line;
  for (const size_t i : basis) line.Add(WorkOf(draft.runs[i]), *draft.runs[i].step_seconds);
  double squares = kPriorRuns * kPriorDeviation * kPriorDeviation;
  const auto at = [&](const MeasuredRun& run) {
    return line.slope() * WorkOf(run) + line.offset();
  };
  for (const size_t i : basis) {
    const double error = at(draft.runs[i]) / *draft.runs[i].step_seconds - 1;
    squares += error * error;
  }
  const int degrees = kPriorRuns + static_cast<int>(basis.size()) - 2;
  const double deviation = std::sqrt(squares / degrees);
  const double level = draft.confidence_level.value_or(0.95);
  const double reach = StudentTQuantile(degrees, level);
  const auto around = [&](double value, double error) {
    return Interval{.lower = value - reach * error, .upper = value + reach * error, .level = level};
  };
  RunFit fit{.seconds_per_micro_batch = line.slope(), .rest_seconds = line.offset()};
  fit.seconds_per_micro_batch_interval =
      around(line.slope(), deviation * std::sqrt(line.slope_variance()));
  fit.rest_interval = around(line.offset(), deviation * std::sqrt(line.offset_variance()));
  const MeasuredRun& smallest = draft.runs[basis.front()];
  for (size_t i = 0; i < draft.runs.size(); ++i) {
    const MeasuredRun& run = draft.runs[i];
    RunFit::Run& told = fit.runs.emplace_back();
    told.step_seconds = at(run);
    told.step_interval =
        around(told.step_seconds,
               deviation * std::hypot(std::sqrt(line.VarianceAt(WorkOf(run))), told.step_seconds));
    told.linear_step_seconds = *smallest.step_seconds * run.micro_batches / smallest.micro_batches;
    told.fitted = std::find(basis.begin(), basis.end(), i) != basis.end();
    if (!run.step_seconds.has_value()) continue;
    told.relative_error = told.step_seconds / *run.step_seconds - 1;
    told.linear_relative_error = told.linear_step_seconds / *run.step_seconds - 1;
  }
  return fit;
}

}  // namespace stepcast
