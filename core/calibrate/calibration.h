// The calibration of links from a recording of one worker: bandwidth, window, clocks, and how well
// the model of multiplexing explains it.
//
// Source: ICPE 2020, 3.2.2 and Table 1.
// Each direction by itself: its transfers are requested when they were recorded to be and replayed
// on a link of the bandwidth that the recording itself shows, or of one up to 3 % off that is
// nearer, under each discipline; the rest of the step plays no part.
// Several servers share a worker's own link, which this does not know: only one server.
// Threads: pure functions of their arguments.
// core/calibrate/README.md says what was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/calibrate/clock_skew.h"
#include "core/calibrate/link_replay.h"
#include "core/calibrate/recorded_phase.h"
#include "core/model/profile.h"

namespace stepcast {

// The disciplines by which the streams of one worker's connection may share it, in the words of a
// scenario's Multiplexing.
// Transfers recorded to be requested at the same instant go in graph order or in that of their
// ends, whichever is nearer.
enum class Discipline : uint8_t {
  kProfile,        // the profile's window and bandwidth, in graph order
  kWholeStream,    // whole streams in the order of their requests
  kRoundRobin,     // the meaning of ROUND_ROBIN: 64 KiB, then a quantum of 1 MiB at a time
  kWindow,         // the window found, the rest at once
  kBoundedWindow,  // the window found, later services bounded by it and 1 MiB
  kEqualQuanta,    // round robin of equal quanta, of the size found
  kRecordedOrder,  // whole streams in the order in which they were recorded to end
};

struct DisciplineErrors {
  Discipline discipline = Discipline::kProfile;
  LinkSetting setting;
  EndTimeErrors errors;
};

// The calibration of one direction.
struct LinkCalibration {
  Resource direction = Resource::kDownlink;
  std::string unavailable_reason;  // not empty: nothing below is filled in
  PayloadBandwidth bandwidth;
  double stated_bytes_per_second = 0;             // by the profile
  WindowEstimate window;                          // with the rest at once
  std::vector<DisciplineErrors> disciplines;      // each once, in the enum's order
  Discipline nearest = Discipline::kWholeStream;  // the simplest that is about as near as the
                                                  // nearest; never kProfile
  EndTimeErrors with_start;  // the nearest one's, where what finds the link idle waits for
                             // bandwidth.start_seconds
};

struct Calibration {
  ClockSkew clocks;
  LinkCalibration downlink;
  LinkCalibration uplink;
  double confidence_level = 0;
};

// Cost: linear in operations and steps, and some 1,000 replays of 30,000 transfers: 5 s for 100,000
// operations in 100 steps. Failure: what `stop` returns. REQUIRES: 0 < confidence_level < 1.
absl::StatusOr<Calibration> Calibrate(const Profile& profile, double confidence_level,
                                      StopCheck stop);

}  // namespace stepcast
