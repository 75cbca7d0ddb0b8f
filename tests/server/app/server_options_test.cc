#include "server/app/server_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "server/app/settings.h"

namespace stepcast::server::server_options_test {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::variant<ServerOptions, PrintText, DataCopy>> Parse(
    std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "stepcastd");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

ServerOptions Options(const std::vector<const char*>& arguments) {
  const auto parsed = Parse(arguments);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return std::get<ServerOptions>(*parsed);
}

// Sets a variable of the environment for a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name); before != nullptr) before_ = before;
    setenv(name, value, 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(CommandLineTest, WithoutFlagsTheServerIsOnLoopbackAndDurable) {
  const ServerOptions options = Options({});
  EXPECT_EQ(options.listen, "127.0.0.1:50051");
  EXPECT_EQ(options.http_listen, "127.0.0.1:9464");
  EXPECT_EQ(options.store, StoreKind::kSqlite);
  EXPECT_GE(options.threads, 1);
}

TEST(CommandLineTest, TheStateDirectoryIsTheUsers) {
  const Variable home("HOME", "/home/somebody");
  EXPECT_EQ(Options({}).data_dir, "/home/somebody/.local/state/stepcast");
  const Variable state("XDG_STATE_HOME", "/state");
  EXPECT_EQ(Options({}).data_dir, "/state/stepcast");
}

TEST(CommandLineTest, FlagsSetWhatTheyName) {
  const ServerOptions options = Options(
      {"--listen",          "[::1]:1", "--http-listen", "none", "--store",          "memory",
       "--threads",         "3",       "--queue-max",   "0",    "--max-operations", "7",
       "--max-job-seconds", "0.5",     "--log-format",  "json", "--log-level",      "error",
       "--drain-delay",     "1.5"});
  EXPECT_EQ(options.listen, "[::1]:1");
  EXPECT_EQ(options.http_listen, "");
  EXPECT_EQ(options.store, StoreKind::kMemory);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.queue_max, 0);
  EXPECT_EQ(options.profile_limits.max_operations, 7);
  EXPECT_EQ(options.max_job_seconds, 0.5);
  EXPECT_EQ(options.log.format, LogFormat::kJson);
  EXPECT_EQ(options.log.level, LogLevel::kError);
  EXPECT_EQ(options.drain_delay_seconds, 1.5);
}

TEST(CommandLineTest, AClientHasNoLimitOfItsOwnUnlessItIsGiven) {
  EXPECT_EQ(Options({}).store_limits.max_client_profiles, 0);
  EXPECT_EQ(Options({}).store_limits.max_client_store_bytes, 0);
  const StoreLimits limits =
      Options({"--max-client-profiles", "7", "--max-client-store-bytes", "8000"}).store_limits;
  EXPECT_EQ(limits.max_client_profiles, 7);
  EXPECT_EQ(limits.max_client_store_bytes, 8000);
}

TEST(CommandLineTest, TheEnvironmentCountsLessThanAFlag) {
  const Variable listen("STEPCAST_LISTEN", "127.0.0.1:7");
  const Variable store("STEPCAST_STORE", "memory");
  EXPECT_EQ(Options({}).listen, "127.0.0.1:7");
  EXPECT_EQ(Options({}).store, StoreKind::kMemory);
  EXPECT_EQ(Options({"--listen", "127.0.0.1:8"}).listen, "127.0.0.1:8");
}

TEST(CommandLineTest, LengthsOfTimeHaveUnitsOrAreOfSeconds) {
  for (const auto& [text, seconds] : std::vector<std::pair<const char*, double>>{
           {"0", 0}, {"1.5", 1.5}, {"1.5s", 1.5}, {"250ms", 0.25}, {"1m30s", 90}, {"2h", 7200}}) {
    const ServerOptions options = Options({"--drain-delay", text, "--drain-timeout", text});
    EXPECT_EQ(options.drain_delay_seconds, seconds) << text;
    EXPECT_EQ(options.drain_timeout_seconds, seconds) << text;
  }
}

TEST(CommandLineTest, WhatIsWrongIsNamed) {
  const std::vector<std::pair<std::vector<const char*>, std::string>> cases{
      {{"--bogus"}, "--bogus"},
      {{"positional"}, "positional"},
      {{"--threads", "0"}, "--threads"},
      {{"--threads", "x"}, "--threads"},
      {{"--store", "tape"}, "--store"},
      {{"--listen", "nowhere"}, "--listen"},
      {{"--listen", ":50051"}, "--listen"},
      {{"--http-listen", "127.0.0.1:70000"}, "--http-listen"},
      {{"--max-message-bytes", "3000000000"}, "--max-message-bytes"},
      {{"--max-parameter-servers", "257"}, "--max-parameter-servers"},
      {{"--drain-delay", "-1"}, "--drain-delay"},
      {{"--drain-delay", "-1s"}, "--drain-delay"},
      {{"--drain-delay", "5 parsecs"}, "--drain-delay"},
      {{"--drain-delay", "inf"}, "--drain-delay"},
      {{"--drain-delay", "nan"}, "--drain-delay"},
      {{"--drain-timeout", "300h"}, "--drain-timeout"},
      {{"--drain-timeout", ""}, "--drain-timeout"},
      {{"--max-client-profiles", "-1"}, "--max-client-profiles"},
      {{"--max-client-profiles", "1.5"}, "--max-client-profiles"},
      {{"--max-client-store-bytes", "9223372036854775808"}, "--max-client-store-bytes"},
      {{"--max-client-store-bytes", "all"}, "--max-client-store-bytes"},
  };
  for (const auto& [arguments, name] : cases) {
    const absl::Status status = Parse(arguments).status();
    EXPECT_EQ(DetailsOf(status).reason, "FLAG_INVALID") << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

TEST(CommandLineTest, AWrongVariableIsNoBetterThanAWrongFlag) {
  const Variable queue("STEPCAST_QUEUE_MAX", "-4");
  EXPECT_FALSE(Parse({}).ok());
}

// A configuration file for a test.
std::string Config(const std::string& text) {
  std::string path = ::testing::TempDir() + std::to_string(getpid()) +
                     ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
  std::ofstream(path) << text;
  return path;
}

TEST(CommandLineTest, TheFileCountsLessThanTheEnvironmentAndThatLessThanAFlag) {
  const std::string file = Config("threads: 3\nqueue-max: 3\nstore-threads: 3\nlog-format: json\n");
  const Variable queue("STEPCAST_QUEUE_MAX", "5");
  const Variable store("STEPCAST_STORE_THREADS", "5");
  const ServerOptions options = Options({"--config", file.c_str(), "--store-threads", "7"});
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.queue_max, 5);
  EXPECT_EQ(options.store_threads, 7);
  EXPECT_EQ(options.log.format, LogFormat::kJson);
  EXPECT_EQ(options.settings.at("queue-max"), "5");
  EXPECT_EQ(options.settings.at("store-queue-max"), "256");
}

TEST(CommandLineTest, EveryLayersFaultsAreNamedTogetherEvenThoseThatAreReplaced) {
  const std::string file = Config("threads: many\nbogus: 1\nlog-level: loud\n");
  const Variable queue("STEPCAST_QUEUE_MAX", "-4");
  const std::vector<std::string> complaints = ComplaintsOf(
      Parse({"--config", file.c_str(), "--threads", "2", "--max-steps", "0", "--listen", "nowhere"})
          .status());
  EXPECT_THAT(complaints,
              ::testing::ElementsAre(
                  AllOf(HasSubstr(file + ":1"), HasSubstr("--threads"), HasSubstr("many")),
                  AllOf(HasSubstr(file + ":2"), HasSubstr("bogus")),
                  AllOf(HasSubstr(file + ":3"), HasSubstr("--log-level"), HasSubstr("loud")),
                  AllOf(HasSubstr("STEPCAST_QUEUE_MAX"), HasSubstr("-4")),
                  AllOf(HasSubstr("--max-steps"), HasSubstr("0")),
                  AllOf(HasSubstr("--listen"), HasSubstr("nowhere"))));
}

TEST(CommandLineTest, AFileMayBeNamedByTheEnvironmentButNotByAFile) {
  const std::string file = Config("threads: 3\n");
  {
    const Variable config("STEPCAST_CONFIG", file.c_str());
    EXPECT_EQ(Options({}).threads, 3);
  }
  const std::string nested = Config("config: other.yaml\n");
  EXPECT_THAT(std::string(Parse({"--config", nested.c_str()}).status().message()),
              HasSubstr("config"));
}

TEST(CommandLineTest, WhatIsPrintedIsAConfigurationOfTheSameSettings) {
  const Variable level("STEPCAST_LOG_LEVEL", "error");
  const auto printed = Parse({"--print-config", "--threads", "3", "--http-listen", "none"});
  ASSERT_TRUE(printed.ok()) << printed.status();
  const std::string text = std::get<PrintText>(*printed).text;
  EXPECT_THAT(text, HasSubstr("threads: 3  # --threads\n"));
  EXPECT_THAT(text, HasSubstr("log-level: error  # STEPCAST_LOG_LEVEL\n"));
  EXPECT_THAT(text, HasSubstr("queue-max: 64  # default\n"));
  const std::string file = Config(text);
  EXPECT_EQ(Options({"--config", file.c_str()}).settings,
            Options({"--threads", "3", "--http-listen", "none"}).settings);
}

TEST(CommandLineTest, TheDatabasesStringIsCheckedAndNeverShown) {
  const Variable database("STEPCAST_POSTGRES", "host=db password=hidden");
  const ServerOptions options = Options({"--store", "postgres"});
  EXPECT_EQ(options.store, StoreKind::kPostgres);
  EXPECT_EQ(options.postgres, "host=db password=hidden");
  EXPECT_EQ(options.settings.at("postgres").find("hidden"), std::string::npos);
  EXPECT_EQ(
      std::get<PrintText>(*Parse({"--store", "postgres", "--print-config"})).text.find("hidden"),
      std::string::npos);
  const absl::Status refused =
      Parse({"--store", "postgres", "--postgres", "hidden words"}).status();
  ASSERT_EQ(DetailsOf(refused).faults.size(), 1) << refused;
  EXPECT_EQ(DetailsOf(refused).faults[0].field, "--postgres");
  EXPECT_EQ(refused.ToString().find("hidden"), std::string::npos);
}

TEST(CommandLineTest, ACopyIsAskedForInsteadOfAServer) {
  const auto backup = Parse({"--backup-to", "/copy", "--data-dir", "/data"});
  ASSERT_TRUE(backup.ok()) << backup.status();
  EXPECT_EQ(std::get<DataCopy>(*backup).data_dir, "/data");
  EXPECT_EQ(std::get<DataCopy>(*backup).backup_to, "/copy");
  const auto restore = Parse({"--restore-from", "/copy", "--data-dir", "/data"});
  ASSERT_TRUE(restore.ok()) << restore.status();
  EXPECT_EQ(std::get<DataCopy>(*restore).restore_from, "/copy");
  EXPECT_EQ(DetailsOf(Parse({"--backup-to", "/a", "--restore-from", "/b"}).status()).reason,
            "FLAG_INVALID");
}

TEST(CommandLineTest, ASoundConfigurationIsOk) {
  const auto checked = Parse({"--check-config"});
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(std::get<PrintText>(*checked).text, "ok\n");
  EXPECT_FALSE(Parse({"--check-config", "--threads", "0"}).ok());
}

TEST(CommandLineTest, AVariableThatIsNoSettingIsFoundAndTheClientsAreNot) {
  const Variable typo("STEPCAST_TREADS", "3");
  const Variable client("STEPCAST_SERVER", "127.0.0.1:1");
  EXPECT_THAT(Options({}).unknown_variables, ::testing::ElementsAre("STEPCAST_TREADS"));
}

TEST(CommandLineTest, BeyondLoopbackNothingIsServedInClearOrToEverybody) {
  const auto complaint = [](const std::vector<const char*>& arguments) {
    return std::string(Parse(arguments).status().message());
  };
  EXPECT_THAT(
      complaint({"--listen", "0.0.0.0:0"}),
      AllOf(HasSubstr("0.0.0.0:0"), HasSubstr("--tls-cert"), HasSubstr("--allow-insecure")));
  EXPECT_THAT(complaint({"--listen", "0.0.0.0:0", "--tokens", "t"}), HasSubstr("--tls-cert"));
  EXPECT_THAT(complaint({"--listen", "0.0.0.0:0", "--tls-cert", "c", "--tls-key", "k"}),
              AllOf(HasSubstr("--tokens"), HasSubstr("--tls-client-ca")));
  EXPECT_EQ(
      complaint({"--listen", "0.0.0.0:0", "--tls-cert", "c", "--tls-key", "k", "--tokens", "t"}),
      "");
  EXPECT_EQ(complaint({"--listen", "0.0.0.0:0", "--tls-cert", "c", "--tls-key", "k",
                       "--tls-client-ca", "a"}),
            "");
  EXPECT_EQ(complaint({"--listen", "0.0.0.0:0", "--allow-insecure"}), "");
  EXPECT_EQ(complaint({"--listen", "127.0.0.1:0", "--tokens", "t"}), "");
  EXPECT_THAT(complaint({"--tls-cert", "c"}), HasSubstr("--tls-key"));
  EXPECT_THAT(complaint({"--tls-client-ca", "c"}), HasSubstr("--tls-cert"));
}

TEST(CommandLineTest, HelpNamesEveryFlagsVariable) {
  const auto parsed = Parse({"--help"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const std::string& text = std::get<PrintText>(*parsed).text;
  for (const char* flag : {"listen",
                           "http-listen",
                           "store",
                           "data-dir",
                           "threads",
                           "queue-max",
                           "store-threads",
                           "max-message-bytes",
                           "max-profile-bytes",
                           "max-job-seconds",
                           "max-operations",
                           "replica-id",
                           "max-running-operations",
                           "operation-lease-seconds",
                           "max-operation-seconds",
                           "max-operation-attempts",
                           "operation-retention-seconds",
                           "max-open-operations",
                           "max-done-operations",
                           "max-operation-store-bytes",
                           "max-job-bytes",
                           "max-client-profiles",
                           "max-client-store-bytes",
                           "max-waiting-calls",
                           "max-steps",
                           "drain-delay",
                           "drain-timeout",
                           "log-level",
                           "log-format"}) {
    std::string variable = "STEPCAST_";
    for (const char* c = flag; *c != '\0'; ++c)
      variable.push_back(*c == '-' ? '_' : static_cast<char>(std::toupper(*c)));
    EXPECT_THAT(text, HasSubstr(std::string("--") + flag));
    EXPECT_THAT(text, HasSubstr("(Env:" + variable + ")"));
  }
}

TEST(CommandLineTest, TheVersionIsPrinted) {
  const auto parsed = Parse({"--version"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(std::get<PrintText>(*parsed).text, ::testing::StartsWith("stepcastd "));
}

}  // namespace
}  // namespace stepcast::server::server_options_test
