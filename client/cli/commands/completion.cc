// `completion`: a script for a shell, which completes all commands.
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/command_line.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/presets.h"

namespace stepcast::client {

namespace {

constexpr char kFiles[] = "@f";  // among values: a file's name

// Letters that mean nothing to a shell, neither in single quotes nor in a list of words.
constexpr char kPlain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-|";

constexpr char kBashScript[] =
    R"bash(# bash completion of PROGRAM, as `PROGRAM completion bash` prints it.

# _PROGRAM_words PATH: sets `commands` and `argument` to those of the command PATH, and adds its options to `options`.
# An option is --name, --name=VALUES where it needs a value, --name~VALUES where it may have one; VALUES and `argument`: a|b|c, @f among them a file, @d a folder.
_PROGRAM_words() {
  case "$1" in
CASES  esac
}

# _PROGRAM_values VALUES PREFIX BEGINNING: completes BEGINNING to one of VALUES, and puts PREFIX before each.
_PROGRAM_values() {
  local words="${1//|/ }"
  local -a paths=()
  if [[ "$words" =~ @([fd]) ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t paths < <(compgen -P "$2" "-${BASH_REMATCH[1]}" -- "$3")
  fi
  mapfile -t COMPREPLY < <(compgen -P "$2" -W "${words//@[fd]/}" -- "$3")
  COMPREPLY+=("${paths[@]}")
}

_PROGRAM() {
  local current="${COMP_WORDS[COMP_CWORD]}" path=PROGRAM commands='' argument='' options='' awaited='' word index
  local -a names
  COMPREPLY=()
  _PROGRAM_words "$path"
  for ((index = 1; index < COMP_CWORD; ++index)); do
    word="${COMP_WORDS[index]}"
    if [[ "$word" == '=' && -n "$awaited" ]]; then
      # bash takes --name=value for three words.
      awaited="=${awaited:1}"
    elif [[ "$word" == -* ]]; then
      awaited=''
      if [[ " $options " =~ \ "$word"([=~][^\ ]*)\  ]]; then awaited="${BASH_REMATCH[1]}"; fi
    elif [[ -n "$awaited" ]]; then
      awaited=''
    elif [[ " $commands " == *" $word "* ]]; then
      path+=" $word"
      _PROGRAM_words "$path"
    fi
  done

  if [[ "$current" == '=' && -n "$awaited" ]]; then
    _PROGRAM_values "${awaited:1}" '' ''
  elif [[ "$current" =~ ^(--[a-z0-9-]+=)(.*)$ ]]; then
    # Where `=` does not break words.
    word="${BASH_REMATCH[1]}"
    if [[ " $options " =~ \ "${word%=}"[=~]([^\ ]*)\  ]]; then _PROGRAM_values "${BASH_REMATCH[1]}" "$word" "${current#"$word"}"; fi
  elif [[ "$awaited" == =* || -n "$awaited" && "$current" != -* ]]; then
    _PROGRAM_values "${awaited:1}" '' "$current"
  elif [[ "$current" == -* ]]; then
    read -ra names <<<"$options"
    mapfile -t COMPREPLY < <(compgen -W "${names[*]%%[=~]*}" -- "$current")
  elif [[ -n "$commands" ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
  else
    _PROGRAM_values "$argument" '' "$current"
  fi
}

complete -F _PROGRAM PROGRAM
)bash";

// CASES is that of bash: both shells read it.
constexpr char kZshScript[] =
    R"zsh(#compdef PROGRAM
# zsh completion of PROGRAM, as `PROGRAM completion zsh` prints it.

# _PROGRAM_words PATH: as in bash's script, `PROGRAM completion bash`.
_PROGRAM_words() {
  case "$1" in
CASES  esac
}

# _PROGRAM_values VALUES: completes one of VALUES, which are a|b|c, with @f among them for a file or @d for a folder.
_PROGRAM_values() {
  local values=(${(s:|:)1})
  compadd -- ${values:#@[fd]}
  if (( ${values[(Ie)@f]} )); then _files; elif (( ${values[(Ie)@d]} )); then _files -/; fi
}

_PROGRAM() {
  local at=PROGRAM commands='' argument='' options='' awaited='' word option index
  _PROGRAM_words "$at"
  for ((index = 2; index < CURRENT; ++index)); do
    word="${words[index]}"
    if [[ "$word" == -* ]]; then
      awaited=''
      for option in ${(s: :)options}; do
        if [[ "$option" == "$word="* ]]; then awaited="=${option#*=}"; fi
      done
    elif [[ -n "$awaited" ]]; then
      awaited=''
    elif [[ " $commands " == *" $word "* ]]; then
      at+=" $word"
      _PROGRAM_words "$at"
    fi
  done

  word="${words[CURRENT]}"
  if [[ "$word" == --*=* ]]; then
    for option in ${(s: :)options}; do
      if [[ "$option" == "${word%%=*}"[=~]* ]]; then
        compset -P '*='
        _PROGRAM_values "${option#*[=~]}"
      fi
    done
  elif [[ -n "$awaited" ]]; then
    _PROGRAM_values "${awaited#=}"
  elif [[ "$word" == -* ]]; then
    compadd -- ${${(s: :)options}%%[=~]*}
  elif [[ -n "$commands" ]]; then
    compadd -- ${(s: :)commands}
  else
    _PROGRAM_values "$argument"
  fi
}

if [[ "$funcstack[1]" == _PROGRAM ]]; then _PROGRAM "$@"; else compdef _PROGRAM PROGRAM; fi
)zsh";

constexpr char kFishScript[] =
    R"fish(# fish completion of PROGRAM, as `PROGRAM completion fish` prints it.

# The command's words so far, without flags and their values.
function __PROGRAM_at
    set -l at ''
    set -l awaits 0
    for word in (commandline -opc)[2..-1]
        if string match -q -- '-*' $word
            if contains -- $word VALUED
                set awaits 1
            end
        else if test $awaits = 1
            set awaits 0
        else if contains -- (string trim "$at $word") COMMANDS
            set at (string trim "$at $word")
        end
    end
    contains -- "$at" $argv
end

complete -c PROGRAM -f
LINES)fish";

// Words that a value can be though the help does not list them: of presets, of commands.
std::vector<std::string> WordsBeside(const CLI::App& app, const CLI::Option& option) {
  std::vector<std::string> words;
  const bool names_cluster = option.get_positional() && app.get_name() == "clusters";
  if (names_cluster || option.get_name() == "--cluster") {
    const absl::StatusOr<std::vector<ClusterPreset>> presets = ParseClusters(kClusterPresets);
    for (const ClusterPreset& preset : *presets) words.push_back(preset.name);
  } else if (option.get_positional() && app.get_name() == "help") {
    words = CommandNames(*app.get_parent());
  }
  return words;
}

// The values there can be, as the script writes them: from the type, which the help shows, of an
// argument also from its name, and those that are known beside.
std::string ValuesOf(const CLI::App& app, const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string argument = option.get_positional() ? option.get_single_name() : "";
  std::vector<std::string> beside = WordsBeside(app, option);
  std::string choices = type;
  const size_t open = type.find('{');
  if (open != std::string::npos && type.find('}', open) != std::string::npos) {
    choices = absl::StrReplaceAll(type.substr(open + 1, type.find('}', open) - open - 1),
                                  {{",", "|"}, {" ", ""}});
  } else if (type.find('|') == std::string::npos) {
    for (const auto& [word, values] : {std::pair("FILE", kFiles), std::pair("DIR", "@d")}) {
      if (type.find(word) != std::string::npos || argument.find(word) != std::string::npos) {
        beside.push_back(values);
        break;
      }
    }
    return absl::StrJoin(beside, "|");
  }
  return choices.find_first_not_of(kPlain) == std::string::npos ? choices : "";
}

// The option by each of its names; nothing for an argument.
std::vector<std::string> WordsOf(const CLI::App& app, const CLI::Option& option) {
  std::string value;
  if (option.get_items_expected_max() > 0) {
    value = absl::StrCat(option.get_items_expected_min() > 0 ? "=" : "~", ValuesOf(app, option));
  }
  std::vector<std::string> words;
  for (const std::string& name : option.get_lnames())
    words.push_back(absl::StrCat("--", name, value));
  for (const std::string& name : option.get_snames())
    words.push_back(absl::StrCat("-", name, value));
  return words;
}

// A case of the script for `app`, which is reached by `path`, and one for each command below it.
void AppendCases(const CLI::App& app, const std::string& path, std::string& cases) {
  std::vector<std::string> options;
  std::string argument;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (std::string& word : WordsOf(app, *option)) options.push_back(std::move(word));
    if (option->get_positional() && argument.empty()) argument = ValuesOf(app, *option);
  }
  const std::vector<const CLI::App*> commands = app.get_subcommands([](const CLI::App* command) {
    return !command->get_group().empty() && !command->get_name().empty();
  });
  const auto name = [](std::string* out, const CLI::App* command) {
    absl::StrAppend(out, command->get_name());
  };
  // Options that fall through are of the commands above.
  absl::StrAppend(&cases, "    '", path, "')\n      commands='", absl::StrJoin(commands, " ", name),
                  "'\n      argument='", argument, "'\n      options",
                  app.get_fallthrough() ? "+" : "", "=' ", absl::StrJoin(options, " "),
                  "'\n      ;;\n");
  for (const CLI::App* command : commands)
    AppendCases(*command, absl::StrCat(path, " ", command->get_name()), cases);
}

std::string WithCases(const char* script, const CLI::App& program) {
  std::string cases;
  AppendCases(program, program.get_name(), cases);
  return absl::StrReplaceAll(script, {{"PROGRAM", program.get_name()}, {"CASES", cases}});
}

// A text in fish's single quotes.
std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}, {"\n", " "}}),
                      "'");
}

