// The layers that settings come from: defaults, the configuration file, the environment, flags. The
// later counts more.
//
// The table of settings is a CLI11 application: each of its options is one, with its flag's name,
// its variable, its default and its check. Nothing is ever parsed with it; it says what there is,
// prints the help, and takes values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "server/app/given_setting.h"

namespace CLI {
class App;
}

namespace stepcast::server {

// Options of this group hold secrets: their values are never shown.
inline constexpr char kSecretGroup[] = "Secrets";

// The layer of the environment: the variables of the table. An empty variable gives nothing.
std::vector<GivenSetting> EnvironmentSettings(const CLI::App& table);

// Variables that look like settings, STEPCAST_*, and are none.
std::vector<std::string> UnknownVariables(const CLI::App& table);

// Gives the table all of them, the weightiest last. INVALID_ARGUMENT, reason FLAG_INVALID, with
// every fault: a name that is no setting, a value that its setting does not take, even if a
// weightier one replaces it.
absl::Status Apply(const std::vector<GivenSetting>& given, CLI::App& table);

// All settings as YAML that --config takes, each with where it comes from. REQUIRES: `given` was
// applied.
std::string ConfigText(const std::vector<GivenSetting>& given, const CLI::App& table);

// name -> value of all settings. REQUIRES: `given` was applied.
std::map<std::string, std::string> ShownSettings(const std::vector<GivenSetting>& given,
                                                 const CLI::App& table);

}  // namespace stepcast::server
