// Settings and the layers that they come from: defaults, the configuration file, the environment,
// flags. The later counts more.
//
// The table of settings is a CLI11 application: each of its options is one, with its flag's name,
// its variable, its default and its check. Nothing is ever parsed with it; it says what there is,
// prints the help, and takes values.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace stepcast::server {

// A setting that somebody gave, and where.
struct GivenSetting {
  std::string name;    // of the flag, without its dashes
  std::string value;   // as it was written
  std::string source;  // "/etc/stepcast.yaml:3", "STEPCAST_THREADS" or "--threads"

  friend bool operator==(const GivenSetting&, const GivenSetting&) = default;
};

inline constexpr size_t kMaxConfigBytes = size_t{1} << 20;

// The settings of the configuration file, a YAML map from the names of flags, without their dashes,
// to values. In the order of the file; which names there are is not known here. An empty file gives
// nothing. INVALID_ARGUMENT, reason CONFIG_INVALID, with every fault and its line: no file, too
// large, not YAML, not a map of plain values, a key twice.
absl::StatusOr<std::vector<GivenSetting>> ReadConfigFile(const std::string& path);

// The flags that were typed behind the program's name.
struct TypedFlags {
  enum class Wish { kServe, kHelp, kVersion, kCheckConfig, kPrintConfig };
  Wish wish = Wish::kServe;
  std::string backup_to;            // not empty: copy the data there; serve nothing
  std::string restore_from;         // the same, from there
  std::string config;               // --config, or its variable; empty: no file
  std::vector<GivenSetting> given;  // not checked
};

// The flags are those of `table` and a few that are no settings, which the
// table's help then shows too; with `copies_data` --backup-to and --restore-from. INVALID_ARGUMENT,
// reason FLAG_INVALID: there is no such flag, or it lacks its value.
absl::StatusOr<TypedFlags> ReadFlags(int argc, const char* const* argv, CLI::App& table,
                                     bool copies_data);

// Options of this group hold secrets: their values are never shown.
inline constexpr char kSecretGroup[] = "Secrets";

// The layer of the environment: the variables of the table. An empty variable gives nothing.
std::vector<GivenSetting> EnvironmentSettings(const CLI::App& table);

// Variables that look like settings, STEPCAST_*, and are none.
std::vector<std::string> UnknownVariables(const CLI::App& table);

// The settings of all layers, the lightest first. Fails as ReadConfigFile does.
absl::StatusOr<std::vector<GivenSetting>> GivenSettings(const TypedFlags& typed,
                                                        const CLI::App& table);

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

// The faults of both together, reason FLAG_INVALID; OK where neither has any.
absl::Status BothFaults(const absl::Status& first, const absl::Status& second);

// One line for each thing that is wrong: each fault and how many more there are, or the message.
std::vector<std::string> ComplaintsOf(const absl::Status& status);

// A file that is read as a whole: configuration, tokens, certificates.

// Its bytes. FAILED_PRECONDITION, reason FILE_UNREADABLE, saying why without naming it: it is not
// there, cannot be read, is a directory, or has more than `max_bytes`.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes);

}  // namespace stepcast::server
