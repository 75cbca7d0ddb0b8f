#include "server/local/recording_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <variant>

#include "core/base/stop_check.h"
#include "core/calibrate/calibration.h"
#include "core/calibrate/parsing_overhead_fit.h"
#include "core/communication/all_reduce.h"
#include "core/importing/common/time_spans.h"
#include "core/importing/pytorch/gradient_buckets.h"
#include "core/model/job_change.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/predict/order_consistency.h"
#include "core/predict/replay_check.h"
#include "server/convert/profile_convert.h"

namespace stepcast::server {

namespace {

constexpr double kLevel = 0.95;

struct DisciplineName {
  const char* name;
  const char* plain_name;
};

DisciplineName NameOf(Discipline discipline) {
  switch (discipline) {
    case Discipline::kProfile:
      return {"PROFILE", "as the profile says"};
    case Discipline::kWholeStream:
      return {"WHOLE_STREAM", "whole streams, as requested"};
    case Discipline::kRoundRobin:
      return {"ROUND_ROBIN", "round robin, as gRPC"};
    case Discipline::kWindow:
      return {"WINDOW", "window, then the rest"};
    case Discipline::kBoundedWindow:
      return {"BOUNDED_WINDOW", "window, later services of 1 MiB more"};
    case Discipline::kEqualQuanta:
      return {"EQUAL_QUANTA", "round robin, equal quanta"};
    case Discipline::kRecordedOrder:
      return {"RECORDED_ORDER", "whole streams, as they ended"};
  }
  return {"DISCIPLINE_UNSPECIFIED", "unknown"};
}

EndErrorReport ErrorsOf(const EndTimeErrors& errors) {
  return {.average = errors.average,
          .median = errors.median,
          .p95 = errors.p95,
          .maximum = errors.maximum};
}

IntervalReport IntervalOf(const ValueInterval& value, double level) {
  return {.lower = value.lower, .upper = value.upper, .level = level};
}

int64_t Bytes(double bytes) { return std::llround(bytes); }

LinkReport ReportOf(const LinkCalibration& link, double level) {
  LinkReport report{.direction = std::string(ResourceName(link.direction)),
                    .unavailable_reason = link.unavailable_reason};
  if (!report.unavailable_reason.empty()) return report;
  report.bandwidth_bytes_per_second = link.bandwidth.bytes_per_second.value;
  report.bandwidth_interval = IntervalOf(link.bandwidth.bytes_per_second, level);
  report.stated_bytes_per_second = link.stated_bytes_per_second;
  report.start_seconds = link.bandwidth.start_seconds.value;
  report.start_interval = IntervalOf(link.bandwidth.start_seconds, level);
  report.busy_periods = link.bandwidth.periods;
  report.outlier_periods = link.bandwidth.outlier_periods;
  report.window_identified = link.window.is_identified;
  report.window_bytes = Bytes(link.window.window_bytes);
  report.window_lower_bytes = Bytes(link.window.lower_bytes);
  report.window_upper_bytes = Bytes(link.window.upper_bytes);
  report.largest_transfer_bytes = Bytes(link.window.largest_bytes);
  for (const DisciplineErrors& tried : link.disciplines) {
    const DisciplineName name = NameOf(tried.discipline);
    report.disciplines.push_back({.name = name.name,
                                  .plain_name = name.plain_name,
                                  .bandwidth_bytes_per_second = tried.setting.bytes_per_second,
                                  .window_bytes = Bytes(tried.setting.first_bytes),
                                  .quantum_bytes = Bytes(tried.setting.quantum_bytes),
                                  .errors = ErrorsOf(tried.errors)});
  }
  report.nearest = NameOf(link.nearest).name;
  report.with_start = ErrorsOf(link.with_start);
  return report;
}

ClockReport ReportOf(const ClockSkew& clocks) {
  return {.orders = clocks.orders(),
          .impossible_orders = clocks.impossible_orders(),
          .worst_seconds = 1e-9 * static_cast<double>(clocks.worst_ns()),
          .server_ahead_seconds = 1e-9 * static_cast<double>(clocks.server_ahead_ns()),
          .clamped_orders = clocks.clamped_orders(),
          .worst_clamped_seconds = 1e-9 * static_cast<double>(clocks.worst_clamped_ns())};
}

ReplayReport ReportOf(const ReplayCheck& check) {
  return {.recorded_step_seconds = check.recorded_step_seconds,
          .replayed_step_seconds = check.replayed_step_seconds,
          .fitted_transfer_seconds = check.fitted_transfer_seconds};
}

StepShares SharesOf(const Profile& profile) {
  const std::vector<Operation>& operations = profile.operations();
  int64_t step_ns = 0;
  int64_t computation_ns = 0;
  int64_t collectives_ns = 0;  // beside computation, too
  for (const RecordedStep& step : profile.steps()) {
    std::vector<TimeSpan> computing;
    std::vector<TimeSpan> any;
    for (size_t i = 0; i < operations.size(); ++i) {
      const TimeSpan span{.start_ns = step.start_ns[i], .end_ns = step.end_ns[i]};
      if (span.start_ns == span.end_ns) continue;
      any.push_back(span);
      if (operations[i].resource != Resource::kCollective) computing.push_back(span);
    }
    step_ns += *std::max_element(step.end_ns.begin(), step.end_ns.end());
    computation_ns += LengthOf(UnionOf(std::move(computing)));
    collectives_ns += LengthOf(UnionOf(std::move(any)));
  }
  if (step_ns == 0) return {};
  const auto share = [step_ns](int64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(step_ns);
  };
  const double busy = share(computation_ns);
  const double host = std::min(busy, profile.content().device_idle_fraction.value_or(0));
  return {.computation = busy - host,
          .host = host,
          .communication = share(collectives_ns - computation_ns),
          .gaps = share(step_ns - collectives_ns)};
}

// When what an operation waits for has ended; mean over the recorded steps.
double ReadySeconds(const Profile& profile, const Operation& operation) {
  double sum_ns = 0;
  for (const RecordedStep& step : profile.steps()) {
    int64_t ready_ns = 0;
    for (const int32_t before : operation.waiting_for)
      ready_ns = std::max(ready_ns, step.end_ns[static_cast<size_t>(before)]);
    sum_ns += static_cast<double>(ready_ns);
  }
  return 1e-9 * sum_ns / static_cast<double>(profile.steps().size());
}

LimitReport LimitOf(const CapRange& range) {
  return {.least_bytes = range.least, .most_bytes = range.most == INT64_MAX ? 0 : range.most};
}

class AllReduceReporter {
 public:
  explicit AllReduceReporter(const Profile& profile) : profile_(profile) {}

