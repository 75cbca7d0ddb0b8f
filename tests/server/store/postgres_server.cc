#include "tests/server/store/postgres_server.h"

#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "tests/support/eventually.h"

namespace stepcast::server {

namespace {

// The programs of the newest version; empty if there is none.
std::string Programs() {
  std::string newest;
  std::error_code error;
  for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", error)) {
    const std::string programs = version.path() / "bin";
    if (access(absl::StrCat(programs, "/initdb").c_str(), X_OK) == 0 && programs > newest)
      newest = programs;
  }
  return newest;
}

void Require(bool held, const std::string& what) {
  if (held) return;
  std::cerr << "the PostgreSQL server of the tests: " << what << std::endl;
  std::abort();
}

}  // namespace

std::string PostgresServer::Missing() {
  if (Programs().empty())
    return "there is no /usr/lib/postgresql/*/bin/initdb: install the package postgresql";
  if (geteuid() == 0 && getpwnam("postgres") == nullptr)
    return "PostgreSQL does not run as root, and there is no user postgres";
  return "";
}

PostgresServer& PostgresServer::Shared() {
  static PostgresServer server;
  return server;
}

PostgresServer::PostgresServer() {
  if (geteuid() == 0) {
    const passwd* user = getpwnam("postgres");
    Require(chown(directory_.path().c_str(), user->pw_uid, user->pw_gid) == 0, "chown");
  }
  int status = 0;
  const pid_t initdb =
      Spawn("initdb", {"--no-sync", "--no-instructions", "--auth=trust", "--username=stepcast",
                       "--pgdata", directory_.path() + "/data"});
  Require(waitpid(initdb, &status, 0) == initdb && status == 0, "initdb failed");
  Start();
}

PostgresServer::~PostgresServer() { Stop(); }

std::string PostgresServer::Conninfo(const std::string& database) const {
  return absl::StrCat("host=", directory_.path(), " user=stepcast dbname=", database);
}

std::string PostgresServer::NewDatabase() {
  const std::string name = absl::StrCat("test", ++databases_);
  const absl::Status made =
      MustConnect(Conninfo("template1"))
          ->Script(absl::StrCat("CREATE DATABASE ", name, " TEMPLATE template0"));
  EXPECT_TRUE(made.ok()) << made;
  return Conninfo(name);
}

std::string PostgresServer::Schema(const std::string& name) {
  if (schemas_.empty()) schemas_ = NewDatabase();
  const absl::Status made =
      MustConnect(schemas_)->Script(absl::StrCat("CREATE SCHEMA IF NOT EXISTS ", name));
  EXPECT_TRUE(made.ok()) << made;
  return absl::StrCat(schemas_, " options='-c search_path=", name, "'");
}

void PostgresServer::Stop() {
  if (server_ < 0) return;
  int status = 0;
  Require(kill(server_, SIGQUIT) == 0 && waitpid(server_, &status, 0) == server_,
          "it does not stop");
  server_ = -1;
}

void PostgresServer::Start() {
  if (server_ >= 0) return;
  server_ = Spawn("postgres", {"-D", directory_.path() + "/data", "-k", directory_.path(), "-c",
                               "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=50",
                               "-c", "log_min_messages=fatal"});
  const bool answers = Eventually([&] {
    Require(waitpid(server_, nullptr, WNOHANG) == 0, "it ended at once");
    return PostgresConnection::Open({.conninfo = Conninfo("template1")}).ok();
  });
  Require(answers, "it does not answer");
}

// A child that is told to end when this process does, however that ends.
pid_t PostgresServer::Spawn(const std::string& program,
                            const std::vector<std::string>& arguments) const {
  std::vector<std::string> words = {"setpriv", "--pdeathsig=QUIT"};
  if (geteuid() == 0)
    words.insert(words.end(), {"--reuid=postgres", "--regid=postgres", "--clear-groups"});
  words.push_back(absl::StrCat(Programs(), "/", program));
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> raw;
  raw.reserve(words.size() + 1);
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  const std::string log = absl::StrCat(directory_.path(), "/log");
  const pid_t child = fork();
  Require(child >= 0, "fork");
  if (child != 0) return child;
  if (chdir(directory_.path().c_str()) != 0 || std::freopen(log.c_str(), "a", stdout) == nullptr ||
      dup2(1, 2) < 0)
    _exit(1);
  execvp(raw[0], raw.data());
  _exit(1);
}

std::unique_ptr<PostgresConnection> MustConnect(const std::string& conninfo,
                                                int statement_timeout_ms) {
  absl::StatusOr<std::unique_ptr<PostgresConnection>> opened = PostgresConnection::Open(
      {.conninfo = conninfo, .statement_timeout_ms = statement_timeout_ms});
  EXPECT_TRUE(opened.ok()) << opened.status();
  Require(opened.ok(), "no connection");
  return *std::move(opened);
}

}  // namespace stepcast::server
