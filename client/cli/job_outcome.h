// The ways in which commands on jobs end.
#pragma once

#include "client/cli/session.h"
#include "google/longrunning/operations.pb.h"

namespace stepcast::client {

// Reports that --local has no jobs.
ExitCode JobsNeedServer(const Session& session);

// Reports that a later server replied a message that this program does not know.
ExitCode ReplyUnknown(const Session& session, const google::longrunning::Operation& job);

}  // namespace stepcast::client
