// stepcastd: reads its flags, serves until it is told to stop, drains.
#include <iostream>
#include <string>
#include <variant>

#include "server/app/process.h"
#include "server/app/server.h"
#include "server/app/server_options.h"
#include "server/app/settings.h"
#include "server/app/stores.h"

namespace {

constexpr int kBrokenStart = 1;
constexpr int kWrongUsage = 2;

int Complain(const absl::Status& status, int exit_status) {
  for (const std::string& line : stepcast::server::ComplaintsOf(status))
    std::cerr << "stepcastd: " << line << std::endl;
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace stepcast::server;
  const auto command = ParseCommandLine(argc, argv);
  if (!command.ok()) return Complain(command.status(), kWrongUsage);
  if (const auto* print = std::get_if<PrintText>(&*command))
    return (std::cout << print->text).flush() ? 0 : kBrokenStart;

  if (const auto* copy = std::get_if<DataCopy>(&*command)) {
    const absl::Status copied = CopyData(*copy);
    return copied.ok() ? 0 : Complain(copied, kBrokenStart);
  }

  StopLookingForLockCycles();
  SilenceLibraryLogs();
  BlockSignals();
  KeepAccepting();
  const auto& options = std::get<ServerOptions>(*command);
  const auto server = Server::Start(options);
  if (!server.ok()) return Complain(server.status(), kBrokenStart);
  std::cout << "listening grpc " << (*server)->grpc_address() << "\n";
  if (!(*server)->http_address().empty())
    std::cout << "listening http " << (*server)->http_address() << "\n";
  std::cout.flush();

  const double period = options.security.reload_seconds;
  for (Signal signal = WaitForSignal(period); signal != Signal::kStop;
       signal = WaitForSignal(period)) {
    if (signal == Signal::kReload) (*server)->Reload(ParseOptions(argc, argv));
    if (signal == Signal::kNone) (*server)->RefreshCredentials();
  }
  (*server)->Drain();
  return 0;
}
