// The help of all commands, and `help`, which prints that of one.
#include <CLI/App.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cli/command_line.h"
#include "client/cli/commands/commands.h"
#include "client/cli/texts/characters.h"

namespace stepcast::client {

namespace {

constexpr size_t kColumns = 100;
constexpr size_t kNameColumns = 28;
constexpr size_t kMaxLines = 60;
constexpr char kOwnGroup[] = "Options";

// The flags of shared groups that most questions need, those first that most do: of a command
// whose help would be too long, the last ones are left to --help-all.
constexpr std::string_view kCommonFlags[] = {
    "--cluster",      "--bandwidth",     "--workers-per-node", "--intra-bandwidth",
    "--latency",      "--algorithm",     "--all-reduce",       "--servers",
    "--sharding",     "--examples",      "--worker-hour",      "--batch-size",
    "--bucket-cap",   "--node-hour",     "--pipeline",         "--devices",
    "--memory",       "--micro-batches", "--schedules",        "--global-batch",
    "--epochs",       "--dataset",       "--accumulate",       "--compute-speed",
    "--worker-group", "--sync",          "--summed",           "--server-partition",
    "--order"};

// The flags of single commands that few questions need.
constexpr std::string_view kRareFlags[] = {"--currency",
                                           "--current-servers",
                                           "--current-workers",
                                           "--rescale-time",
                                           "--server-hour",
                                           "--first-cap",
                                           "--threads",
                                           "--max-partitions",
                                           "--without",
                                           "--variation",
                                           "--etag",
                                           "--common-variation",
                                           "--overlap-slowdown",
                                           "--collective-slowdown",
                                           "--max-servers",
                                           "--graph",
                                           "--variables",
                                           "--display-name"};

// The examples of each command, by its words.
const std::map<std::string, std::vector<std::string>>& Examples() {
  static const std::map<std::string, std::vector<std::string>> examples{
      {"stepcast",
       {"stepcast profile zoo resnet50 --all-reduce --bandwidth 10Gbit/s --save resnet50.json",
        "stepcast predict resnet50.json --workers 1-16 --plot",
        "stepcast recommend resnet50.json --min-efficiency 0.7"}},
      {"predict",
       {"stepcast predict resnet50.json --workers 1-16 --plot",
        "stepcast predict resnet50.json --workers 8-64 --cluster dgx-a100",
        "stepcast predict resnet50.json --workers 4 --bandwidth 25Gbit/s --output json"}},
      {"recommend",
       {"stepcast recommend resnet50.json --min-efficiency 0.7",
        "stepcast recommend resnet50.json --examples 1281167 --deadline 8h --worker-hour 2.5"}},
      {"order", {"stepcast order vgg16.json --method tac --save-priorities vgg16.tsv"}},
      {"tune", {"stepcast tune resnet50.json --workers 8 --bandwidth 10Gbit/s"}},
      {"allocate", {"stepcast allocate jobs.json --workers 16"}},
      {"compare", {"stepcast compare resnet50.json --workers 1-8"}},
      {"diagnose", {"stepcast diagnose resnet50.json --worker-group 3 --worker-group 1:0.8"}},
      {"optimize", {"stepcast optimize resnet18.json --workers 8 --out strategy.json"}},
      {"report", {"stepcast report resnet50.json --workers 1-8 --out report.html"}},
      {"trace", {"stepcast trace resnet50.json --workers 4 --steps 5 --out trace.json"}},
      {"bench", {"stepcast bench resnet50 --rate 1000,2000 --max-p99-ms 5"}},
      {"clusters", {"stepcast clusters dgx-a100"}},
      {"completion",
       {"source <(stepcast completion bash)", "source <(stepcast completion zsh)",
        "stepcast completion fish | source"}},
      {"help", {"stepcast help predict", "stepcast help --all job start"}},
      {"profile import",
       {"stepcast profile import trace.json.gz --batch-size 32 --bandwidth 10Gbit/s --save "
        "job.json",
        "stepcast profile import rank*.json.gz --batch-size 32 --bandwidth 1GB/s --save job.json"}},
      {"profile zoo",
       {"stepcast profile zoo resnet50 --bandwidth 1Gbit/s --save resnet50.json",
        "stepcast profile zoo bert_base --all-reduce --bandwidth 25Gbit/s --save bert.json"}},
      {"profile check", {"stepcast profile check resnet50.json --details"}},
      {"profile fit", {"stepcast profile fit parsing.csv"}},
      {"profile fit-collectives", {"stepcast profile fit-collectives all_reduce_perf.*.txt"}},
      {"profile fit-contention",
       {"stepcast profile fit-contention overlapped.csv --save contention.json"}},
      {"profile upload", {"stepcast profile upload resnet50.json --id resnet50 --replace"}},
      {"profile sync", {"stepcast profile sync profiles/ --set team --prune --dry-run"}},
      {"job start", {"stepcast job start order resnet50 --method search --wait"}},
      {"job wait", {"stepcast job wait operations/3f6c --timeout 2h"}}};
  return examples;
}

// The words of a command behind the program's name: "job start predict".
std::string WordsOfCommand(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* at = &command; at->get_parent() != nullptr; at = at->get_parent())
    words.push_back(at->get_name());
  std::reverse(words.begin(), words.end());
  return absl::StrJoin(words, " ");
}

std::string FullName(const CLI::App& command) {
  const std::string words = WordsOfCommand(command);
  return words.empty() ? "stepcast" : absl::StrCat("stepcast ", words);
}

// True where an option has its name among the first `count` of a list.
bool IsAmong(const CLI::Option& option, const std::string_view* list, size_t count) {
  const std::vector<std::string>& names = option.get_lnames();
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::find(list, list + count, "--" + name) != list + count;
  });
}

