// `completion`: a script for a shell, which completes all commands.
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/commands.h"

namespace stepcast::client {

namespace {

// Letters that mean nothing to a shell, neither in single quotes nor in a list of words.
constexpr char kPlain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-|";

constexpr char kScript[] =
    R"bash(# bash completion of PROGRAM, as `PROGRAM completion bash` prints it.

# _PROGRAM_words PATH: sets `commands` and `argument` to those of the command PATH, and adds its options to `options`.
# An option is --name, --name=VALUES where it needs a value, --name~VALUES where it may have one; VALUES and `argument` are @f for a file, @d for a folder, or a|b|c.
_PROGRAM_words() {
  case "$1" in
CASES  esac
}

# _PROGRAM_values VALUES PREFIX BEGINNING: completes BEGINNING to one of VALUES, and puts PREFIX before each.
_PROGRAM_values() {
  if [[ "$1" == @[fd] ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -P "$2" "-${1#@}" -- "$3")
  else
    mapfile -t COMPREPLY < <(compgen -P "$2" -W "${1//|/ }" -- "$3")
  fi
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

// The values there can be, as the script writes them: from `type`, which the help shows, and of an
// argument also from its name.
std::string ValuesOf(const std::string& type, const std::string& argument) {
  std::string choices = type;
  const size_t open = type.find('{');
  if (open != std::string::npos && type.find('}', open) != std::string::npos) {
    choices = absl::StrReplaceAll(type.substr(open + 1, type.find('}', open) - open - 1),
                                  {{",", "|"}, {" ", ""}});
  } else if (type.find('|') == std::string::npos) {
    for (const auto& [word, values] : {std::pair("FILE", "@f"), std::pair("DIR", "@d")}) {
      if (type.find(word) != std::string::npos || argument.find(word) != std::string::npos)
        return values;
    }
    return "";
  }
  return choices.find_first_not_of(kPlain) == std::string::npos ? choices : "";
}

// The option by each of its names; nothing for an argument.
std::vector<std::string> WordsOf(const CLI::Option& option) {
  std::string value;
  if (option.get_items_expected_max() > 0) {
    value = absl::StrCat(option.get_items_expected_min() > 0 ? "=" : "~",
                         ValuesOf(option.get_type_name(), ""));
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
    for (std::string& word : WordsOf(*option)) options.push_back(std::move(word));
    if (option->get_positional() && argument.empty())
      argument = ValuesOf(option->get_type_name(), option->get_single_name());
  }
  const std::vector<const CLI::App*> commands = app.get_subcommands([](const CLI::App* command) {
    return !command->get_group().empty() && !command->get_name().empty();
  });
  const auto name = [](std::string* out, const CLI::App* command) {
    absl::StrAppend(out, command->get_name());
  };
  // What falls through is an option of the commands above.
  absl::StrAppend(&cases, "    '", path, "')\n      commands='", absl::StrJoin(commands, " ", name),
                  "'\n      argument='", argument, "'\n      options",
                  app.get_fallthrough() ? "+" : "", "=' ", absl::StrJoin(options, " "),
                  "'\n      ;;\n");
  for (const CLI::App* command : commands)
    AppendCases(*command, absl::StrCat(path, " ", command->get_name()), cases);
}

class CompletionCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    program_ = &parent;
    CLI::App* app = parent.add_subcommand("completion",
                                          "Print a script that completes commands, options and "
                                          "values in a shell: source <(stepcast completion bash)");
    app->add_option("SHELL", shell_, "For which shell")
        ->required()
        ->type_name("")
        ->check(CLI::IsMember({"bash"}));
    return app;
  }

  ExitCode Run(const Session& session) const override {
    const std::string script = BashCompletion(*program_);
    return session.Answer(script, [&]() -> const std::string& { return script; });
  }

 private:
  const CLI::App* program_ = nullptr;
  std::string shell_;
};

}  // namespace

std::string BashCompletion(const CLI::App& program) {
  std::string cases;
  AppendCases(program, program.get_name(), cases);
  return absl::StrReplaceAll(kScript, {{"PROGRAM", program.get_name()}, {"CASES", cases}});
}

std::unique_ptr<Command> MakeCompletionCommand() { return std::make_unique<CompletionCommand>(); }

}  // namespace stepcast::client