  AllReduceReport Report() {
    AllReduceReport report{.shares = SharesOf(profile_),
                           .knows_host = profile_.content().device_idle_fraction.has_value()};
    for (const Operation& operation : profile_.operations()) {
      if (SumsGradients(operation)) {
        bytes_.push_back(operation.size_bytes);
        whole_bytes_.push_back(ParameterBytesOf(profile_, operation.size_bytes));
        ready_seconds_.push_back(ReadySeconds(profile_, operation));
        is_parameter_ = is_parameter_ || !operation.parameter.empty();
      } else if (operation.resource == Resource::kCollective) {
        ++report.other_collectives;
      }
    }
    const std::optional<RecordedBuckets>& recorded = profile_.content().buckets;
    Fusion fusion;
    if (recorded) {
      fusion = *recorded;
      if (recorded->rule) fusion = *recorded->rule;
    }
    // Recorded sizes are of what was sent, limits of gradients.
    const bool by_size = std::holds_alternative<RecordedBuckets>(fusion);
    const std::vector<int32_t> counts = GradientsByBucket(by_size ? bytes_ : whole_bytes_, fusion);
    report.buckets = BucketsOf(counts);
    report.rule = RuleOf(counts);
    const absl::StatusOr<Scenario> usual = ResolveScenario(profile_, {.workers = 2});
    report.assumes_defaults =
        !recorded && usual.ok() && std::holds_alternative<Buckets>(usual->fusion());
    // Horovod has buffers of its own.
    if (report.rule.verdict != BucketRuleReport::Verdict::kUnknown &&
        profile_.framework() != kHorovodFramework)
      report.default_buckets = BucketsOf(GradientsByBucket(whole_bytes_, Buckets{}));
    return report;
  }

