// The time that computations take with another batch, told by two recordings, and the steps of
// computations that take another time than recorded.
//
// Threads: pure functions; values.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/model/fault_list.h"
#include "core/model/job_change.h"
#include "core/model/profile.h"

namespace stepcast {

// By operation: its time with another batch over the recorded one.
struct BatchGrowth {
  std::vector<double> factors;  // not below 0; of what no worker computes 1
  double all = 1;               // of all computations together
  DrawnMean mean;               // of the time of all computations
  std::string told;             // a sentence on both recordings, with the interval of `all`
};

// Faults of another recording of the same job, under that path: its batch must be another, and of
// the computation of each at least half must have names that the other has, too.
void CheckSecondRecording(const Profile& profile, const Profile& second, const char* path,
                          FaultList& faults);

// An operation of either name takes c0 + c1 x batch by the means of both (not below 0), one that
// only the first has as much longer as all others together. REQUIRES: CheckSecondRecording found
// nothing. Cost: linear in the recorded times.
BatchGrowth GrowthByTwoRecordings(const Profile& profile, const Profile& second, double batch_size);

// A recorded step whose computations take their factor times as long. A computation begins when
// what came before it has ended: while one runs, time passes by its factor (of several at once by
// their mean), else as recorded; what others do takes its own time.
RecordedStep WarpedStep(const Profile& profile, const RecordedStep& step,
                        const std::vector<double>& factors);

// Each recorded step of the draft, of every worker, as `rewrite` makes it of what it was.
template <typename Rewrite>
void RewriteSteps(ProfileDraft& draft, const Rewrite& rewrite) {
  for (RecordedStep& step : draft.steps) step = rewrite(step);
  if (!draft.recording.has_value()) return;
  for (WorkerRecording& worker : draft.recording->workers) {
    for (RecordedStep& step : worker.steps) step = rewrite(step);
  }
}

}  // namespace stepcast
