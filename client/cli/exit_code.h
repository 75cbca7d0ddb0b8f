// How the program ends.
#pragma once

namespace stepcast::client {

enum class ExitCode : int {
  kDone = 0,
  kRefused = 1,  // by the service, or it could not be reached
  kMisused = 2,  // by whoever wrote the command
};

}  // namespace stepcast::client
