#include "client/cli/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/credential_flags.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/input_files.h"
#include "client/cli/local_connection.h"
#include "client/cli/texts/characters.h"

#include "stepcast/version.h"

namespace stepcast::client {

namespace {

std::vector<std::string> FlagsOf(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    }
  }
  return flags;
}

bool TakesArguments(const CLI::App& app) {
  const std::vector<const CLI::Option*> options = app.get_options();
  return std::any_of(options.begin(), options.end(),
                     [](const CLI::Option* option) { return option->get_positional(); });
}

// The first word that is not a command or a flag where one belongs, with the known one that is most
// like it; empty where all are known.
std::string UnknownWord(const CLI::App& program, int argc, const char* const* argv) {
  const CLI::App* app = &program;
  for (int i = 1; i < argc; ++i) {
    const std::string word(argv[i]);
    if (word == "--") break;
    if (word.size() == 2 && word.front() == '-') continue;  // -h
    if (word.substr(0, 2) == "--") {
      const std::string flag = word.substr(0, word.find('='));
      const std::vector<std::string> known = FlagsOf(*app);
      if (std::find(known.begin(), known.end(), flag) == known.end())
        return absl::StrCat("unknown flag ", flag, Suggestion(flag, known));
      const CLI::Option* option = nullptr;
      for (const CLI::App* at = app; at != nullptr && option == nullptr; at = at->get_parent())
        option = at->get_option_no_throw(flag);
      if (option != nullptr && flag == word) i += option->get_items_expected_min();
      continue;
    }
    const std::vector<const CLI::App*> commands =
        app->get_subcommands([](const CLI::App* command) { return !command->get_name().empty(); });
    if (commands.empty()) continue;
    std::vector<std::string> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* command : commands) {
      names.push_back(command->get_name());
      if (command->get_name() == word) next = command;
    }
    // Another word is its argument, where it takes any.
    if (next == nullptr && TakesArguments(*app)) continue;
    if (next == nullptr)
      return absl::StrCat("unknown command ", InQuotes(word), Suggestion(word, names));
    app = next;
  }
  return "";
}

// Empty: it may be the name of a server, HOST:PORT or gRPC's own, as unix:PATH.
std::string WhyNoServer(const std::string& server) {
  const size_t end = server.find("://");
  const std::string scheme = server.substr(0, end == std::string::npos ? 0 : end);
  if (scheme == "http" || scheme == "https" || scheme == "grpc" || scheme == "grpcs") {
    return absl::StrCat("the server ", InQuotes(server), " is to be HOST:PORT: leave ", scheme,
                        ":// off", scheme.ends_with("s") ? ", and say --tls or --tls-ca FILE" : "");
  }
  const bool is_bare_ipv6 =
      std::count(server.begin(), server.end(), ':') > 1 &&
      server.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
  const bool has_port = server.find(':', server.rfind(']') + 1) != std::string::npos;
  if (has_port && !is_bare_ipv6) return "";
  return absl::StrCat("the server ", InQuotes(server), " has no port: write ",
                      is_bare_ipv6 ? absl::StrCat("[", server, "]") : server,
                      ":50051, where 50051 is stepcastd's own");
}

class CommandLine {
 public:
  explicit CommandLine(const Console& console) : console_(console) {
    app_.name("stepcast");
    app_.set_version_flag("--version", "stepcast " + std::string(Version()));
    SetHelp(app_);
    app_.require_subcommand(1);
    // So that --local, --output and the others may stand anywhere.
    app_.fallthrough();
    DeclareGlobalOptions();
    for (const auto& make : kQuestions) Add(app_, MakeCallCommand(make()));
    Add(app_, MakeLayoutCommand());
    Add(app_, MakeClustersCommand());
    Add(app_, MakeReportCommand());
    Add(app_, MakeTraceCommand());
    Add(app_, MakeBenchCommand());
    CLI::App* profile = app_.add_subcommand("profile", "Make, store, show and check profiles");
    profile->require_subcommand(1);
    for (const auto& make : {MakeImportCommand, MakeZooCommand, MakeCheckCommand, MakeFitCommand,
                             MakeFitCollectivesCommand, MakeFitContentionCommand, MakeUploadCommand,
                             MakeGetCommand, MakeListCommand, MakeDeleteCommand, MakeSyncCommand}) {
      Add(*profile, make());
    }
    DeclareJobs();
    Add(app_, MakeCompletionCommand());
    Add(app_, MakeHelpCommand());
  }

