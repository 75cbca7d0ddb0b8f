// A client that needs no server.
#pragma once

#include "stepcast/client.h"
#include "stepcast/client_options.h"

namespace stepcast::client {

// The whole service in this process: the same checks, answers and errors as a server of the same
// version gives, on the calling thread and, for the runs of a prediction, on as many others as
// there are processors left. Profiles are kept in memory and are gone with the last copy of the
// client. Of the options only `timeout` has a meaning.
Client MakeLocalClient(const ClientOptions& options = {});

}  // namespace stepcast::client
