// The flags that were typed behind the program's name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/app/given_setting.h"

namespace CLI {
class App;
}

namespace stepcast::server {

struct TypedFlags {
  enum class Wish { kServe, kHelp, kVersion, kCheckConfig, kPrintConfig };
  Wish wish = Wish::kServe;
  std::string backup_to;            // not empty: copy the data there; serve nothing
  std::string restore_from;         // the same, from there
  std::string config;               // --config, or its variable; empty: no file
  std::vector<GivenSetting> given;  // not checked
};

// The flags are those of `table` (setting_layers.h) and a few that are no settings, which the
// table's help then shows too. INVALID_ARGUMENT, reason FLAG_INVALID: there is no such flag, or it
// lacks its value.
absl::StatusOr<TypedFlags> ReadFlags(int argc, const char* const* argv, CLI::App& table);

}  // namespace stepcast::server
