// Where the command line writes.
#pragma once

#include <ostream>

#include "client/cli/terminal.h"

namespace stepcast::client {

// Borrowed. Answers go to `out`, everything else to `err`.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;
  Terminal terminal = {};  // that `out` is
};

}  // namespace stepcast::client
