// How commands on jobs end.
#pragma once

#include "client/cli/exit_code.h"
#include "client/cli/session.h"

#include "stepcast/job.h"

namespace stepcast::client {

// Reports that --local has no jobs.
ExitCode JobsNeedServer(const Session& session);

// Reports that a later server replied what this program does not know.
ExitCode ReplyUnknown(const Session& session, const Job& job);

// Reports what a job failed with, as a call that failed so, or a reply that is not known; kDone for
// any other job, also one that is not done.
ExitCode OutcomeOf(const Session& session, const Job& job);

}  // namespace stepcast::client
