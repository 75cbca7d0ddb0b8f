#include "server/app/setting_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

constexpr char kConfigVariable[] = "STEPCAST_CONFIG";

struct Wishes {
  bool check = false;
  bool print = false;
  bool version = false;
};

void AddWishes(CLI::App& app, Wishes& wishes, TypedFlags& typed) {
  std::string& config = typed.config;
  app.add_option(
      "--config", config,
      absl::StrCat("YAML file of settings: names of flags without dashes, and values (Env:",
                   kConfigVariable, ")"));
  app.add_flag("--check-config", wishes.check,
               "Say whether the configuration is sound, and what is wrong with it; serve nothing");
  app.add_flag("--print-config", wishes.print,
               "Print every setting and where it comes from, without secrets; serve nothing");
  CLI::Option* backup = app.add_option("--backup-to", typed.backup_to,
                                       "Copy the sqlite store of --data-dir to this new file, even "
                                       "while a server runs on it; serve nothing");
  app.add_option("--restore-from", typed.restore_from,
                 "Begin the sqlite store of --data-dir, which has none yet, from such a copy; "
                 "serve nothing")
      ->excludes(backup);
  app.add_flag("--version", wishes.version, "Print the version; serve nothing");
}

TypedFlags::Wish WishOf(const Wishes& wishes) {
  if (wishes.version) return TypedFlags::Wish::kVersion;
  if (wishes.check) return TypedFlags::Wish::kCheckConfig;
  return wishes.print ? TypedFlags::Wish::kPrintConfig : TypedFlags::Wish::kServe;
}

}  // namespace

absl::StatusOr<TypedFlags> ReadFlags(int argc, const char* const* argv, CLI::App& table) {
  TypedFlags typed;
  if (const char* config = std::getenv(kConfigVariable); config != nullptr) typed.config = config;
  Wishes wishes;
  CLI::App flags;
  // As text: what a setting takes, Apply finds out, for all layers alike.
  std::deque<std::pair<CLI::Option*, std::string>> texts;
  for (const CLI::Option* option : table.get_options()) {
    if (option->get_envname().empty()) continue;
    auto& [flag, text] = texts.emplace_back();
    const bool needs_value = option->get_expected_min() > 0;
    flag = needs_value ? flags.add_option(option->get_name(), text)
                       : flags.add_flag(option->get_name(), text);
  }
  AddWishes(flags, wishes, typed);
  AddWishes(table, wishes, typed);
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

}  // namespace stepcast::server
