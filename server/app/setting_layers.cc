#include "server/app/setting_layers.h"

#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "core/base/error.h"
#include "core/base/quoted.h"

namespace stepcast::server {

namespace {

constexpr char kPrefix[] = "STEPCAST_";
constexpr char kHidden[] = "(set)";

// Those the command-line client reads, which may stand beside the server's, and the file's own.
const std::set<std::string, std::less<>>& OtherVariables() {
  static const auto& names = *new std::set<std::string, std::less<>>{
      "STEPCAST_CONFIG", "STEPCAST_SERVER", "STEPCAST_TLS_CA", "STEPCAST_TOKEN_FILE"};
  return names;
}

// "threads" for --threads; empty for what is no setting, as --help.
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
           .description = absl::StrCat(Quoted(each.name), " is no setting; --help lists them")});
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
      faults.push_back(
          {.field = each.source, .description = absl::StrCat(option->get_name(), ": ", why)});
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

}  // namespace stepcast::server
