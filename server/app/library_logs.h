// The logs that the libraries inside would write to stderr by themselves.
#pragma once

namespace stepcast::server {

// Turns it off, for the whole process: malformed requests would cost a line each, and the server's
// own log says what matters. GRPC_VERBOSITY in the environment turns gRPC's on again.
void SilenceLibraryLogs();

}  // namespace stepcast::server
