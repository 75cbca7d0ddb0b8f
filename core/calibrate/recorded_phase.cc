#include "core/calibrate/recorded_phase.h"

#include <algorithm>
#include <tuple>

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

}  // namespace stepcast
