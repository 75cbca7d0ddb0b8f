// A PostgreSQL server of this test program's own, in a temporary directory, which ends with the
// program.
//
// It is reached by a socket in that directory, by whoever asks. As root it runs as the user
// postgres, since it refuses to run as root. What is committed is not synced to the disk: it need
// not survive a power failure. Threads: the test's main one.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "server/store/postgres_connection.h"
#include "tests/server/store/temporary_directory.h"

namespace stepcast::server {

class PostgresServer {
 public:
  // The reason why there can be none here; empty if there can.
  static std::string Missing();
  // The program's one server, started when it is first asked for. REQUIRES: Missing() is empty.
  static PostgresServer& Shared();
  ~PostgresServer();

  // The connection string of a database, which may not be there.
  std::string Conninfo(const std::string& database) const;
  // The connection string of a new and empty one.
  std::string NewDatabase();
  // The connection string of a schema with this name in a database for all of them, made unless it
  // is there. Cheaper than a database.
  std::string Schema(const std::string& name);

  // Ends it as a crash would, or starts it again. Idempotent; Start returns when it answers.
  void Stop();
  void Start();

 private:
  PostgresServer();

  pid_t Spawn(const std::string& program, const std::vector<std::string>& arguments) const;

  const TemporaryDirectory directory_;
  pid_t server_ = -1;
  int databases_ = 0;
  std::string schemas_;  // the connection string of the database they are in; empty: not made yet
};

// A connection that must open. REQUIRES: within a test.
std::unique_ptr<PostgresConnection> MustConnect(const std::string& conninfo,
                                                int statement_timeout_ms = 15'000);

}  // namespace stepcast::server