// True where --help shows an option, with `count` of the common flags.
bool IsShown(const CLI::Option& option, size_t count) {
  if (option.get_required()) return true;
  if (option.get_group() == kOwnGroup) return !IsAmong(option, kRareFlags, std::size(kRareFlags));
  return IsAmong(option, kCommonFlags, count);
}

// The words of `text` in lines that are indented by `indent` columns; the first line stands behind
// as many. A semicolon at the end of a line of `text` ends a line.
std::string Wrapped(const std::string& text, size_t indent) {
  std::string out;
  size_t column = indent;
  const auto break_line = [&] {
    absl::StrAppend(&out, "\n", std::string(indent, ' '));
    column = indent;
  };
  const std::string spaced = absl::StrReplaceAll(text, {{";\n", "; \n "}});
  for (const absl::string_view word : absl::StrSplit(spaced, ' ', absl::SkipEmpty())) {
    if (word == "\n") {
      break_line();
      continue;
    }
    for (const absl::string_view part : absl::StrSplit(word, '\n', absl::SkipEmpty())) {
      if (column > indent && column + 1 + part.size() > kColumns) break_line();
      if (column > indent) {
        absl::StrAppend(&out, " ");
        ++column;
      }
      absl::StrAppend(&out, part);
      column += part.size();
    }
  }
  return out;
}

std::string Row(const std::string& name, const std::string& text) {
  std::string row = absl::StrCat("  ", name);
  // A long list of choices goes on in further lines.
  for (size_t start = 0; row.size() - start > kColumns;) {
    const size_t bar = row.rfind('|', start + kColumns - 1);
    if (bar == std::string::npos || bar <= start) break;
    row.insert(bar + 1, "\n      ");
    start = bar + 2;
  }
  if (row.size() + 2 > kNameColumns) {
    absl::StrAppend(&row, "\n", std::string(kNameColumns, ' '));
  } else {
    row.resize(kNameColumns, ' ');
  }
  return absl::StrCat(row, Wrapped(text, kNameColumns), "\n");
}

