// stepcast-admission: reads its flags, serves until it is told to stop, drains.
#include <iostream>
#include <string>
#include <variant>

#include "deploy/kubernetes/admission/admission_options.h"
#include "deploy/kubernetes/admission/webhook.h"
#include "server/app/process.h"
#include "server/app/settings.h"

namespace {

constexpr int kBrokenStart = 1;
constexpr int kWrongUsage = 2;

int Complain(const absl::Status& status, int exit_status) {
  for (const std::string& line : stepcast::server::ComplaintsOf(status))
    std::cerr << "stepcast-admission: " << line << std::endl;
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace stepcast::admission;
  using stepcast::server::Signal;
  const auto command = ParseCommandLine(argc, argv);
  if (!command.ok()) return Complain(command.status(), kWrongUsage);
  if (const auto* print = std::get_if<PrintText>(&*command))
    return (std::cout << print->text).flush() ? 0 : kBrokenStart;

  stepcast::server::StopLookingForLockCycles();
  stepcast::server::SilenceLibraryLogs();
  stepcast::server::BlockSignals();
  const auto& options = std::get<AdmissionOptions>(*command);
  const auto webhook = Webhook::Start(options);
  if (!webhook.ok()) return Complain(webhook.status(), kBrokenStart);
  std::cout << "listening https " << (*webhook)->address() << "\n";
  if (!(*webhook)->http_address().empty())
    std::cout << "listening http " << (*webhook)->http_address() << "\n";
  std::cout.flush();

  const double period = options.reload_seconds;
  for (Signal signal = stepcast::server::WaitForSignal(period); signal != Signal::kStop;
       signal = stepcast::server::WaitForSignal(period))
    (*webhook)->Refresh();
  (*webhook)->Drain();
  return 0;
}