// The candidates of a value, from ValuesOf, as fish takes them.
std::string FishValues(const std::string& values) {
  if (values.empty()) return "";
  const bool has_files = absl::EndsWith(values, kFiles);
  const std::string words = absl::StrReplaceAll(
      values, {{"|", " "}, {kFiles, ""}, {"@d", "(__fish_complete_directories)"}});
  return absl::StrCat(has_files ? " -F" : "",
                      words.empty() ? "" : absl::StrCat(" -a ", FishQuoted(words)));
}

// The parts of fish's script that commands give.
struct FishParts {
  std::string lines;
  std::vector<std::string> commands;  // their words below the program, in quotes
  std::vector<std::string> valued;    // flags whose value is the next word
};

// The paths, in quotes and each behind a space, of the command and of those below it.
std::string FishPathsFrom(const CLI::App& app, const std::string& words) {
  std::string paths = absl::StrCat(" '", words, "'");
  for (const std::string& name : CommandNames(app))
    paths += FishPathsFrom(*app.get_subcommand(name), absl::StrCat(words, " ", name));
  return paths;
}

// Adds `app`, which is reached by `words`, and all below it. What falls through may stand behind
// the commands below it; of the program, behind every one.
void AppendFish(const CLI::App& app, const std::string& program, const std::string& words,
                FishParts& parts) {
  const std::string everywhere = absl::StrCat("complete -c ", program);
  const std::string start = absl::StrCat(
      everywhere, " -n ", FishQuoted(absl::StrCat("__", program, "_at '", words, "'")));
  std::string flag_start = start;
  if (app.get_fallthrough()) {
    flag_start = words.empty() ? everywhere
                               : absl::StrCat(everywhere, " -n ",
                                              FishQuoted(absl::StrCat("__", program, "_at",
                                                                      FishPathsFrom(app, words))));
  }
  std::vector<const CLI::Option*> flags;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    if (!option->get_positional()) {
      flags.push_back(option);
    } else if (const std::string values = FishValues(ValuesOf(app, *option)); !values.empty()) {
      absl::StrAppend(&parts.lines, start, values, "\n");
    }
  }
  for (const CLI::Option* option : flags) {
    std::string names;
    const bool needs_value = option->get_items_expected_min() > 0;
    for (const std::string& name : option->get_lnames()) {
      absl::StrAppend(&names, " -l ", name);
      if (needs_value) parts.valued.push_back("--" + name);
    }
    for (const std::string& name : option->get_snames()) absl::StrAppend(&names, " -s ", name);
    const std::string values = ValuesOf(app, *option);
    // A value that is not a file excludes files.
    absl::StrAppend(&parts.lines, flag_start, names,
                    !needs_value                     ? ""
                    : absl::EndsWith(values, kFiles) ? " -r"
                                                     : " -x",
                    FishValues(values), " -d ", FishQuoted(option->get_description()), "\n");
  }
  for (const std::string& name : CommandNames(app)) {
    const CLI::App& below = *app.get_subcommand(name);
    absl::StrAppend(&parts.lines, start, " -a ", name, " -d ", FishQuoted(below.get_description()),
                    "\n");
    const std::string path = words.empty() ? name : absl::StrCat(words, " ", name);
    parts.commands.push_back(FishQuoted(path));
    AppendFish(below, program, path, parts);
  }
}

class CompletionCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    program_ = &parent;
    CLI::App* app = parent.add_subcommand("completion",
                                          "Print a script that completes commands, options and "
                                          "values in a shell: bash, zsh or fish");
    app->add_option("SHELL", shell_, "For which shell")
        ->required()
        ->type_name("")
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    return app;
  }

  ExitCode Run(const Session& session) const override {
    const std::string script = shell_ == "fish"  ? FishCompletion(*program_)
                               : shell_ == "zsh" ? ZshCompletion(*program_)
                                                 : BashCompletion(*program_);
    return session.Answer(script, [&]() -> const std::string& { return script; });
  }

 private:
  const CLI::App* program_ = nullptr;
  std::string shell_;
};

}  // namespace

std::string BashCompletion(const CLI::App& program) { return WithCases(kBashScript, program); }

std::string ZshCompletion(const CLI::App& program) { return WithCases(kZshScript, program); }

std::string FishCompletion(const CLI::App& program) {
  FishParts parts;
  AppendFish(program, program.get_name(), "", parts);
  std::sort(parts.valued.begin(), parts.valued.end());
  parts.valued.erase(std::unique(parts.valued.begin(), parts.valued.end()), parts.valued.end());
  return absl::StrReplaceAll(kFishScript, {{"PROGRAM", program.get_name()},
                                           {"VALUED", absl::StrJoin(parts.valued, " ")},
                                           {"COMMANDS", absl::StrJoin(parts.commands, " ")},
                                           {"LINES", parts.lines}});
}

std::unique_ptr<Command> MakeCompletionCommand() { return std::make_unique<CompletionCommand>(); }

}  // namespace stepcast::client
