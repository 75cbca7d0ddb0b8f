// A report on a recorded profile: how well the model explains its steps, its links and its clocks.
//
// Computed in this process, of a profile as it is on the wire. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "stepcast/v1/calibration.pb.h"
#include "stepcast/v1/profile.pb.h"

namespace stepcast::server {

// Times of one worker's step, in seconds; core/predict/replay_check.h says what they mean.
struct ReplayReport {
  double recorded_step_seconds = 0;
  double replayed_step_seconds = 0;
  double fitted_transfer_seconds = 0;  // 0: the replay is not faster than the recording
};

// An interval that holds the value with the probability `level`.
struct IntervalReport {
  double lower = 0;
  double upper = 0;
  double level = 0;
};

// A share of the time from the start of a phase to a transfer's recorded end;
// core/calibrate/link_replay.h.
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
  IntervalReport bandwidth_interval;
  double stated_bytes_per_second = 0;
  double start_seconds = 0;
  IntervalReport start_interval;
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

// Shares of the recorded steps; they add up to 1.
struct StepShares {
  double computation = 0;
  double host = 0;           // the device waits for its host, as the profile says
  double communication = 0;  // a collective was under way, and nothing computed
  double gaps = 0;           // nothing was recorded
};

// All-reduces that are sent as one.
struct BucketReport {
  int64_t size_bytes = 0;
  int64_t gradients = 0;     // operations that it carries
  double ready_seconds = 0;  // the last of them, from the beginning of the step; mean over steps
};

struct LimitReport {
  int64_t least_bytes = 0;
  int64_t most_bytes = 0;  // 0: none
};

// The limits by which DistributedDataParallel's rule makes the recorded buckets.
struct BucketRuleReport {
  enum class Verdict {
    kNoBuckets,    // each all-reduce is sent by itself
    kByDefault,    // 1 MiB first, then 25
    kOtherLimits,  // by `first` and `cap`
    kNotByRule,    // of these gradients no limits make them
    kUnknown,      // the gradients within were not recorded
  };

  Verdict verdict = Verdict::kNoBuckets;
  LimitReport first;  // of the first bucket; those and `cap` of kByDefault and kOtherLimits
  LimitReport cap;    // of every other
};

// Report on a job whose workers meet in collectives.
struct AllReduceReport {
  StepShares shares;
  bool knows_host = false;            // the profile says for how long its device waits
  std::vector<BucketReport> buckets;  // as the profile sends them, in order
  BucketRuleReport rule;
  std::vector<BucketReport> default_buckets;  // by the rule's defaults; empty: kUnknown
  bool assumes_defaults = false;  // of kNoBuckets, as predictions do unless they are told others
  int64_t other_collectives = 0;
};

// The order of each recorded step's downloads, and the step that it made;
// core/predict/order_consistency.h. Lists are by step.
struct RecordedOrderReport {
  int32_t unique_orders = 0;
  std::vector<double> step_seconds;
  std::vector<double> efficiencies;
  std::optional<double> r_squared;
};

struct RecordingReport {
  ReplayReport replay;
  ClockReport clocks;
  std::vector<LinkReport> links;              // with parameter servers
  std::optional<RecordedOrderReport> orders;  // likewise, where something is downloaded
  std::optional<AllReduceReport> all_reduce;  // with collectives
};

// Cost: some forty replays of every recorded step, and up to 5 s for 100,000 operations in 100
// steps. Failure: INVALID_ARGUMENT, reason PROFILE_INVALID; where the simulation fails.
absl::StatusOr<RecordingReport> ReportRecording(const v1::Profile& recording);

// The transfers that nothing held up, and what they took beyond their bytes' time;
// core/calibrate/parsing_overhead_fit.h. Failure: INVALID_ARGUMENT, reason PROFILE_INVALID.
absl::StatusOr<std::vector<v1::ParsingMeasurement>> LoneTransfers(const v1::Profile& recording);

}  // namespace stepcast::server
