#include "core/calibrate/calibration.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/calibrate/recorded_phase.h"
#include "core/model/scenario.h"

namespace stepcast {

namespace {

using Phases = std::vector<RecordedPhase>;

// Transfers of a direction; beyond them steps are left out, evenly.
constexpr size_t kMaxUsedTransfers = 1'000'000;
// A discipline's bandwidth is at most so many times the one measured, or as little below it.
constexpr double kMaxTuning = 1.03;

class LinkCalibrator {
 public:
  LinkCalibrator(const Profile& profile, Resource direction, StopCheck stop)
      : profile_(profile), stop_(stop) {
    link_.direction = direction;
  }

  absl::StatusOr<LinkCalibration> Calibrate(const ClockSkew& clocks, double level) {
    if (profile_.parameter_servers() > 1) {
      link_.unavailable_reason =
          absl::StrCat(profile_.parameter_servers(), " servers shared the worker's link");
      return std::move(link_);
    }
    if (absl::Status status = Collect(clocks); !status.ok()) return status;
    const absl::StatusOr<std::optional<PayloadBandwidth>> bandwidth =
        MeasurePayloadBandwidth(by_graph_, level, stop_);
    if (!bandwidth.ok()) return bandwidth.status();
    if (!bandwidth->has_value()) {
      link_.unavailable_reason = "no transfer was recorded to take any time";
      return std::move(link_);
    }
    link_.bandwidth = **bandwidth;
    link_.stated_bytes_per_second = profile_.platform().bandwidth_bytes_per_second;
    if (absl::Status status = TryAll(); !status.ok()) return status;
    return std::move(link_);
  }

 private:
  // The second order stays empty where nothing was requested at once: both are the same.
  absl::Status Collect(const ClockSkew& clocks) {
    absl::StatusOr<Phases> phases = PhasesIn(RequestOrder::kGraph, clocks);
    if (!phases.ok()) return phases.status();
    by_graph_ = *std::move(phases);
    const auto same_start = [](const RecordedTransfer& a, const RecordedTransfer& b) {
      return a.start_ns == b.start_ns;
    };
    const bool has_ties =
        std::any_of(by_graph_.begin(), by_graph_.end(), [&](const RecordedPhase& phase) {
          return std::adjacent_find(phase.begin(), phase.end(), same_start) != phase.end();
        });
    if (!has_ties) return absl::OkStatus();
    phases = PhasesIn(RequestOrder::kRecordedEnd, clocks);
    if (!phases.ok()) return phases.status();
    by_end_ = *std::move(phases);
    return absl::OkStatus();
  }

  absl::StatusOr<Phases> PhasesIn(RequestOrder order, const ClockSkew& clocks) const {
    const std::vector<Operation>& operations = profile_.operations();
    const auto transfers = static_cast<size_t>(std::count_if(
        operations.begin(), operations.end(),
        [&](const Operation& operation) { return operation.resource == link_.direction; }));
    Phases phases;
    if (transfers == 0) return phases;
    const std::vector<RecordedStep>& steps = profile_.steps();
    const size_t keep = std::clamp(kMaxUsedTransfers / transfers, size_t{1}, steps.size());
    for (size_t i = 0; i < keep; ++i) {
      if (absl::Status status = stop_(); !status.ok()) return status;
      phases.push_back(PhaseOf(profile_,
                               clocks.Corrected(profile_.content(), steps[i * steps.size() / keep]),
                               link_.direction, order));
    }
    return phases;
  }

  absl::Status TryAll() {
    const Platform& platform = profile_.platform();
    const LinkSetting whole{.bytes_per_second = link_.bandwidth.bytes_per_second.value};
    LinkSetting stated{.bytes_per_second = platform.bandwidth_bytes_per_second,
                       .first_bytes = static_cast<double>(platform.window_bytes)};
    LinkSetting recorded = whole;
    recorded.by_recorded_end = true;
    LinkSetting round_robin = whole;
    round_robin.first_bytes = static_cast<double>(kRoundRobinWindowBytes);
    round_robin.quantum_bytes = static_cast<double>(kRoundRobinQuantumBytes);
    absl::Status status = TryIn(by_graph_, Discipline::kProfile, stated);
    status.Update(Try(Discipline::kWholeStream, whole));
    status.Update(Try(Discipline::kRoundRobin, round_robin));
    status.Update(TryWindow(Discipline::kWindow, whole, QuantumRule::kRest));
    status.Update(TryWindow(Discipline::kBoundedWindow, whole, QuantumRule::kWindowAndMore));
    status.Update(TryWindow(Discipline::kEqualQuanta, whole, QuantumRule::kSame));
    status.Update(Try(Discipline::kRecordedOrder, recorded));
    if (!status.ok()) return status;
    return ChooseNearest();
  }

  absl::Status TryIn(const Phases& phases, Discipline discipline, const LinkSetting& setting) {
    const absl::StatusOr<EndTimeErrors> errors = MeasureEndTimes(phases, setting, stop_);
    if (!errors.ok()) return errors.status();
    std::vector<DisciplineErrors>& tried = link_.disciplines;
    if (tried.empty() || tried.back().discipline != discipline) {
      tried.push_back({.discipline = discipline, .setting = setting, .errors = *errors});
    } else if (errors->distance < tried.back().errors.distance) {
      tried.back() = {.discipline = discipline, .setting = setting, .errors = *errors};
    }
    return absl::OkStatus();
  }

