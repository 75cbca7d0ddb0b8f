// What the terminal that standard output goes to can show.
#pragma once

namespace stepcast::client {

struct Terminal {
  int columns = 80;
  bool utf8 = false;
};

// Of an open file: the columns of a terminal, 80 of anything else, and whether the environment's
// locale has UTF-8. Leaves the program's locale alone.
Terminal TerminalOf(int file);

}  // namespace stepcast::client
