// What a recording says about its links: what `profile check` says beyond "valid" and its replay.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "stepcast/calibration.h"
#include "stepcast/prediction.h"

namespace stepcast::client {

// A share of the time from the start of a phase to a transfer's recorded end;
// core/calibrate/end_time_errors.h.
struct EndErrorReport {
  double average = 0;
  double median = 0;
  double p95 = 0;
  double maximum = 0;
};

struct DisciplineReport {
  std::string name;        // WHOLE_STREAM and so on
  std::string plain_name;  // for people
  double bandwidth_bytes_per_second = 0;
  int64_t window_bytes = 0;   // 0: streams are sent whole
  int64_t quantum_bytes = 0;  // 0: what is left goes in one service
  EndErrorReport errors;
};

// core/calibrate/calibration.h says what these mean.
struct LinkReport {
  std::string direction;           // DOWNLINK or UPLINK
  std::string unavailable_reason;  // not empty: nothing below is filled in
  double bandwidth_bytes_per_second = 0;
  ConfidenceInterval bandwidth_interval;
  double stated_bytes_per_second = 0;
  double start_seconds = 0;
  ConfidenceInterval start_interval;
  int32_t busy_periods = 0;
  int32_t outlier_periods = 0;
  bool window_identified = false;
  int64_t window_bytes = 0;
  int64_t window_lower_bytes = 0;
  int64_t window_upper_bytes = 0;
  int64_t largest_transfer_bytes = 0;
  std::vector<DisciplineReport> disciplines;
  std::string nearest;  // one of their names
  EndErrorReport with_start;
};

struct ClockReport {
  int64_t orders = 0;
  int64_t impossible_orders = 0;
  double worst_seconds = 0;
  double server_ahead_seconds = 0;
  int64_t clamped_orders = 0;
  double worst_clamped_seconds = 0;
};

struct RecordingReport {
  ClockReport clocks;
  std::vector<LinkReport> links;
};

// In this process. `bytes`: as in a file, in any encoding. Cost: up to 5 s for 100,000 operations
// in 100 steps. Failure: as ParseProfile; INVALID_ARGUMENT, reason PROFILE_INVALID.
absl::StatusOr<RecordingReport> ReportRecording(std::string_view bytes);

// What transfers that nothing held up took beyond their bytes' time;
// core/calibrate/lone_transfers.h. Failure: as above.
absl::StatusOr<std::vector<ParsingMeasurement>> LoneTransfers(std::string_view bytes);

}  // namespace stepcast::client
