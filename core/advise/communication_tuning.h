// Advice on an all-reduce job's communication: how its gradients should be grouped into
// collectives, what that gains with which certainty, and how far it is from the best there could
// be.
//
// Sources: PyTorch's compute_bucket_assignment_by_size (DDP_BUCKETS); Horovod 0.28's controller
// (HOROVOD); Shi et al., "MG-WFBP", INFOCOM 2019; Peng et al., "ByteScheduler", SOSP 2019; Liu et
// al., "LIBRA", INFOCOM 2023. Every method's grouping is judged by the simulation of the whole job.
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/advise/communication_query.h"
#include "core/advise/method_trials.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/predict/certainty.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The gradients that one collective carries.
struct TunedGroup {
  std::vector<std::string> operations;  // the profile's, in graph order
  int64_t size_bytes = 0;
  int32_t threads = 0;  // with contention, else 0
};

// The gain of one strategy over another: how many times as many steps per second, less 1.
struct Gain {
  double mean = 0;
  // From the runs of both with the same random choices, one by one.
  Interval confidence_interval;
  // True if it may be none: the interval holds 0, or it is below kLeastGain either way.
  bool is_none = true;
};

// The gain of runs over `others` with the same random choices, one by one. `own` and `of_others`:
// the intervals of the means, of which the gain's is made where there is one run, as of independent
// errors of their logarithms.
Gain GainOf(const std::vector<double>& runs, const std::vector<double>& others, const Interval& own,
            const Interval& of_others, double confidence_level);

struct TunedStrategy {
  TuningMethod method = TuningMethod::kAsRecorded;
  // Gradients that go together; with HOROVOD, that most often did.
  std::vector<TunedGroup> groups;
  Scenario scenario;      // with this strategy: what PredictThroughput would be asked
  Prediction prediction;  // speedup and scaling_efficiency are not told
  // Steps per second of its runs, as of PointSet::RunsOf.
  std::vector<double> runs;
  Gain gain;            // over kAsRecorded
  std::string setting;  // as the user would write it; empty: nothing to be set, or nothing is
                        // known of the gradients. Threads are in no setting
  // No step is shorter of any grouping; of kByteScheduler, which lets communication go on beside
  // the next forward pass: than one worker's computation, or than what the bytes take.
  double lower_bound_seconds = 0;
  double gap = 0;  // step over lower_bound_seconds, less 1
  // LIBRA's backward time of these groups (BackwardTimeOf), from the first computation that a
  // gradient waits for; none of HOROVOD and BYTESCHEDULER, and of other than rings one at a time.
  std::optional<double> backward_seconds;
  // LIBRA's guarantee: backward_seconds is at most so many times the least of any groups and
  // threads; none where its assumptions do not hold, which `why_no_guarantee` says in words.
  std::optional<double> guarantee;
  std::string why_no_guarantee;
};

// The advice for one number of workers.
struct Tuning {
  int32_t workers = 0;
  // One a method, as asked for. kAsRecorded is simulated even if it was not asked for, and is the
  // last one where no other is as fast.
  std::vector<TunedStrategy> strategies;
  size_t chosen = 0;   // of strategies
  Settled settled;     // that the chosen one is the fastest of them
  std::string reason;  // one sentence
  // No grouping's mean step is shorter where steps end with their collectives: one worker's
  // computation, and the soonest end of the last collective, with gradients that are ready as they
  // are on the slowest worker in the mean.
  double lower_bound_seconds = 0;
  std::vector<BucketCapPoint> curve;  // with kDdpBuckets, by ascending cap
};

struct TuningAnswer {
  std::vector<Tuning> tunings;  // one a number of workers, in the order asked for
  bool has_counts = false;      // they were asked for as a list
  // True if what was chosen for the first number of workers is not the best for another one.
  bool advice_changes = false;
  std::vector<LeftOutMethod> left_out;  // of the query
  std::vector<Warning> warnings;        // of the predictions of strategies, by method
  SimulationStatistics simulation;
};

// `search_stop`: what kSearch asks instead of `stop`, to leave time for the predictions; where it
// says TimeBudgetSpent() the best grouping so far is the answer. REQUIRES: the query was resolved
// for this profile. Cost: a short simulation (PointSet::TryAlone) a cap and candidate, and one in
// full a method. Failure: as PredictThroughput.
absl::StatusOr<TuningAnswer> OptimizeCommunication(const Profile& profile, const TuningQuery& query,
                                                   StopCheck stop,
                                                   const Executor& executor = InOrder(),
                                                   const KnownRuns& known = {});

// "+12.5 %".
std::string PercentText(double fraction);

}  // namespace stepcast
