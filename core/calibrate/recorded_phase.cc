#include "core/calibrate/recorded_phase.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "core/calibrate/measured_line.h"
#include "core/calibrate/robust_statistics.h"

namespace stepcast {

RecordedPhase PhaseOf(const Profile& profile, const RecordedStep& step, Resource direction,
                      RequestOrder order) {
  const ParsingOverhead& parsing = profile.platform().parsing_overhead;
  RecordedPhase phase;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    const Operation& operation = profile.operations()[i];
    if (operation.resource != direction) continue;
    const auto size = static_cast<double>(operation.size_bytes);
    const auto start = static_cast<double>(step.start_ns[i]);
    const auto at_hand = static_cast<double>(step.end_ns[i]);
    // An overhead that is claimed too high must not end a transfer before it began.
    const double parsed =
        std::min(1e9 * (parsing.seconds_per_byte * size + parsing.seconds), at_hand - start);
    phase.push_back({.operation = static_cast<int32_t>(i),
                     .size_bytes = size,
                     .start_ns = start,
                     .end_ns = at_hand - parsed,
                     .parsing_ns = parsed});
  }
  const bool by_end = order == RequestOrder::kRecordedEnd;
  std::sort(phase.begin(), phase.end(),
            [by_end](const RecordedTransfer& a, const RecordedTransfer& b) {
              return std::make_tuple(a.start_ns, by_end ? a.end_ns : 0.0, a.operation) <
                     std::make_tuple(b.start_ns, by_end ? b.end_ns : 0.0, b.operation);
            });
  return phase;
}

std::vector<BusyPeriod> BusyPeriodsOf(std::span<const RecordedTransfer> phase) {
  std::vector<BusyPeriod> periods;
  for (size_t i = 0; i < phase.size(); ++i) {
    if (periods.empty() || phase[i].start_ns > periods.back().end_ns) {
      periods.push_back({.first = i, .start_ns = phase[i].start_ns, .end_ns = phase[i].end_ns});
    }
    BusyPeriod& period = periods.back();
    ++period.count;
    period.bytes += phase[i].size_bytes;
    period.end_ns = std::max(period.end_ns, phase[i].end_ns);
  }
  return periods;
}