  // The setting with the bandwidth, near the one measured, that makes the ends neither early nor
  // late; what it was where that is no nearer.
  absl::StatusOr<LinkSetting> Tuned(const Phases& phases, const LinkSetting& setting) const {
    const absl::StatusOr<double> stretch = MedianStretch(phases, setting, stop_);
    if (!stretch.ok()) return stretch.status();
    LinkSetting tuned = setting;
    const double measured = link_.bandwidth.bytes_per_second.value;
    tuned.bytes_per_second = std::clamp(setting.bytes_per_second / *stretch, measured / kMaxTuning,
                                        measured * kMaxTuning);
    const absl::StatusOr<double> before = EndTimeDistance(phases, setting, stop_);
    const absl::StatusOr<double> after = EndTimeDistance(phases, tuned, stop_);
    if (!before.ok()) return before.status();
    if (!after.ok()) return after.status();
    return *after < *before ? tuned : setting;
  }

  absl::Status TryTuned(const Phases& phases, Discipline discipline, const LinkSetting& setting) {
    const absl::StatusOr<LinkSetting> tuned = Tuned(phases, setting);
    return tuned.ok() ? TryIn(phases, discipline, *tuned) : tuned.status();
  }

  absl::Status Try(Discipline discipline, const LinkSetting& setting) {
    if (absl::Status status = TryTuned(by_graph_, discipline, setting);
        !status.ok() || by_end_.empty())
      return status;
    return TryTuned(by_end_, discipline, setting);
  }

  // Twice: the bandwidth is tuned to the first window found, since one that is off a little makes
  // up for another window.
  absl::Status TryWindow(Discipline discipline, const LinkSetting& whole, QuantumRule rule) {
    for (const Phases* phases : {&by_graph_, &by_end_}) {
      if (phases->empty()) continue;
      LinkSetting setting = whole;
      absl::StatusOr<WindowEstimate> found = FindWindow(*phases, setting, rule, stop_);
      if (!found.ok()) return found.status();
      const absl::StatusOr<LinkSetting> tuned =
          Tuned(*phases, WithWindow(setting, found->window_bytes, rule));
      if (!tuned.ok()) return tuned.status();
      if (tuned->bytes_per_second != whole.bytes_per_second) {
        setting.bytes_per_second = tuned->bytes_per_second;
        found = FindWindow(*phases, setting, rule, stop_);
        if (!found.ok()) return found.status();
      }
      const bool is_first = phases == &by_graph_;
      if (rule == QuantumRule::kRest && (is_first || found->distance < link_.window.distance))
        link_.window = *found;
      if (absl::Status status =
              TryTuned(*phases, discipline, WithWindow(setting, found->window_bytes, rule));
          !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  absl::Status ChooseNearest() {
    double least = 1;
    for (const DisciplineErrors& tried : link_.disciplines) {
      if (tried.discipline != Discipline::kProfile) least = std::min(least, tried.errors.distance);
    }
    const auto nearest = std::find_if(link_.disciplines.begin(), link_.disciplines.end(),
                                      [least](const DisciplineErrors& tried) {
                                        return tried.discipline != Discipline::kProfile &&
                                               IsAboutAsNear(tried.errors.distance, least);
                                      });
    link_.nearest = nearest->discipline;
    LinkSetting delayed = nearest->setting;
    delayed.start_seconds = link_.bandwidth.start_seconds.value;
    delayed.bytes_per_second = link_.bandwidth.bytes_per_second.value;
    for (const Phases* phases : {&by_graph_, &by_end_}) {
      if (phases->empty()) continue;
      const absl::StatusOr<EndTimeErrors> errors = MeasureEndTimes(*phases, delayed, stop_);
      if (!errors.ok()) return errors.status();
      if (phases == &by_graph_ || errors->distance < link_.with_start.distance)
        link_.with_start = *errors;
    }
    return absl::OkStatus();
  }

  const Profile& profile_;
  const StopCheck stop_;
  LinkCalibration link_;
  Phases by_graph_;
  Phases by_end_;
};

}  // namespace

absl::StatusOr<Calibration> Calibrate(const Profile& profile, double confidence_level,
                                      StopCheck stop) {
  absl::StatusOr<ClockSkew> clocks = ClockSkew::Measure(profile.content(), stop);
  if (!clocks.ok()) return clocks.status();
  Calibration calibration{.clocks = *std::move(clocks), .confidence_level = confidence_level};
  absl::StatusOr<LinkCalibration> downlink = LinkCalibrator(profile, Resource::kDownlink, stop)
                                                 .Calibrate(calibration.clocks, confidence_level);
  if (!downlink.ok()) return downlink.status();
  calibration.downlink = *std::move(downlink);
  absl::StatusOr<LinkCalibration> uplink = LinkCalibrator(profile, Resource::kUplink, stop)
                                               .Calibrate(calibration.clocks, confidence_level);
  if (!uplink.ok()) return uplink.status();
  calibration.uplink = *std::move(uplink);
  return calibration;
}

}  // namespace stepcast
