#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "client/cli/command_line.h"

namespace {

// A standard input that is closed stays unreadable: its number would go to the next file that is
// opened, and be read as if it were the input. The libraries' own constructors open some, hence
// before these.
void HoldStandardInput() {
  if (fcntl(STDIN_FILENO, F_GETFD) < 0) open("/dev/null", O_WRONLY);
}
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const hold_standard_input)() = &HoldStandardInput;

// gRPC's own log of what fails, which the program tells itself, unless somebody asks for it.
void SilenceGrpc() { setenv("GRPC_VERBOSITY", "NONE", 0); }

}  // namespace

int main(int argc, char** argv) {
  SilenceGrpc();
  const stepcast::client::Console console{.out = std::cout,
                                          .err = std::cerr,
                                          .err_is_terminal = isatty(STDERR_FILENO) == 1,
                                          .terminal = stepcast::client::TerminalOf(STDOUT_FILENO)};
  return static_cast<int>(stepcast::client::RunCommandLine(argc, argv, console));
}