  ExitCode Run(int argc, const char* const* argv) {
    const std::vector<std::string> arguments(argv, argv + argc);
    if (CountStandardInput(arguments) > 1) {
      console_.err << "error: standard input (-) is read once, and is named twice\n";
      return ExitCode::kMisused;
    }
    RefuseValuesOfFlags(app_);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return Misparsed(error, argc, argv);
    }
    for (const auto& [app, command] : commands_) {
      if (!app->parsed()) continue;
      const std::string server = NamedServer();
      if (const std::string why = server.empty() || local_ ? "" : WhyNoServer(server);
          !why.empty()) {
        console_.err << "error: " << why << "\n";
        return ExitCode::kMisused;
      }
      const absl::StatusOr<ClientCredentials> credentials = credentials_.Read();
      if (credentials.ok())
        return command->Run(MakeSession(
            *credentials, local_ || (server.empty() && command->NeedsNoServer()), *app));
      console_.err << ErrorReport(credentials.status());
      return ExitCode::kMisused;
    }
    return ExitCode::kMisused;
  }

 private:
  static constexpr std::array kQuestions{
      MakePredictQuestion,  MakeRecommendQuestion, MakeOrderQuestion,    MakeTuneQuestion,
      MakeAllocateQuestion, MakeCompareQuestion,   MakeDiagnoseQuestion, MakeOptimizeQuestion};

  void DeclareJobs() {
    CLI::App* job = app_.add_subcommand(
        "job", "Have the server compute what takes longer than a call, and follow it");
    job->require_subcommand(1);
    CLI::App* start =
        job->add_subcommand("start", "Start a computation, and print the name of its job");
    start->require_subcommand(1);
    for (const auto& make : kQuestions) Add(*start, MakeStartJobCommand(make()));
    Add(*start, MakeStartJobCommand(MakeLayoutQuestion()));
    for (const auto& make : {MakeGetJobCommand, MakeListJobsCommand, MakeWaitForJobCommand,
                             MakeCancelJobCommand, MakeDeleteJobCommand}) {
      Add(*job, make());
    }
  }

  void DeclareGlobalOptions() {
    CLI::Option* server =
        app_.add_option("--server", server_,
                        "The server (default: the environment's STEPCAST_SERVER; where neither "
                        "names one, what is about files needs\nnone, and all else asks "
                        "127.0.0.1:50051)");
    server->type_name("HOST:PORT");
    app_.add_flag("--local", local_,
                  "Work on profile files in this process, also where a server is named")
        ->excludes(server);
    credentials_.Declare(app_);
    AddChoiceOption(
        app_, "--output",
        Choices<OutputFormat>{{"table", OutputFormat::kTable}, {"json", OutputFormat::kJson}},
        "How to print the answer: for people (default), or the reply's proto JSON",
        [this](OutputFormat output) { output_ = output; });
    AddParsedOption(
        app_, "--timeout", "TIME",
        "Give up after so long: 60s, 2m (default 60s for a server's answer; an import: "
        "a second more for each megabyte; waiting for a job, and what this process computes: no "
        "limit)",
        [](const std::string& text) { return ParseDuration(text); },
        [this](std::chrono::nanoseconds timeout) { timeout_ = timeout; });
  }

  void Add(CLI::App& parent, std::unique_ptr<Command> command) {
    CLI::App* app = command->Declare(parent);
    commands_.emplace_back(app, std::move(command));
  }

  // A flag that takes no value is not told to be false by one: `--sync=false`.
  static void RefuseValuesOfFlags(CLI::App& app) {
    for (CLI::Option* const option : app.get_options())
      if (option->get_items_expected_max() == 0) option->disable_flag_override();
    for (CLI::App* const command : app.get_subcommands([](CLI::App*) { return true; }))
      RefuseValuesOfFlags(*command);
  }

  // The flag that was given a value and takes none; empty: none was.
  std::string FlagWithValue(int argc, const char* const* argv) const {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const size_t equals = word.find('=');
      if (!word.starts_with("--") || equals == std::string::npos) continue;
      const CLI::Option* const option = OptionOf(word.substr(0, equals));
      if (option != nullptr && option->get_items_expected_max() == 0 &&
          word.substr(equals) != "=true")
        return absl::StrCat(word.substr(0, equals), " takes no value: leave it out, or ",
                            InQuotes(word.substr(equals)));
    }
    return "";
  }

  // Says what is wrong with the words, or the help that they ask for: an "error" of status 0 to
  // CLI11.
  ExitCode Misparsed(const CLI::ParseError& error, int argc, const char* const* argv) {
    const bool is_wrong = error.get_exit_code() != 0;
    std::string why = is_wrong ? UnknownWord(app_, argc, argv) : "";
    if (why.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
      why = MissingOptions();
    if (why.empty() && dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
      why = FlagWithValue(argc, argv);
    if (!why.empty()) {
      console_.err << "error: " << why << "\nRun with --help for more information.\n";
      return ExitCode::kMisused;
    }
    if (is_wrong) console_.err << "error: ";
    return app_.exit(error, console_.out, console_.err) == 0 ? ExitCode::kDone : ExitCode::kMisused;
  }

  // All that the command wants and was not given: "--batch-size, --bandwidth are required". Empty:
  // nothing of that kind.
  std::string MissingOptions() const {
    const CLI::App* command = &app_;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
    std::vector<std::string> missing;
    for (const CLI::Option* const option : command->get_options()) {
      if (option->get_required() && option->empty()) missing.push_back(option->get_name());
    }
    if (missing.empty()) return "";
    return absl::StrCat(absl::StrJoin(missing, ", "), missing.size() > 1 ? " are" : " is",
                        " required");
  }

  // An option of a name, of any command; null: there is none.
  const CLI::Option* OptionOf(const std::string& name) const {
    for (const auto& [app, command] : commands_) {
      if (const CLI::Option* const option = app->get_option_no_throw(name)) return option;
    }
    return app_.get_option_no_throw(name);
  }

  // The files to read that are `-`, before any is read: that of a flag is while it is parsed.
  int64_t CountStandardInput(const std::vector<std::string>& arguments) const {
    constexpr std::array kWritten{"--out", "--save", "--save-priorities"};
    const auto is_read = [&](const std::string& name) {
      const CLI::Option* const option = OptionOf(name);
      return option == nullptr || option->get_type_size() == 0 ||
             (option->get_type_name() == "FILE" &&
              std::find(kWritten.begin(), kWritten.end(), name) == kWritten.end());
    };
    int64_t count = 0;
    for (size_t i = 1; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      const size_t equals = argument.find('=');
      if (argument == kStandardInput) count += is_read(arguments[i - 1]) ? 1 : 0;
      if (argument.starts_with("--") && equals != std::string::npos &&
          argument.substr(equals + 1) == kStandardInput)
        count += is_read(argument.substr(0, equals)) ? 1 : 0;
    }
    return count;
  }

  // Empty: nobody has named one.
  std::string NamedServer() const {
    if (!server_.empty()) return server_;
    const char* const environment = std::getenv("STEPCAST_SERVER");
    return environment == nullptr ? "" : environment;
  }

  Session MakeSession(const ClientCredentials& credentials, bool local, const CLI::App& app) const {
    ClientOptions options{.credentials = credentials};
    // In this process nobody else waits, and whoever does can stop it.
    if (local) options.timeout = std::chrono::nanoseconds::max();
    if (timeout_) options.timeout = *timeout_;
    if (const std::string server = NamedServer(); !server.empty()) options.server = server;
    return {.client = local ? MakeLocalClient(options) : Client(options),
            .options = options,
            .patience = timeout_.value_or(std::chrono::nanoseconds::max()),
            .local = local,
            .output = output_,
            .console = console_,
            .typed = TypedIn(app)};
  }

  const Console& console_;
  CLI::App app_{"Predicts how fast a distributed training job will run."};
  std::string server_;
  bool local_ = false;
  CredentialFlags credentials_;
  OutputFormat output_ = OutputFormat::kTable;
  std::optional<std::chrono::nanoseconds> timeout_;
  std::vector<std::pair<CLI::App*, std::unique_ptr<Command>>> commands_;
};

}  // namespace

ExitCode RunCommandLine(int argc, const char* const* argv, const Console& console) {
  PrintableStream out(console.out);
  PrintableStream err(console.err);
  const Console printable{.out = out,
                          .err = err,
                          .err_is_terminal = console.err_is_terminal,
                          .terminal = console.terminal,
                          .controls = &console.err};
  return CommandLine(printable).Run(argc, argv);
}

}  // namespace stepcast::client
