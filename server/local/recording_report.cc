#include "server/local/recording_report.h"

#include <cmath>

#include "core/base/stop_check.h"
#include "core/calibrate/calibration.h"
#include "core/calibrate/lone_transfers.h"
#include "core/model/profile.h"
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

absl::StatusOr<Profile> Checked(const v1::Profile& recording) {
  return Profile::Create(FromWire(recording).draft);
}

}  // namespace

absl::StatusOr<RecordingReport> ReportRecording(const v1::Profile& recording) {
  const absl::StatusOr<Profile> profile = Checked(recording);
  if (!profile.ok()) return profile.status();
  const absl::StatusOr<ReplayCheck> replay = CheckReplay(*profile, NeverStop);
  if (!replay.ok()) return replay.status();
  const absl::StatusOr<Calibration> calibration = Calibrate(*profile, kLevel, NeverStop);
  if (!calibration.ok()) return calibration.status();
  RecordingReport report{.replay = ReportOf(*replay), .clocks = ReportOf(calibration->clocks)};
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
