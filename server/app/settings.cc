#include "server/app/settings.h"

#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "core/base/error.h"
#include "core/base/message_text.h"

namespace stepcast::server {

namespace {

constexpr char kReason[] = "CONFIG_INVALID";

// Line as editors count them.
std::string PlaceOf(const std::string& path, const YAML::Mark& mark) {
  return absl::StrCat(path, ":", mark.line + 1);
}

absl::StatusOr<std::vector<GivenSetting>> Settings(const std::string& path,
                                                   const YAML::Node& root) {
  std::vector<GivenSetting> settings;
  std::vector<Fault> faults;
  std::map<std::string, std::string> places;  // name -> where it was first
  for (const auto& entry : root) {
    const std::string place = PlaceOf(path, entry.first.Mark());
    if (!entry.first.IsScalar()) {
      faults.push_back({.field = place, .description = "a key must be the name of a setting"});
      continue;
    }
    const std::string& name = entry.first.Scalar();
    if (const auto [first, is_new] = places.emplace(name, place); !is_new) {
      faults.push_back(
          {.field = place,
           .description = absl::StrCat(Quoted(name), " is there already, at ", first->second)});
    } else if (!entry.second.IsScalar()) {
      faults.push_back({.field = place,
                        .description = absl::StrCat(Quoted(name), " must have one plain value")});
    } else {
      settings.push_back({.name = name, .value = entry.second.Scalar(), .source = place});
    }
  }
  if (!faults.empty()) return FaultsError(kReason, std::move(faults));
  return settings;
}

}  // namespace

absl::StatusOr<std::vector<GivenSetting>> ReadConfigFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxConfigBytes);
  if (!text.ok())
    return FaultsError(kReason,
                       {{.field = path, .description = std::string(text.status().message())}});
  // The library reports what is not YAML by an exception.
  try {
    const YAML::Node root = YAML::Load(*text);
    if (root.IsNull()) return std::vector<GivenSetting>();
    if (!root.IsMap())
      return FaultsError(kReason, {{.field = PlaceOf(path, root.Mark()),
                                    .description = "must be a map from settings to values"}});
    return Settings(path, root);
  } catch (const YAML::Exception& exception) {
    return FaultsError(kReason,
                       {{.field = PlaceOf(path, exception.mark), .description = exception.msg}});
  }
}

namespace {

constexpr char kConfigVariable[] = "STEPCAST_CONFIG";

struct Wishes {
  bool check = false;
  bool print = false;
  bool version = false;
};

void AddCopies(CLI::App& app, TypedFlags& typed) {
  CLI::Option* backup = app.add_option("--backup-to", typed.backup_to,
                                       "Copy the sqlite store of --data-dir to this new file, even "
                                       "while a server runs on it; serve nothing");
  app.add_option("--restore-from", typed.restore_from,
                 "Begin the sqlite store of --data-dir, which has none yet, from such a copy; "
                 "serve nothing")
      ->excludes(backup);
}

void AddWishes(CLI::App& app, Wishes& wishes, TypedFlags& typed, bool copies_data) {
  std::string& config = typed.config;
  app.add_option(
      "--config", config,
      absl::StrCat("YAML file of settings: names of flags without dashes, and values (Env:",
                   kConfigVariable, ")"));
  app.add_flag("--check-config", wishes.check,
               "Say whether the configuration is sound, and what is wrong with it; serve nothing");
  app.add_flag("--print-config", wishes.print,
               "Print every setting and where it comes from, without secrets; serve nothing");
  if (copies_data) AddCopies(app, typed);
  app.add_flag("--version", wishes.version, "Print the version; serve nothing");
}

TypedFlags::Wish WishOf(const Wishes& wishes) {
  if (wishes.version) return TypedFlags::Wish::kVersion;
  if (wishes.check) return TypedFlags::Wish::kCheckConfig;
  return wishes.print ? TypedFlags::Wish::kPrintConfig : TypedFlags::Wish::kServe;
}

}  // namespace

