#include <unistd.h>

#include <iostream>

#include "client/cli/command_line.h"

int main(int argc, char** argv) {
  const stepcast::client::Console console{.out = std::cout,
                                          .err = std::cerr,
                                          .err_is_terminal = isatty(STDERR_FILENO) == 1,
                                          .terminal = stepcast::client::TerminalOf(STDOUT_FILENO)};
  return static_cast<int>(stepcast::client::RunCommandLine(argc, argv, console));
}
