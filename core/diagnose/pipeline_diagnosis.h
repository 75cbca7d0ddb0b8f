// The diagnosis of a job whose replicas are pipelines.
//
// Method: as of other jobs each change is simulated with the same random choices. Some change the
// scenario, others what a recording says of stages, and so bound what is to be had of a part of the
// step: with equal stages, or with transfers or reductions that are free, no job is faster.
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include "absl/status/statusor.h"

#include "core/diagnose/diagnosis.h"

namespace stepcast {

// Diagnoses as DiagnoseJob does. REQUIRES: the scenario has a pipeline. A time budget that is spent
// once the job as it is was simulated leaves out the changes that are left.
absl::StatusOr<Diagnosis> DiagnosePipeline(const Profile& profile, const DiagnosisQuery& query,
                                           StopCheck stop, const Executor& executor,
                                           const KnownRuns& known);

}  // namespace stepcast