absl::StatusOr<TypedFlags> ReadFlags(int argc, const char* const* argv, CLI::App& table,
                                     bool copies_data) {
  TypedFlags typed;
  if (const char* config = std::getenv(kConfigVariable); config != nullptr) typed.config = config;
  Wishes wishes;
  CLI::App flags;
  // Text: what a setting takes, Apply finds out, for all layers alike.
  std::deque<std::pair<CLI::Option*, std::string>> texts;
  for (const CLI::Option* option : table.get_options()) {
    if (option->get_envname().empty()) continue;
    auto& [flag, text] = texts.emplace_back();
    const bool needs_value = option->get_expected_min() > 0;
    flag = needs_value ? flags.add_option(option->get_name(), text)
                       : flags.add_flag(option->get_name(), text);
  }
  AddWishes(flags, wishes, typed, copies_data);
  AddWishes(table, wishes, typed, copies_data);
  // The library reports everything, help included, by an exception.
  try {
    flags.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    typed.wish = TypedFlags::Wish::kHelp;
    return typed;
  } catch (const CLI::Error& error) {
    return FaultsError("FLAG_INVALID", {{.field = "", .description = error.what()}});
  }
  typed.wish = WishOf(wishes);
  for (const auto& [flag, text] : texts) {
    if (flag->count() > 0)
      typed.given.push_back(
          {.name = flag->get_lnames().front(), .value = text, .source = flag->get_name()});
  }
  return typed;
}

namespace {

constexpr char kPrefix[] = "STEPCAST_";
constexpr char kHidden[] = "(set)";

// Variables that the command-line client reads, which may stand beside the server's and the file's.
const std::set<std::string, std::less<>>& OtherVariables() {
  static const auto& names = *new std::set<std::string, std::less<>>{
      "STEPCAST_CONFIG", "STEPCAST_SERVER", "STEPCAST_TLS_CA", "STEPCAST_TOKEN_FILE"};
  return names;
}

// "threads" for --threads; empty for what is not a setting, as --help.
std::string NameOf(const CLI::Option& option) {
  return option.get_envname().empty() ? "" : option.get_lnames().front();
}

CLI::Option* Find(const std::string& name, CLI::App& table) {
  CLI::Option* option =
      name.empty() ? nullptr : table.get_option_no_throw(absl::StrCat("--", name));
  return option == nullptr || NameOf(*option).empty() ? nullptr : option;
}

// CLI11's text on a value, without the flag it begins with: the source is named already.
std::string WhyNot(const CLI::Option& option, const std::string& why) {
  return std::string(absl::StripPrefix(why, absl::StrCat(option.get_name(), ": ")));
}

struct Shown {
  std::string name;
  std::string value;
  std::string source;
};

std::vector<Shown> Effective(const std::vector<GivenSetting>& given, const CLI::App& table) {
  std::vector<Shown> settings;
  for (const CLI::Option* option : table.get_options()) {
    Shown shown{.name = NameOf(*option), .value = option->get_default_str(), .source = "default"};
    if (shown.name.empty()) continue;
    for (const GivenSetting& each : given) {
      if (each.name == shown.name)
        shown = {.name = each.name, .value = each.value, .source = each.source};
    }
    if (option->get_group() == kSecretGroup && !shown.value.empty()) shown.value = kHidden;
    settings.push_back(std::move(shown));
  }
  return settings;
}

}  // namespace

std::vector<GivenSetting> EnvironmentSettings(const CLI::App& table) {
  std::vector<GivenSetting> given;
  for (const CLI::Option* option : table.get_options()) {
    const char* value =
        option->get_envname().empty() ? nullptr : std::getenv(option->get_envname().c_str());
    if (value != nullptr && *value != '\0')
      given.push_back({.name = NameOf(*option), .value = value, .source = option->get_envname()});
  }
  return given;
}

std::vector<std::string> UnknownVariables(const CLI::App& table) {
  std::set<std::string, std::less<>> known = OtherVariables();
  for (const CLI::Option* option : table.get_options()) known.insert(option->get_envname());
  std::vector<std::string> unknown;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::string name(text.substr(0, text.find('=')));
    if (absl::StartsWith(name, kPrefix) && known.count(name) == 0) unknown.push_back(name);
  }
  std::sort(unknown.begin(), unknown.end());
  return unknown;
}

