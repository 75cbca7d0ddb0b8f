// A replay of the streams of one worker on a link that nobody else uses, and the flow control
// window by which it best explains when a recording's transfers ended.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/calibrate/recorded_phase.h"

namespace stepcast {

// A replay of the streams of one worker on a link that nobody else uses: the times at which they
// would end.
//
// The engine's rules for one worker and one server (ICPE 2020, 3.2.2, Fig. 12), without the rest of
// the job, so that many settings can be tried.
// Streams join a queue when they are requested, first come first served; a first service carries up
// to `first_bytes`, each later one up to `quantum_bytes`; what is left rejoins at the back, behind
// what was requested until then.
// Held equal to the engine over random cases.
// Threads: none.
struct LinkSetting {
  double bytes_per_second = 0;
  double first_bytes = 0;    // 0: streams are sent whole
  double quantum_bytes = 0;  // 0: all the rest in one service
  double start_seconds = 0;  // before what finds the link idle
  bool by_recorded_end =
      false;  // whole streams, of those that wait the one that was recorded to end first

  // Services of a stream.
  int64_t ServicesOf(double size_bytes) const;
};

// A replayer of phases, one after the other, with room that is kept.
class LinkReplay {
 public:
  // The times at which the data of the transfers is at hand, in the phase's order; valid until the
  // next call.
  // Cost: O(services), with by_recorded_end O(n log n).
  // REQUIRES: as PhaseOf gives it; bytes_per_second > 0.
  std::span<const double> AtHand(std::span<const RecordedTransfer> phase,
                                 const LinkSetting& setting);

 private:
  struct Stream {
    size_t index = 0;
    double left = 0;
    bool is_begun = false;
  };

  void ServeRoundRobin(std::span<const RecordedTransfer> phase, const LinkSetting& setting);
  void ServeByRecordedEnd(std::span<const RecordedTransfer> phase, const LinkSetting& setting);

  std::vector<double> ends_;
  std::vector<Stream> queue_;  // of streams that wait, from some position on
  std::vector<size_t> waiting_;
};

// The errors of modelled ends of transfers against recorded ones.
//
// The error of a transfer is |modelled end - recorded end| over the time from the start of its
// phase, the first request of its direction in its step, to its recorded end.
// Average, median, 95th percentile and maximum are as in Table 1 of ICPE 2020.
// Threads: pure functions.
struct EndTimeErrors {
  double average = 0;
  double median = 0;
  double p95 = 0;
  double maximum = 0;
  // Mean of e / (e + 2 %): what searches minimise. All transfers count in it, unlike in the median,
  // and none much more than another, unlike in the mean.
  double distance = 0;
  int64_t transfers = 0;
};

// Over all phases. Transfers that were recorded to end with the phase's start are left out. Cost:
// as LinkReplay, and linear in transfers. Failure: what `stop` returns.
absl::StatusOr<EndTimeErrors> MeasureEndTimes(std::span<const RecordedPhase> phases,
                                              const LinkSetting& setting, StopCheck stop);

// Median of what the transfers took since the start of their phase, as recorded over as modelled:
// above 1 the link was slower than the setting's. 1 where there is none.
absl::StatusOr<double> MedianStretch(std::span<const RecordedPhase> phases,
                                     const LinkSetting& setting, StopCheck stop);

// The distance alone.
absl::StatusOr<double> EndTimeDistance(std::span<const RecordedPhase> phases,
                                       const LinkSetting& setting, StopCheck stop);

// The flow control window that best explains when a recording's transfers ended.
//
// Source: ICPE 2020, 3.2.2, which reads the window from captured packets; here it is found from the
// ends alone. How far the model is from a recording jumps where the window passes a tensor's size
// and changes smoothly between, so candidates are the sizes, powers of 1.25 between them, and finer
// ones around the best. Beyond the largest tensor all windows are the same, and none: there the
// recording cannot tell. Threads: pure functions.

// The load of a stream's services after the first one.
enum class QuantumRule : uint8_t {
  kRest,           // all that is left: gRPC before 1.51
  kWindowAndMore,  // the window and 1 MiB: gRPC from 1.51 on
  kSame,           // as much as the first: equal quanta
};

inline constexpr double kQuantumBeyondWindowBytes = 1'048'576;

// The setting with this window, 0: none.
LinkSetting WithWindow(LinkSetting setting, double window_bytes, QuantumRule rule);

struct WindowEstimate {
  // True if some window explains the ends clearly better than streams that are sent whole.
  bool is_identified = false;
  double window_bytes = 0;  // 0 where it is not identified
  // Windows that explain them about as well. Where it is not identified: from the least one above
  // which all do.
  double lower_bytes = 0;
  double upper_bytes = 0;    // the largest transfer: no end
  double largest_bytes = 0;  // of all transfers
  double distance = 0;       // EndTimeErrors::distance, over the phases looked at
};

// Looks at all phases up to 30,000 transfers, else at as many of them, evenly chosen, one at least.
// Cost: some 150 replays of those. Failure: what `stop` returns. REQUIRES: there are transfers;
// bytes_per_second > 0.
absl::StatusOr<WindowEstimate> FindWindow(std::span<const RecordedPhase> phases,
                                          const LinkSetting& setting, QuantumRule rule,
                                          StopCheck stop);

// True if a distance is as good as the best one, given what chance and a model's small faults
// change.
bool IsAboutAsNear(double distance, double best);

}  // namespace stepcast
