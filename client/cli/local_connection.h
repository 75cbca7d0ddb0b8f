// A client that needs no server.
#pragma once

#include "stepcast/client.h"
#include "stepcast/client_options.h"

namespace stepcast::client {

// On the whole service in this process (server/local/local_service.h): the same checks, answers and
// errors as a server of the same version gives. Profiles are gone with the last copy of the client.
// Options other than `timeout` have no meaning.
Client MakeLocalClient(const ClientOptions& options = {});

}  // namespace stepcast::client
