// The program `stepcast`: from arguments to an exit code.
#pragma once

#include "client/cli/session.h"

namespace stepcast::client {

// Parses, runs the chosen command, and reports. Reads the environment (STEPCAST_SERVER).
ExitCode RunCommandLine(int argc, const char* const* argv, const Console& console);

}  // namespace stepcast::client
