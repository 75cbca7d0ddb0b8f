// The configuration of stepcast-admission: settings as stepcastd has them, by flags, environment
// and a file (server/app/settings.h).
#pragma once

#include <string>
#include <variant>

#include "absl/status/statusor.h"

#include "deploy/kubernetes/admission/admission_options.h"

namespace stepcast::admission {

// Text that was asked for instead of a server: --help, --version, --check-config, --print-config.
struct PrintText {
  std::string text;
};

// INVALID_ARGUMENT, reason FLAG_INVALID or CONFIG_INVALID, with all that is wrong: unknown or
// unsound settings, no certificate, an address beyond this machine that anybody could call.
absl::StatusOr<std::variant<AdmissionOptions, PrintText>> ParseCommandLine(int argc,
                                                                           const char* const* argv);

}  // namespace stepcast::admission