class HelpText : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const override {
    std::string text = Text(*app, std::nullopt);
    const auto is_long = [&] {
      return std::count(text.begin(), text.end(), '\n') >= static_cast<int64_t>(kMaxLines);
    };
    if (mode == CLI::AppFormatMode::All) return text;
    for (size_t count = std::size(kCommonFlags) + 1; count-- > 0 && is_long();)
      text = Text(*app, count);
    return text;
  }

 private:
  static std::string OptionRow(const CLI::Option& option) {
    std::string name =
        option.get_positional() ? option.get_name(true) : option.get_name(false, true);
    if (option.get_type_size() != 0 && !option.get_type_name().empty())
      absl::StrAppend(&name, " ", option.get_type_name());
    if (option.get_expected_max() == CLI::detail::expected_max_vector_size)
      absl::StrAppend(&name, " ...");
    std::string text = option.get_description();
    if (option.get_required()) absl::StrAppend(&text, " (required)");
    const auto names = [](const std::set<CLI::Option*>& options) {
      std::set<std::string> sorted;
      for (const CLI::Option* other : options) sorted.insert(other->get_name());
      return absl::StrJoin(sorted, ", ");
    };
    if (!option.get_needs().empty())
      absl::StrAppend(&text, " (needs ", names(option.get_needs()), ")");
    if (!option.get_excludes().empty())
      absl::StrAppend(&text, " (not with ", names(option.get_excludes()), ")");
    return Row(name, text);
  }

  static std::string Group(const CLI::App& app, const std::string& group,
                           std::optional<size_t> count, int& left_out) {
    std::string rows;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() != group || !option->nonpositional()) continue;
      if (!count.has_value() || IsShown(*option, *count)) {
        absl::StrAppend(&rows, OptionRow(*option));
      } else {
        ++left_out;
      }
    }
    return rows.empty() ? "" : absl::StrCat("\n", group, ":\n", rows);
  }

  static std::string Commands(const CLI::App& app) {
    std::string rows;
    for (const std::string& name : CommandNames(app))
      absl::StrAppend(&rows, Row(name, app.get_subcommand(name)->get_description()));
    return rows.empty() ? "" : absl::StrCat("\nSubcommands:\n", rows);
  }

  // The help with all flags, or with so many of the common ones.
  std::string Text(const CLI::App& app, std::optional<size_t> count) const {
    std::string text = absl::StrCat(Wrapped(app.get_description(), 0), "\n");
    std::string usage = make_usage(&app, FullName(app));
    absl::StrAppend(&text, usage);
    std::string positionals;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_positional() && !option->get_group().empty())
        absl::StrAppend(&positionals, OptionRow(*option));
    }
    if (!positionals.empty()) absl::StrAppend(&text, "\nPositionals:\n", positionals);
    int left_out = 0;
    for (const std::string& group : app.get_groups()) {
      if (!group.empty()) absl::StrAppend(&text, Group(app, group, count, left_out));
    }
    absl::StrAppend(&text, Commands(app));
    if (left_out > 0)
      absl::StrAppend(&text, "\n", left_out, " more flags: ", FullName(app), " --help-all\n");
    if (app.get_parent() != nullptr)
      absl::StrAppend(&text, "\nFlags of every command (--server, --local, --output, --timeout, ",
                      "TLS): stepcast --help\n");
    for (const absl::string_view part : absl::StrSplit(app.get_footer(), "\n\n", absl::SkipEmpty()))
      absl::StrAppend(&text, "\n", Wrapped(std::string(part), 0), "\n");
    const std::string words = WordsOfCommand(app);
    const auto examples = Examples().find(words.empty() ? "stepcast" : words);
    if (examples != Examples().end())
      absl::StrAppend(&text, "\nExamples:\n  ", absl::StrJoin(examples->second, "\n  "), "\n");
    if (words.empty())
      absl::StrAppend(&text, "\nExit status: 0 done, 1 refused by the service or not reached, ",
                      "2 wrong usage.\n");
    return text;
  }
};

class HelpCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    program_ = &parent;
    CLI::App* app = parent.add_subcommand("help", "Print the help of a command");
    app->add_option("COMMAND", words_, "The command's words, for instance: job start")
        ->type_name("");
    app->add_flag("--all", all_, "All flags, also those that few questions need");
    return app;
  }

  bool NeedsNoServer() const override { return true; }

  ExitCode Run(const Session& session) const override {
    const CLI::App* at = program_;
    for (const std::string& word : words_) {
      const std::vector<std::string> names = CommandNames(*at);
      if (std::find(names.begin(), names.end(), word) == names.end()) {
        session.console.err << "error: unknown command " << InQuotes(word)
                            << Suggestion(word, names) << "\n";
        return ExitCode::kMisused;
      }
      at = at->get_subcommand(word);
    }
    session.console.out << at->get_formatter()->make_help(
        at, "", all_ ? CLI::AppFormatMode::All : CLI::AppFormatMode::Normal);
    return ExitCode::kDone;
  }

 private:
  const CLI::App* program_ = nullptr;
  std::vector<std::string> words_;
  bool all_ = false;
};

}  // namespace

void SetHelp(CLI::App& program) {
  program.formatter(std::make_shared<HelpText>());
  program.set_help_flag("-h,--help", "Print the help, common flags first, and exit");
  program.set_help_all_flag("--help-all", "Print the help with all flags, and exit");
}

std::vector<std::string> CommandNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (!below->get_name().empty() && !below->get_group().empty())
      names.push_back(below->get_name());
  }
  return names;
}

std::unique_ptr<Command> MakeHelpCommand() { return std::make_unique<HelpCommand>(); }

}  // namespace stepcast::client