namespace {

constexpr double kMinShareOfLargest = 0.25;
// The median distance of a line through a period's ends, as a share of the period, and how far it
// may be above what the whole period shows.
constexpr double kMaxBend = 0.01;
constexpr double kMaxAboveWhole = 1.1;
constexpr size_t kFewestForLine = 4;
constexpr size_t kMaxPoints = 200;

// The speed of one period.
struct PeriodSpeed {
  double seconds_per_byte = 0;
  bool is_whole = false;
};

// Bytes ended over seconds, by end; of many transfers as many as kMaxPoints, evenly chosen.
std::vector<Measurement> Progress(std::span<const RecordedTransfer> transfers, double start_ns) {
  std::vector<RecordedTransfer> by_end(transfers.begin(), transfers.end());
  std::sort(by_end.begin(), by_end.end(), [](const RecordedTransfer& a, const RecordedTransfer& b) {
    return a.end_ns < b.end_ns;
  });
  std::vector<Measurement> progress;
  const size_t stride = 1 + by_end.size() / kMaxPoints;
  double bytes = 0;
  for (size_t i = 0; i < by_end.size(); ++i) {
    bytes += by_end[i].size_bytes;
    if ((by_end.size() - 1 - i) % stride == 0)
      progress.push_back({.x = bytes, .y = 1e-9 * (by_end[i].end_ns - start_ns)});
  }
  return progress;
}

PeriodSpeed SpeedOf(const BusyPeriod& period, std::span<const RecordedTransfer> phase) {
  const double seconds = 1e-9 * (period.end_ns - period.start_ns);
  const PeriodSpeed whole{.seconds_per_byte = seconds / period.bytes, .is_whole = true};
  if (period.count < kFewestForLine) return whole;
  const std::vector<Measurement> progress =
      Progress(phase.subspan(period.first, period.count), period.start_ns);
  const MeasuredLine line = FitRobustly(progress, LineShape::kFree, 0.5);
  const bool is_line = line.residual < kMaxBend * seconds &&
                       line.line.slope <= whole.seconds_per_byte &&
                       line.line.slope * kMaxAboveWhole >= whole.seconds_per_byte;
  return is_line ? PeriodSpeed{.seconds_per_byte = line.line.slope} : whole;
}

double StartOf(const BusyPeriod& period, std::span<const RecordedTransfer> phase,
               double seconds_per_byte) {
  std::vector<double> lost;
  for (const Measurement& m : Progress(phase.subspan(period.first, period.count), period.start_ns))
    lost.push_back(m.y - seconds_per_byte * m.x);
  return std::max(0.0, Median(std::move(lost)));
}

MeasuredLine Mean(const std::vector<double>& values, double level) {
  std::vector<Measurement> measurements;
  measurements.reserve(values.size());
  for (const double value : values) measurements.push_back({.x = 1, .y = value});
  if (values.size() > 1) return FitRobustly(measurements, LineShape::kLevel, level);
  return {.line = {.offset = values.front()}};
}

struct PeriodOfPhase {
  BusyPeriod period;
  std::span<const RecordedTransfer> phase;
};

std::vector<PeriodOfPhase> LargePeriods(std::span<const RecordedPhase> phases) {
  std::vector<PeriodOfPhase> periods;
  double largest = 0;
  for (const RecordedPhase& phase : phases) {
    for (const BusyPeriod& period : BusyPeriodsOf(phase)) {
      if (period.end_ns <= period.start_ns) continue;
      periods.push_back({.period = period, .phase = phase});
      largest = std::max(largest, period.bytes);
    }
  }
  std::erase_if(periods, [largest](const PeriodOfPhase& of) {
    return of.period.bytes < kMinShareOfLargest * largest;
  });
  return periods;
}

}  // namespace

absl::StatusOr<std::optional<PayloadBandwidth>> MeasurePayloadBandwidth(
    std::span<const RecordedPhase> phases, double level, StopCheck stop) {
  const std::vector<PeriodOfPhase> periods = LargePeriods(phases);
  if (periods.empty()) return std::optional<PayloadBandwidth>();
  PayloadBandwidth bandwidth{.periods = static_cast<int>(periods.size())};
  std::vector<double> speeds;
  for (const PeriodOfPhase& of : periods) {
    if (absl::Status status = stop(); !status.ok()) return status;
    const PeriodSpeed speed = SpeedOf(of.period, of.phase);
    speeds.push_back(speed.seconds_per_byte);
    bandwidth.whole_periods += speed.is_whole ? 1 : 0;
  }
  const MeasuredLine mean = Mean(speeds, level);
  const double seconds_per_byte = mean.line.offset;
  // Beyond half of the value the reciprocal would be no interval any more.
  const double half_width = std::min(mean.half_width.offset, seconds_per_byte / 2);
  bandwidth.outlier_periods = mean.outliers;
  bandwidth.bytes_per_second = {.value = 1 / seconds_per_byte,
                                .lower = 1 / (seconds_per_byte + half_width),
                                .upper = 1 / (seconds_per_byte - half_width)};
  std::vector<double> starts;
  for (const PeriodOfPhase& of : periods) {
    if (absl::Status status = stop(); !status.ok()) return status;
    starts.push_back(StartOf(of.period, of.phase, seconds_per_byte));
  }
  const MeasuredLine start = Mean(starts, level);
  bandwidth.start_seconds = {.value = start.line.offset,
                             .lower = std::max(0.0, start.line.offset - start.half_width.offset),
                             .upper = start.line.offset + start.half_width.offset};
  return std::optional<PayloadBandwidth>(bandwidth);
}

}  // namespace stepcast