absl::Status Apply(const std::vector<GivenSetting>& given, CLI::App& table) {
  std::vector<Fault> faults;
  for (const GivenSetting& each : given) {
    CLI::Option* option = Find(each.name, table);
    if (option == nullptr) {
      faults.push_back(
          {.field = each.source,
           .description = absl::StrCat(Quoted(each.name), " is not a setting; --help lists them")});
      continue;
    }
    // The library reports a value that it does not take by an exception.
    try {
      option->clear();
      option->add_result(each.value);
      option->run_callback();
    } catch (const CLI::Error& error) {
      const bool is_secret = option->get_group() == kSecretGroup;
      const std::string why = is_secret ? "is not a value it takes" : WhyNot(*option, error.what());
      const bool is_named = each.source == option->get_name();
      faults.push_back(
          {.field = each.source, .description = is_named ? why : option->get_name() + ": " + why});
    }
  }
  return faults.empty() ? absl::OkStatus() : FaultsError("FLAG_INVALID", std::move(faults));
}

std::string ConfigText(const std::vector<GivenSetting>& given, const CLI::App& table) {
  YAML::Emitter text;
  text << YAML::BeginMap;
  for (const Shown& setting : Effective(given, table)) {
    text << YAML::Key << setting.name << YAML::Value << setting.value
         << YAML::Comment(setting.source);
  }
  text << YAML::EndMap;
  return absl::StrCat(text.c_str(), "\n");
}

std::map<std::string, std::string> ShownSettings(const std::vector<GivenSetting>& given,
                                                 const CLI::App& table) {
  std::map<std::string, std::string> settings;
  for (Shown& setting : Effective(given, table))
    settings.emplace(std::move(setting.name), std::move(setting.value));
  return settings;
}

absl::StatusOr<std::vector<GivenSetting>> GivenSettings(const TypedFlags& typed,
                                                        const CLI::App& table) {
  std::vector<GivenSetting> given;
  if (!typed.config.empty()) {
    absl::StatusOr<std::vector<GivenSetting>> file = ReadConfigFile(typed.config);
    if (!file.ok()) return file.status();
    given = *std::move(file);
  }
  for (GivenSetting& each : EnvironmentSettings(table)) given.push_back(std::move(each));
  given.insert(given.end(), typed.given.begin(), typed.given.end());
  return given;
}

absl::Status BothFaults(const absl::Status& first, const absl::Status& second) {
  if (first.ok() || second.ok()) return first.ok() ? second : first;
  std::vector<Fault> faults = DetailsOf(first).faults;
  for (Fault& fault : DetailsOf(second).faults) faults.push_back(std::move(fault));
  return FaultsError("FLAG_INVALID", std::move(faults));
}

std::vector<std::string> ComplaintsOf(const absl::Status& status) {
  const ErrorDetails details = DetailsOf(status);
  if (details.faults.empty()) return {std::string(status.message())};
  std::vector<std::string> lines;
  for (const Fault& fault : details.faults) {
    lines.push_back(absl::StrCat(fault.field, fault.field.empty() ? "" : ": ", fault.description));
  }
  if (details.faults_left_out > 0)
    lines.push_back(absl::StrCat("and ", details.faults_left_out, " more"));
  return lines;
}

namespace {

absl::Status Unreadable(const std::string& why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, why, {.reason = "FILE_UNREADABLE"});
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Unreadable(absl::StrCat("cannot be read: ", std::strerror(errno)));
  std::string bytes(max_bytes + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad() || (file.gcount() == 0 && errno == EISDIR))
    return Unreadable(absl::StrCat("cannot be read: ", std::strerror(errno)));
  bytes.resize(static_cast<size_t>(file.gcount()));
  if (bytes.size() > max_bytes)
    return Unreadable(absl::StrCat("has more than ", max_bytes, " bytes"));
  // The byte order mark that some editors write.
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (bytes.starts_with(kByteOrderMark)) bytes.erase(0, kByteOrderMark.size());
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff"))
    return Unreadable("is UTF-16: save it as UTF-8");
  return bytes;
}

}  // namespace stepcast::server