 private:
  std::vector<BucketReport> BucketsOf(const std::vector<int32_t>& counts) const {
    std::vector<BucketReport> buckets;
    size_t next = 0;
    for (const int32_t count : counts) {
      BucketReport& bucket = buckets.emplace_back(BucketReport{.gradients = count});
      for (int32_t i = 0; i < count; ++i, ++next) {
        bucket.size_bytes += bytes_[next];
        bucket.ready_seconds = std::max(bucket.ready_seconds, ready_seconds_[next]);
      }
    }
    return buckets;
  }

  BucketRuleReport RuleOf(const std::vector<int32_t>& counts) const {
    using Verdict = BucketRuleReport::Verdict;
    if (!profile_.content().buckets) return {.verdict = Verdict::kNoBuckets};
    // One all-reduce a bucket, of no parameter: the recording has the buckets alone.
    if (!is_parameter_ && counts.size() == bytes_.size()) return {.verdict = Verdict::kUnknown};
    const std::vector<size_t> sizes(counts.begin(), counts.end());
    const std::optional<CapRange> caps = CapsThatMake(whole_bytes_, sizes);
    if (sizes.empty() || !caps) return {.verdict = Verdict::kNotByRule};
    const bool is_default = counts == GradientsByBucket(whole_bytes_, Buckets{});
    return {.verdict = is_default ? Verdict::kByDefault : Verdict::kOtherLimits,
            .first = LimitOf(FirstLimitsThatMake(whole_bytes_, sizes)),
            .cap = LimitOf(*caps)};
  }

  const Profile& profile_;
  std::vector<int64_t> bytes_;        // of the all-reduces, in graph order
  std::vector<int64_t> whole_bytes_;  // of their gradients, which compressed ones are shares of
  std::vector<double> ready_seconds_;
  bool is_parameter_ = false;  // one of them at least is known to carry one
};

absl::StatusOr<Profile> Checked(const v1::Profile& recording) {
  return Profile::Create(FromWire(recording).draft);
}

}  // namespace

absl::StatusOr<RecordingReport> ReportRecording(const v1::Profile& recording) {
  const absl::StatusOr<Profile> profile = Checked(recording);
  if (!profile.ok()) return profile.status();
  const absl::StatusOr<ReplayCheck> replay = CheckReplay(*profile, NeverStop);
  if (!replay.ok()) return replay.status();
  if (profile->has_collectives()) {
    return RecordingReport{.replay = ReportOf(*replay),
                           .all_reduce = AllReduceReporter(*profile).Report()};
  }
  const absl::StatusOr<Calibration> calibration = Calibrate(*profile, kLevel, NeverStop);
  if (!calibration.ok()) return calibration.status();
  RecordingReport report{.replay = ReportOf(*replay), .clocks = ReportOf(calibration->clocks)};
  const std::vector<Operation>& operations = profile->operations();
  if (std::any_of(operations.begin(), operations.end(), [](const Operation& operation) {
        return operation.resource == Resource::kDownlink;
      })) {
    absl::StatusOr<RecordedOrders> orders = CheckRecordedOrders(*profile, NeverStop);
    if (!orders.ok()) return orders.status();
    report.orders = RecordedOrderReport{.unique_orders = orders->unique_orders,
                                        .step_seconds = std::move(orders->step_seconds),
                                        .efficiencies = std::move(orders->efficiencies),
                                        .r_squared = orders->r_squared};
  }
  for (const LinkCalibration* link : {&calibration->downlink, &calibration->uplink})
    report.links.push_back(ReportOf(*link, kLevel));
  return report;
}

absl::StatusOr<std::vector<v1::ParsingMeasurement>> LoneTransfers(const v1::Profile& recording) {
  const absl::StatusOr<Profile> profile = Checked(recording);
  if (!profile.ok()) return profile.status();
  const absl::StatusOr<std::vector<ParsingMeasurement>> measured =
      MeasureLoneTransfers(*profile, NeverStop);
  if (!measured.ok()) return measured.status();
  std::vector<v1::ParsingMeasurement> measurements(measured->size());
  for (size_t i = 0; i < measurements.size(); ++i) {
    measurements[i].set_size_bytes((*measured)[i].size_bytes);
    measurements[i].set_seconds((*measured)[i].seconds);
  }
  return measurements;
}

}  // namespace stepcast::server
