#include "core/layouts/run_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/distributions.h"
#include "core/base/error.h"
#include "core/pipeline/schedule.h"

namespace stepcast {
namespace {

constexpr int kPriorRuns = 3;
constexpr double kPriorDeviation = 0.005;
constexpr int kStagesRuns = 14;
constexpr double kStagesDeviation = 0.029;
constexpr double kUnknownRest = 2.5;
constexpr double kMaxStepSeconds = 1e6;
constexpr double kRounding = 1e-12;  // of a rest, as a share of a step
constexpr int64_t kMaxRunDevices = int64_t{1} << 30;
constexpr size_t kMaxNameBytes = 256;

// Micro-batches that a device of `stages` would have computed meanwhile.
double WorkOf(const MeasuredRun& run, int32_t stages) {
  return (run.micro_batches + static_cast<double>(run.stages - 1) / run.chunks) * stages /
         run.stages;
}

void CheckRuns(const RunFitDraft& draft, FaultList& faults) {
  if (draft.runs.size() < 2 || draft.runs.size() > kMaxMeasuredRuns)
    faults.Add("runs", absl::StrCat(draft.runs.size(), " given, not 2 to ", kMaxMeasuredRuns));
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
    if (run.devices > 0 && run.stages > 0 && run.devices % run.stages != 0)
      faults.Add(path + "devices",
                 absl::StrCat(run.devices, " are no whole pipelines of ", run.stages, " stages"));
    if (const double seconds = run.step_seconds.value_or(1);
        !(seconds > 0 && seconds <= kMaxStepSeconds))
      faults.Add(path + "step_seconds",
                 absl::StrCat(seconds, " is not above 0 and at most ", kMaxStepSeconds));
  }
  const double level = draft.confidence_level.value_or(0.95);
  if (!(level >= 0.5 && level <= 0.999))
    faults.Add("confidence_level", absl::StrCat(level, " is not from 0.5 to 0.999"));
}

// Indices of the runs that are fitted, the smallest first.
std::vector<size_t> BasisOf(const RunFitDraft& draft) {
  std::vector<size_t> measured;
  for (size_t i = 0; i < draft.runs.size(); ++i)
    if (draft.runs[i].step_seconds.has_value()) measured.push_back(i);
  std::stable_sort(measured.begin(), measured.end(), [&](size_t a, size_t b) {
    return draft.runs[a].devices < draft.runs[b].devices;
  });
  if (draft.basis.value_or(RunBasis::kSmallest) == RunBasis::kAll || measured.empty())
    return measured;
  const MeasuredRun& smallest = draft.runs[measured.front()];
  const auto next = std::find_if(measured.begin(), measured.end(), [&](size_t i) {
    const MeasuredRun& run = draft.runs[i];
    return run.stages == smallest.stages &&
           WorkOf(run, run.stages) != WorkOf(smallest, smallest.stages);
  });
  if (next == measured.end()) return {measured.front()};
  return {measured.front(), *next};
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
  double slope_through_zero() const { return xy_ / xx_; }
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

// The line through runs, and by how much it may be off. Runs that are all as long tell no rest, and
// none is below 0: then the line goes through zero.
class RunLine {
 public:
  // REQUIRES: not empty.
  RunLine(const std::vector<MeasuredRun>& runs, const std::vector<size_t>& basis)
      : smallest_(runs[basis.front()]) {
    for (const size_t i : basis) {
      line_.Add(WorkOf(runs[i]), *runs[i].step_seconds);
      is_told_ |= WorkOf(runs[i]) != WorkOf(smallest_);
    }
    if (is_told_ && std::fabs(line_.offset()) > kRounding * *smallest_.step_seconds)
      rest_ = line_.offset();
    has_rest_ = is_told_ && rest_ >= 0;
    double squares = kPriorRuns * kPriorDeviation * kPriorDeviation;
    for (const size_t i : basis) {
      const double error = At(runs[i]) / *runs[i].step_seconds - 1;
      squares += error * error;
    }
    degrees_ = kPriorRuns + static_cast<int>(basis.size()) - (has_rest_ ? 2 : 1);
    deviation_ = std::sqrt(squares / degrees_);
  }

  // More work takes no more seconds.
  bool falls() const { return is_told_ && line_.slope() <= 0; }
  // The rest of the line that does not go through zero; 0: there is none, or it is not told.
  double rest() const { return rest_; }
  double slope() const { return has_rest_ ? line_.slope() : line_.slope_through_zero(); }
  double offset() const { return std::max(rest_, 0.0); }
  double At(const MeasuredRun& run) const { return slope() * WorkOf(run) + offset(); }
  double LinearAt(const MeasuredRun& run) const {
    return *smallest_.step_seconds * run.micro_batches / smallest_.micro_batches *
           smallest_.stages / run.stages;
  }
  int degrees() const { return is_told_ ? degrees_ : kStagesRuns; }
  double SlopeError() const {
    return is_told_ ? deviation_ * std::sqrt(line_.slope_variance())
                    : slope() * std::hypot(deviation_, kUnknownRest / WorkOf(smallest_));
  }
  double OffsetError() const {
    return is_told_ ? deviation_ * std::sqrt(line_.offset_variance()) : kUnknownRest * slope();
  }
  // Error of one run.
  double ErrorAt(const MeasuredRun& run) const {
    const double work = WorkOf(run);
    const double of_line =
        is_told_ ? deviation_ * std::sqrt(line_.VarianceAt(work))
                 : std::hypot(deviation_ * At(run),
                              kUnknownRest * slope() * (1 - work / WorkOf(smallest_)));
    const double of_stages = run.stages == smallest_.stages ? 0 : kStagesDeviation;
    return std::hypot(of_line, std::hypot(deviation_, of_stages) * At(run));
  }

 private:
  double WorkOf(const MeasuredRun& run) const { return stepcast::WorkOf(run, smallest_.stages); }

  const MeasuredRun& smallest_;
  WeightedLine line_;
  double rest_ = 0;
  bool is_told_ = false;   // the rest
  bool has_rest_ = false;  // it is, and not below 0
  int degrees_ = 0;
  double deviation_ = 0;
};

// A fault at the run that took least beside one of less work.
absl::Status FallingRuns(const std::vector<MeasuredRun>& runs, std::vector<size_t> basis) {
  const int32_t stages = runs[basis.front()].stages;
  const auto key = [&](size_t i) {
    return std::pair(WorkOf(runs[i], stages), *runs[i].step_seconds);
  };
  std::sort(basis.begin(), basis.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  size_t longest = basis.front();  // so far
  std::pair<size_t, size_t> worst;
  double ratio = 0;
  for (const size_t i : std::vector<size_t>(basis.begin() + 1, basis.end())) {
    if (*runs[longest].step_seconds / *runs[i].step_seconds > ratio) {
      worst = {longest, i};
      ratio = *runs[longest].step_seconds / *runs[i].step_seconds;
    }
    if (*runs[i].step_seconds > *runs[longest].step_seconds) longest = i;
  }
  const auto text = [&](size_t i) {
    return absl::StrCat(*runs[i].step_seconds, " s of ", runs[i].micro_batches,
                        " micro-batches in ", runs[i].stages, " stages on ", runs[i].devices,
                        " devices");
  };
  return FaultsError(
      "REQUEST_INVALID",
      {{absl::StrCat("runs[", worst.second, "].step_seconds"),
        absl::StrCat(text(worst.second), " contradict runs[", worst.first, "], ", text(worst.first),
                     ": more work of a device would take less time. Mend or leave out one")}});
}

}  // namespace

absl::StatusOr<RunFit> FitMeasuredRuns(const RunFitDraft& draft) {
  FaultList faults;
  CheckRuns(draft, faults);
  if (!faults.empty()) return FaultsError("REQUEST_INVALID", std::move(faults).Take());
  const std::vector<size_t> basis = BasisOf(draft);
  if (basis.empty())
    return FaultsError("REQUEST_INVALID", {{"runs", "none has step_seconds: a line needs one"}});
  const RunLine line(draft.runs, basis);
  if (line.falls()) return FallingRuns(draft.runs, basis);
  const double level = draft.confidence_level.value_or(0.95);
  const double reach = StudentTQuantile(line.degrees(), level);
  const auto around = [&](double value, double error) {
    return Interval{.lower = value - reach * error, .upper = value + reach * error, .level = level};
  };
  RunFit fit{.seconds_per_micro_batch = line.slope(),
             .seconds_per_micro_batch_interval = around(line.slope(), line.SlopeError()),
             .rest_seconds = line.offset(),
             .rest_interval = around(line.offset(), line.OffsetError())};
  // No step is shorter than its micro-batches, but a line through noise may be.
  fit.rest_interval.lower = std::max(fit.rest_interval.lower, 0.0);
  if (line.rest() < 0)
    fit.warnings.push_back(
        {.reason = Warning::Reason::kRestBelowZero,
         .message = absl::StrFormat(
             "the fitted runs take %.3g s less than their micro-batches, which no step does: they "
             "are fitted without a rest, and intervals are as wide as that is off",
             -line.rest())});
  for (size_t i = 0; i < draft.runs.size(); ++i) {
    const MeasuredRun& run = draft.runs[i];
    RunFit::Run& told = fit.runs.emplace_back();
    told.step_seconds = line.At(run);
    told.step_interval = around(told.step_seconds, line.ErrorAt(run));
    told.step_interval.lower = std::max(told.step_interval.lower, 0.0);
    told.linear_step_seconds = line.LinearAt(run);
    told.fitted = std::find(basis.begin(), basis.end(), i) != basis.end();
    if (!run.step_seconds.has_value()) continue;
    told.relative_error = told.step_seconds / *run.step_seconds - 1;
    told.linear_relative_error = told.linear_step_seconds / *run.step_seconds - 1;
  }
  return fit;
}

}  // namespace stepcast
